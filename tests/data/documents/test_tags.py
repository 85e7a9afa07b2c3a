"""Tags in a translation: none lost, none invented, and well-formed, whatever the alignment says."""

import random
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from heedful.data.documents.passages import Mark, merged, plain, split_at, with_pairs
from heedful.data.documents.tags import Alignment, moved
from heedful.data.documents.words import words_in

WORDS = st.lists(st.sampled_from(["ba", "de,", "(gi)", "ko", "日本", "3.5", "é"]), max_size=7).map(" ".join)


KINDS = st.lists(st.tuples(st.integers(0, 30), st.sampled_from(["alone", "opens", "closes"])), max_size=8)


def with_marks(text: str, kinds: list[tuple[int, str]]) -> list[Mark]:
    """Marks in a text: pairs within pairs, and marks alone."""
    opened, marks, names = list[str](), list[Mark](), list[str]()
    for number, (at, kind) in enumerate(sorted((min(at, len(text)), kind) for at, kind in kinds)):
        if kind == "closes" and opened:
            name = opened.pop()
            marks.append(Mark(at, f"</{name}>", "closes"))
        elif kind == "opens":
            name = f"p{number}"
            opened.append(name)
            marks.append(Mark(at, f"<{name}>", "opens"))
        else:
            name = f"x{number}"
            marks.append(Mark(at, f"<{name}/>"))
        names.append(name)
    for name in reversed(opened):
        marks.append(Mark(len(text), f"</{name}>", "closes"))
        names.append(name)
    return with_pairs(marks, names)


def well_formed(raw: list[str]) -> bool:
    opened: list[str] = []
    for tag in raw:
        if tag.startswith("</"):
            if not opened or opened.pop() != tag[2:-1]:
                return False
        elif not tag.endswith("/>"):
            opened.append(tag[1:-1])
    return not opened


@settings(max_examples=150)
@given(WORDS, KINDS, WORDS, st.integers(0, 1 << 30))
def test_whatever_the_alignment_says_no_tag_is_lost(
    text: str, kinds: list[tuple[int, str]], said: str, seed: int
) -> None:
    marks = with_marks(text, kinds)
    draw = random.Random(seed)
    words, target = words_in(text), words_in(said)
    rows = []
    for _ in target:
        shares = [draw.random() ** 4 for _ in words]
        total = sum(shares) * draw.choice([1, 2]) or 1
        rows.append({word: share / total for word, share in enumerate(shares) if share > 0.01})
    placed = moved(text, marks, said, Alignment(words, target, rows))
    raw = [part.raw for part in placed if isinstance(part, Mark)]
    assert sorted(raw) == sorted(mark.raw for mark in marks)
    assert well_formed(raw)
    texts = "".join(part for part in placed if isinstance(part, str))
    assert texts.split() == said.split() or texts.replace(" ", "") == said.replace(" ", "")


@settings(max_examples=150)
@example("ba", [(0, "opens"), (1, "opens"), (1, "closes")])  # both inside of a word
@given(WORDS, KINDS)
def test_a_text_that_stays_keeps_its_tags_where_they_are(text: str, kinds: list[tuple[int, str]]) -> None:
    marks = with_marks(text, kinds)
    words = words_in(text)
    same = Alignment(words, words, [{number: 1.0} for number in range(len(words))])
    assert merged(moved(text, marks, text, same)) == merged(split_at(text, marks))


def one_hot(text: str, said: str, links: list[int]) -> Alignment:
    return Alignment(words_in(text), words_in(said), [{link: 1.0} for link in links])


