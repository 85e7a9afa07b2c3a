"""Markdown as people write it for GitHub, MkDocs and Hugo."""

from collections.abc import Callable

import pytest

from heedful.data.documents.passages import Document, Mark

Read = Callable[[str, str | bytes], Document]


def shouted(document: Document) -> str:
    """In capitals, with the marks where they are."""
    placed = ([part if isinstance(part, Mark) else part.upper() for part in each.placed] for each in document.passages)
    return document.written(placed).decode()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("press <kbd>Ctrl</kbd>+<kbd>C</kbd> now", "PRESS <kbd>Ctrl</kbd>+<kbd>C</kbd> NOW"),
        ("a <code>x *y* z</code> b", "A <code>x *y* z</code> B"),
        ("a <span translate=no>b <i>c</i> d</span> e", "A <span translate=no>b <i>c</i> d</span> E"),
        ("> a <i class='notranslate'>b</i> **c**", "> A <i class='notranslate'>b</i> **C**"),
        ("a <kbd>b *c* d", "A <kbd>B *C* D"),
        ("a <b>b <code>c</code></b> d", "A <b>B <code>c</code></b> D"),
        ("`<kbd>a</kbd>` b", "`<kbd>a</kbd>` B"),
        ("| <kbd>a</kbd> b |\n|---|\n| <var>c</var> |", "| <kbd>a</kbd> B |\n|---|\n| <var>c</var> |"),
    ],
)
def test_what_html_does_not_translate_stays(read: Read, text: str, expected: str) -> None:
    assert shouted(read("a.md", text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('??? tip "one"\n    two\n', '??? tip "one"\n    TWO\n'),
        ("???+ tip\n    two\n", "???+ tip\n    TWO\n"),
        ('=== "one"\n    two\n', '=== "one"\n    TWO\n'),
        ("one!!! two ??? three\n", "ONE!!! TWO ??? THREE\n"),
        ("one\n===\n\ntwo\n", "ONE\n===\n\nTWO\n"),
    ],
)
def test_what_begins_a_note_that_folds_is_kept(read: Read, text: str, expected: str) -> None:
    assert shouted(read("a.md", text)) == expected


@pytest.mark.parametrize("head", ["!!! note\n    ", '??? tip "one"\n    ', "- ", "> ", ""])
def test_lines_that_are_broken_again_stay_indented(read: Read, head: str) -> None:
    """Else a note of MkDocs ends at its first line."""
    lead = "> " if head == "> " else "    "
    document = read("a.md", f"one\n\n{head}two three\n{lead}four five\n\nsix\n")
    _, passage, _ = document.passages
    assert passage.text == "two three four five"
    made = document.written([["one"], ["ten " * 8], ["six"]]).decode().split("\n\n")[1]
    after = made.removeprefix(head).split("\n")[1:]
    assert len(after) > 2
    assert all(line.startswith(f"{lead}ten") for line in after)


@pytest.mark.parametrize("text", ['+++\ntitle = "one"\n+++\n', "---\ntitle: one\n---\n", "+++\r\none = 1\r\n+++\r\n"])
def test_front_matter_stays(read: Read, text: str) -> None:
    assert shouted(read("a.md", f"{text}\ntwo\n")) == f"{text}\nTWO\n"
