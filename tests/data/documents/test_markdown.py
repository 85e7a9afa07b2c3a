"""Markdown as people write it for GitHub, MkDocs and Hugo."""

from collections.abc import Callable

import pytest

from documents import shouted_text
from heedful.data.documents.passages import Document

Read = Callable[[str, str | bytes], Document]


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
        ("`<code>` and `</code>` c", "`<code>` AND `</code>` C"),
        ("| <kbd>a</kbd> b |\n|---|\n| <var>c</var> |", "| <kbd>a</kbd> B |\n|---|\n| <var>c</var> |"),
    ],
)
def test_what_html_does_not_translate_stays(read: Read, text: str, expected: str) -> None:
    assert shouted_text(read("a.md", text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('??? tip "one"\n    two\n', '??? tip "one"\n    TWO\n'),
        ("???+ tip\n    two\n", "???+ tip\n    TWO\n"),
        ('=== "one"\n    two\n', '=== "one"\n    TWO\n'),
        ("- !!! note\n  one\n", "- !!! note\n  ONE\n"),
        ("1. > ??? tip\n   >     one\n", "1. > ??? tip\n   >     ONE\n"),
        ("one!!! two ??? three\n", "ONE!!! TWO ??? THREE\n"),
        ("one\n===\n\ntwo\n", "ONE\n===\n\nTWO\n"),
    ],
)
def test_what_begins_a_note_that_folds_is_kept(read: Read, text: str, expected: str) -> None:
    assert shouted_text(read("a.md", text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one[^1] two[^b].\n\n[^1]: Two\n[^b]: Three.\n", "ONE[^1] TWO[^b].\n\n[^1]: TWO\n[^b]: THREE.\n"),
        ("one[^1]\n\n[^1]: <https://a.b/c>\n", "ONE[^1]\n\n[^1]: <https://a.b/c>\n"),
        ("[^1]: a\n\n    b *c*\n\n        d\n\ne\n", "[^1]: A\n\n    B *C*\n\n        d\n\nE\n"),
        ("> [^1]: one\n>\n>     two\n", "> [^1]: ONE\n>\n>     TWO\n"),
        ("!!! note\n\n    a\n\n    - b\n\n        c\n", "!!! note\n\n    A\n\n    - B\n\n        C\n"),
        ("??? tip\n\n    a\n\n    ```\n    b\n    ```\n", "??? tip\n\n    A\n\n    ```\n    b\n    ```\n"),
        ('!!! x\n\n    a\n\n    !!! y "z"\n\n        b\n', '!!! x\n\n    A\n\n    !!! y "z"\n\n        B\n'),
        ('=== "a"\n\n    b\n\n=== "c"\n\n    d\n', '=== "a"\n\n    B\n\n=== "c"\n\n    D\n'),
        ("```\n!!! note\n    one\n```\n\n    [^1]: two\n", "```\n!!! note\n    one\n```\n\n    [^1]: two\n"),
        ("one!!! two ??? three\n\n    four\n", "ONE!!! TWO ??? THREE\n\n    four\n"),
    ],
)
def test_notes_are_translated_with_all_that_is_indented_below_them(read: Read, text: str, expected: str) -> None:
    """It is no code."""
    assert shouted_text(read("a.md", text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            '{{< figure src="a.jpg" title="One. Two" >}}\n\none\n',
            '{{< figure src="a.jpg" title="One. Two" >}}\n\nONE\n',
        ),
        (
            'one\n{{< figure\n  src="a.jpg"\n  title="Two" >}}\ntwo\n',
            'ONE\n{{< figure\n  src="a.jpg"\n  title="Two" >}}\nTWO\n',
        ),
        ('[one]({{< ref "a b.md" >}}) {{ x }} two\n', '[ONE]({{< ref "a b.md" >}}) {{ x }} TWO\n'),
        ("{{% tip %}}\none two\n{{% /tip %}}\n", "{{% tip %}}\nONE TWO\n{{% /tip %}}\n"),
        ('{% include "a b.html" %}\none\r\n', '{% include "a b.html" %}\nONE\r\n'),
        ("[TOC]\n[[_TOC_]]\n\none [TOC]\n", "[TOC]\n[[_TOC_]]\n\nONE [TOC]\n"),
        ('--8<-- "a b.md"\none\n', '--8<-- "a b.md"\nONE\n'),
        ("one [two](x){target=_blank} {three}\n", "ONE [TWO](x){target=_blank} {THREE}\n"),
        ("`{{ a }}` {{ b\n\nc }} {% d\n", "`{{ a }}` {{ B\n\nC }} {% D\n"),
    ],
)
def test_shortcodes_and_what_inserts_others_stay(read: Read, text: str, expected: str) -> None:
    """Of Hugo, Jekyll and MkDocs; on lines of their own they part passages."""
    document = read("a.md", text)
    assert shouted_text(document) == expected
    assert not any("%" in mark.raw for passage in document.passages for mark in passage.marks)


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
    assert shouted_text(read("a.md", f"{text}\ntwo\n")) == f"{text}\nTWO\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Ba de.\n\n*[HTML]: ko lu\n*[W3C]: ma ne\n", ["Ba de.", "ko lu", "ma ne"]),
        ("import A from '@x/a';\nimport {B,\n  C} from \"./b\";\n\nba\n\nexport const d = 1;\n\nde\n", ["ba", "de"]),
        ("```js\nexport const d = 1;\n```\n\nba\n", ["ba"]),
        ("```js\nimport\n```\n\nba 'de'\n", ["ba 'de'"]),
        ("Import ba from de.\n", ["Import ba from de."]),
        ("As [@smith2010; see @x, p. 3] and @fig-one say.\n", ["As  and  say."]),
        ("Write to me@x.org, or [@ba](https://m.com/@ba).\n", ["Write to me@x.org, or ."]),
        ("{% highlight ruby %}\ndef ba\n\nend\n{% endhighlight %}\n\nde\n", ["de"]),
        ("\\newpage\n\n\\vspace{1cm}\n\nba\n", ["ba"]),
        ("[Ba](b.md){ .md-button } de{ width=3 }.\n", ["Ba de."]),
        ("See [[Ba de]] and [[ko|lu]].\n", ["See  and ."]),
        ("Ba\n\n~ de\n", ["Ba", "de"]),
    ],
)
def test_what_other_dialects_have(read: Read, text: str, said: list[str]) -> None:
    """Abbreviations of MkDocs, MDX, citations and definitions of Pandoc, code of Jekyll, links of a wiki."""
    document = read("a.md", text)
    assert [passage.text for passage in document.passages] == said
    shouted = document.written(
        [part.upper() if isinstance(part, str) else part for part in each.placed] for each in document.passages
    ).decode()
    assert shouted.lower() == text.lower()
    for kept in (
        "'@x/a'",
        '"./b"',
        "const d",
        "@smith2010; see @x, p. 3",
        "@fig-one",
        "def ba",
        "newpage",
        "{ .md-button }",
        "[[ko|lu]]",
    ):
        assert (kept in text) == (kept in shouted)