@pytest.mark.parametrize(
    ("marked", "said", "links", "expected"),
    [
        ("the <b>red</b> car", "la voiture rouge", [0, 2, 1], "la voiture <b>rouge</b>"),
        ("<b>the red</b> car", "la voiture rouge", [0, 2, 1], "<b>la</b> voiture rouge"),
        ("a <i>big <b>red</b></i> car", "une auto rouge grande", [0, 3, 2, 1], "une auto <i><b>rouge</b> grande</i>"),
        ("stop<x/>", "halt", [0], "halt<x/>"),
        ("see <x/> now", "jetzt schau", [1, 0], "<x/> jetzt schau"),
        ("hello <x/>!", "hallo!", [0, 1], "hallo <x/>!"),
        ("see <x/> and <x/> now", "schau jetzt", [0, 2], "schau <x/> <x/> jetzt"),
        ("see <x/><x/> and now", "schau jetzt", [0, 2], "schau <x/><x/> jetzt"),
        ("see <b><x/></b>, now", "jetzt, schau", [2, 1, 0], "<b><x/></b> jetzt, schau"),
        ("use <b>.net</b>, now", "(net)", [0, 2, 3], "(<b>net</b>)"),
        ("un<b>true</b> x", "x un true", [1, 0, 0], "x <b>un true</b>"),
        ("a <b></b>c", "c a", [1, 0], "<b></b>c a"),
        ("a <b>H</b><i>2</i>O", "H2O ein", [1, 0], "<b>H</b><i>2</i>O ein"),
    ],
)  # fmt: skip
def test_pairs_go_with_their_words(marked: str, said: str, links: list[int], expected: str) -> None:
    from heedful.data.documents.hypertext import hypertext_parts
    from heedful.data.documents.passages import Passage

    parts = hypertext_parts(f"{marked}|", "xml", inline=["b", "i", "x"])
    (passage,) = [part for part in parts if isinstance(part, Passage)]
    text = passage.text.removesuffix("|")
    assert plain(moved(text, passage.marks, said, one_hot(text, said, links))) == expected


def test_what_crosses_or_has_no_partner_is_alone() -> None:
    marks = [Mark(0, "<a>", "opens"), Mark(0, "<b>", "opens"), Mark(1, "</a>", "closes"), Mark(1, "</b>", "closes")]
    assert {mark.role for mark in with_pairs(marks, ["a", "b", "a", "b"])} == {"alone"}
    pairs = with_pairs([*marks[:2], marks[3], marks[2]], ["a", "b", "b", "a"])
    assert [mark.pair for mark in pairs] == [0, 1, 1, 0]


def test_tags_within_tags_are_as_deep_as_they_are() -> None:
    depth = 2000
    marks = [Mark(2 * at, "<b>", "opens") for at in range(1, depth)]
    marks += [Mark(2 * depth, "</b>", "closes")] * (depth - 1)
    text = "a " * depth
    words = words_in(text)
    alignment = Alignment(words, words, [{number: 1.0} for number in range(depth)])
    made = moved(text, with_pairs(marks, ["b"] * len(marks)), text, alignment)
    assert plain(made) == plain(split_at(text, marks))


@pytest.mark.parametrize("kind", ["pairs", "alone"])
def test_thousands_of_tags_in_a_paragraph(kind: str) -> None:
    count, draw = 6000, random.Random(1)
    text = "w " * count
    words = words_in(text)
    ends = [(begin, "<b>", "opens") for begin, _ in words] + [(end, "</b>", "closes") for _, end in words]
    marks = [Mark(*each) for each in sorted(ends)] if kind == "pairs" else [Mark(begin, "<x/>") for begin, _ in words]
    alignment = Alignment(words, words, [{t: 0.7, draw.randrange(count): 0.2} for t in range(count)])
    begun = time.process_time()
    made = moved(text, with_pairs(marks, ["b"] * len(marks)), text, alignment)
    assert time.process_time() - begun < 12
    assert plain(made) == plain(split_at(text, marks))


def test_marks_belong_to_their_letters() -> None:
    text = "scho\u0308n, हिन्दी か\u3099き 3.5"
    words = ["scho\u0308n", ",", "हिन्दी", "か\u3099", "き", "3", ".", "5"]
    assert [text[begin:end] for begin, end in words_in(text)] == words
