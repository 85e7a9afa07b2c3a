"""Plain text, Markdown and HTML: only what is said in them is read, and all else comes back to the byte."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from documents import shouted_text
from heedful.data.documents.hypertext import hypertext_parts
from heedful.data.documents.markdown import markdown_parts
from heedful.data.documents.passages import Document, Passage
from heedful.data.documents.plain import plain_parts
from heedful.data.documents.read import READERS, read_document
from heedful.errors import InputError

READ = {
    "txt": plain_parts,
    "md": lambda text: markdown_parts(text)[0],
    "html": lambda text: hypertext_parts(text, "html"),
    "xml": lambda text: hypertext_parts(text, "xml"),
}


def whole(parts: list[str | Passage]) -> Document:
    return Document(parts, lambda own: "".join(own).encode("utf-8", "surrogatepass"))


def passages(kind: str, text: str) -> list[str]:
    return [passage.text for passage in whole(READ[kind](text)).passages]


BROKEN = """This is a paragraph that was broken at some width by hand,
so that its lines are all of about one length, and goes
on here."""
SNIPPETS = [
    "a",
    "B c. ",
    " ",
    "\n",
    "\r\n",
    "\n\n",
    "    ",
    "\t",
    "*",
    "**",
    "_",
    "`",
    "``",
    "[",
    "](x)",
    "](",
    ")",
    "![",
]
SNIPPETS += [
    "- ",
    "1. ",
    "> ",
    "# ",
    "| a | b |\n|--|--|\n",
    "|",
    "```\n",
    "~~",
    "\\",
    "\\*",
    "&amp;",
    "&",
    "<b>",
    "</b>",
]
SNIPPETS += [
    "<p>",
    "</p>",
    "<br>",
    "<",
    ">",
    "<!--",
    "-->",
    "<script>",
    "<a href='x'>",
    "<x/>",
    '"',
    "'",
    "===\n",
    "---\n",
]
SNIPPETS += ["  \nx", "[a]: b\n", "é日本。", "$v", "<http://a.b>", "http://a.b "]


@pytest.mark.parametrize("kind", READ)
@settings(max_examples=150)
@given(text=st.lists(st.sampled_from(SNIPPETS), max_size=24).map("".join))
def test_what_stays_comes_back_to_the_byte(kind: str, text: str) -> None:
    made = whole(READ[kind](text))
    assert made.written(None for _ in made.passages).decode() == text
    assert made.written(passage.placed for passage in made.passages).decode() == text


@pytest.mark.parametrize("kind", READ)
@settings(max_examples=50)
@given(text=st.text())
def test_any_text_comes_back(kind: str, text: str) -> None:
    made = whole(READ[kind](text.replace("\0", "")))
    assert made.written(passage.placed for passage in made.passages).decode() == text.replace("\0", "")


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("txt", "One.\n  two\r\n\r\n-----\nThree", ["One.", "two", "Three"]),
        ("txt", BROKEN + "\n\nx", [BROKEN, "x"]),
        ("html", "<p>a <b>b</b>\n c<p>d<br>e &amp; f", ["a b c", "d", "e & f"]),
        (
            "html",
            '<p>a<img alt="b">c</p><div translate=no>d<p>e</p>f</div><STYLE>g < </STYLE>h<b class="x notranslate">i</b>'
            "j<script>'<b>'</script>k<pre>l</pre><!doctype html>m<code>n</code>",
            ["ac", "hj", "k", "m"],
        ),
        ("html", "<ul><li><a href=x><i>All of it</i></a></li></ul>", ["All of it"]),
        ("xml", "<d><t>one <k>two</k> three</t><t> <k>four</k> </t></d>", ["one two three", "four"]),
        ("md", "---\nt: x\n---\n# A *b* ##\n\nC\n===\n\n    code\n\n```\ncode\n```\n", ["A b", "C"]),
        ("md", "> quoted\n> text\nlazy\n\n- item\n  more\n  1. deep\n", ["quoted text lazy", "item more", "deep"]),
        ("md", "| a | b \\| c |\n|---|---|\n| x `k` y | **z** |\n", ["a", "b | c", "x  y", "z"]),
        ("md", 'See [the *text*](http://x "t") and ![p](q) now  \nthen `c`.', ["See the text and  now", "then ."]),
        ("md", "<div>\n<p>inside</p>\n</div>\n\nouter &amp; \\*more\\*", ["inside", "outer & *more*"]),
        ("md", "- [ ] do [^n]\n- [x] *done* [x]\n\n# A {#i}\n\n[^n]: A b\n", ["do", "done [x]", "A", "A b"]),
        ("md", "Big *term*\n:   one\n    two\n: three\n\n: four\n", ["Big term", "one two", "three", "four"]),
        ("md", ":white_check_mark: fast :+1: at 12:30:45 or a:b:c\n", ["fast  at 12:30:45 or a:b:c"]),
        ("md", "[a]: http://x\n\n[a] and [b][a] <http://y> z", ["a and b  z"]),
    ],
)  # fmt: skip
def test_what_is_read(kind: str, text: str, expected: list[str]) -> None:
    assert [" ".join(found.split()) for found in passages(kind, text)] == [" ".join(each.split()) for each in expected]


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("md", "> quoted *text* that\n> is long\n\n- a `k` b\n", "> QUOTED *TEXT* THAT\n> IS LONG\n\n- A `k` B\n"),
        ("md", "Big term\n:   one\n    *two*\n: three\n", "BIG TERM\n:   ONE *TWO*\n: THREE\n"),
        ("md", "> a `k\n> l` b `m\tn` c\n", "> A `k\n> l` B\n> `m\tn` C\n"),
        ("md", 'one\n[two](x "a  b\nc") three\n', 'ONE\n[TWO](x "a  b\nc")\nTHREE\n'),
        ("md", "See [the *text*](http://x).\n", "SEE [THE *TEXT*](http://x).\n"),
        ("md", "| a \\| b | `\\|`c |\n|--|--|\n| d | e |\n", "| A \\| B | `\\|`C |\n|--|--|\n| D | E |\n"),
        ("html", '<p class="a">one <b>two</b>\n&amp; three</p>', '<p class="a">ONE <b>TWO</b> &amp; THREE</p>'),
        ("txt", "  one two\r\nthree.\r\n", "  ONE TWO\r\nTHREE.\r\n"),
        ("html", "<p> \u00a0one\u00a0\n<p>\u3000two", "<p> \u00a0ONE\u00a0\n<p>\u3000TWO"),
        ("html", "<p>&nbsp;one&nbsp;</p>", "<p>\u00a0ONE\u00a0</p>"),
        (
            "html",
            "a <i translate=no>x <b translate=yes>b</b> y</i> c",
            "A <i translate=no>x <b translate=yes>B</b> y</i> C",
        ),
        ("html", '<p data-translate="no">one<p x translate=no>two', '<p data-translate="no">ONE<p x translate=no>two'),
    ],
)
def test_other_words_take_their_place(kind: str, text: str, expected: str) -> None:
    assert shouted_text(whole(READ[kind](text))) == expected


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<p translate=no>one<p>two<h1>three</h1>", ["two", "three"]),
        ("<div><p translate=no>one <b>x</b>, </i>y</div>two", ["two"]),
        ("<ul><li translate=no>one<p>x<ul><li>y<li>z</ul><li>two<li translate=no>three</ul>four", ["two", "four"]),
        ("<ul translate=no><li>one<li>two</ul>three", ["three"]),
        ("<dl><dt translate=no>one<dd>two<dd translate=no>three<dl><dt>x</dl></dl>four", ["two", "four"]),
        ("<table><tr><td translate=no>one<table><tr><td>x</table><td>two</table>three", ["two", "three"]),
        ("<table><tr translate=no><td>one<tr><td>two</table>three", ["two", "three"]),
        ("<select><option translate=no>one<option>two</select>", ["two"]),
        ("<ruby>one<rt translate=no>x</ruby> two", ["one two"]),
        ("<body translate=no><p>one<p translate=yes>two<p>three</body>", ["two"]),
        ('<div translate="no">x<ul translate="yes">2<li translate=no>x</li>3</ul>x</div>5', ["2", "3", "5"]),
        ("<p>one <i translate=no>two <b translate=''>three</b> x</i> four", ["one three four"]),
        ("<p class=notranslate>one <b translate>two</b> <b>three</b> <b translate=yes>four</b>.", ["two", "four"]),
        ("<div translate=no><span translate=yes>one</div>two", ["one", "two"]),
        ("<pre translate=yes>one</pre><pre>two <i translate=yes>three</i></pre>", ["one", "three"]),
        ("<script translate=yes>one</script><div translate=no><svg translate=yes>two</svg></div>", []),
        ('<div translate=no><p x="translate=yes" data-translate=yes>one</div>', []),
    ],
)  # fmt: skip
def test_an_element_without_an_end_tag_ends_where_html_ends_it(page: str, expected: list[str]) -> None:
    assert passages("html", page) == expected


def test_lines_that_were_broken_are_broken_again() -> None:
    text = "  This paragraph was broken by hand at\r\n  fifty characters or so, like this one,\r\n  and ends.\r\n"
    made = shouted_text(whole(plain_parts(text)))
    assert made.split() == text.upper().split()
    assert all(len(line) <= 42 and line.startswith("  ") for line in made.splitlines())
    assert made.count("\r\n") == made.count("\n") == 3


APPLES = "My sister buys three red apples in this small shop"
ALONE = [
    APPLES,
    "The dog sees a house and the cat drinks the white milk",
    "My brother sells two old books to the teacher today",
    "The teacher opens the door of the house this morning",
]


@pytest.mark.parametrize(
    "lines",
    [
        ALONE,
        [f"{line}{'' if number == 1 else '.'}" for number, line in enumerate(ALONE)],
        [APPLES, "\u201eDer Hund sieht ein Haus, und die Katze trinkt Milch"],
        [APPLES, "2 dogs see a house and the cat drinks the white milk"],
        [f"{APPLES}.", "iPhones are in the house of the teacher this morning"],
        ["Моя сестра покупает три красных яблока в магазине", "Собака видит большой дом"],
    ],
)
def test_lines_that_begin_with_capitals_are_texts_of_their_own(lines: list[str]) -> None:
    assert passages("txt", "\n".join(lines)) == lines


@pytest.mark.parametrize(
    "lines",
    [
        ["Der Lehrer öffnet heute Morgen die Tür von dem alten", "Haus, und meine Schwester kauft in diesem", "laden."],
        ["我的姐姐今天在这家小店里买了三个红苹果那只狗看见了一座房子那只猫喝了一些白色的牛奶", "我的哥哥卖了两本旧书"],
    ],
)  # fmt: skip
def test_lines_were_wrapped_where_one_begins_without_a_capital(lines: list[str]) -> None:
    assert len(passages("txt", "\n".join(lines))) == 1


@pytest.mark.parametrize("said", ["1. first", "# head", "- item", "a *b* `c` [d](e) <f>", "> q", "+ x"])
def test_words_become_no_markup(said: str) -> None:
    made = whole(READ["md"]("Some text"))
    assert passages("md", made.written([[said]]).decode()) == [said]


@pytest.mark.parametrize(
    "text", ["an \\_\\_init\\_\\_ of a\\<b>", "a < b &lt;c> d_e &#95;f&#95;", "2 * 3 \\*4\\* \\[x](y)"]
)
def test_what_is_escaped_is_no_markup_among_other_words(text: str) -> None:
    (passage,) = (made := whole(READ["md"](text))).passages
    assert passages("md", made.written([[f"x {passage.text}"]]).decode()) == [f"x {passage.text}"]


def test_code_beside_code_stays_two() -> None:
    made = whole(READ["md"]("one `a` and **b** or `c` **d** two"))
    (passage,) = made.passages
    a, b, b_ends, c, d, d_ends = passage.marks
    placed = [a, c, " one ", b, "b", b_ends, d, "d", d_ends]
    assert made.written([placed]).decode() == "`a` `c` one **b** **d**"


def test_words_become_no_cell() -> None:
    made = whole(READ["md"]("| a |\n|---|\n| b |\n"))
    assert passages("md", made.written([["x | y"], ["|"]]).decode()) == ["x | y"]
    assert made.written([["x | y"], ["b"]]).decode() == "| x \\| y |\n|---|\n| b |\n"


def test_the_lines_of_html_in_markdown_are_those_of_the_file() -> None:
    made = whole(READ["md"]("a\n\n<div>\n<p>b</p>\n</div>\n\nc\n"))
    assert [(each.text, each.line) for each in made.passages] == [("a", 1), ("b", 4), ("c", 7)]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.txt", "\ufeffGrüße.\r\n".encode()),
        ("a.txt", "\ufeffGrüße.\r\n".encode("utf-16-le")),
        ("a.html", '<meta charset="iso-8859-1"><p>Grüße</p>'.encode("iso-8859-1")),
        ("a.md", b""),
        ("A.TXT", b"\r\r\n\n x"),
    ],
)
def test_encodings_and_line_ends_are_kept(tmp_path: Path, name: str, data: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    made = read_document(path)
    assert made.written(None for _ in made.passages) == data


def test_what_an_encoding_lacks_is_referred_to(tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    path.write_bytes('<meta charset="iso-8859-1"><p>Grüße</p>'.encode("iso-8859-1"))
    assert read_document(path).written([["日ü"]]).endswith("<p>&#26085;ü</p>".encode("iso-8859-1"))


@pytest.mark.parametrize("name", ["a.doc", "a", "a.pdf"])
def test_a_kind_that_is_not_read_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="is not the name of a kind of document") as raised:
        read_document(tmp_path / name)
    assert all(ending in raised.value.fix for ending in READERS)


def test_a_line_above_a_blank_one_is_no_front_matter() -> None:
    assert passages("md", "---\n\n# Title\n\nsome text\n\n---\n\nmore\n") == ["Title", "some text", "more"]
    assert passages("md", "---\ntitle: A\n---\nmore\n") == ["more"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("See [the guide], it helps", "x [x x][the guide], x x"),
        ("- a [The *whole*\n  guide] b", "- x [x *x* x][The *whole* guide] x"),
        ("[the guide][] and [more][the guide] or [here](there)", "[x x][the guide] x [x][the guide] x [x](there)"),
        ("# [The guide]", "# [x x][The guide]"),
    ],
)
def test_a_link_that_is_found_by_its_words_is_found_by_others(text: str, expected: str) -> None:
    end = "\n\n[the guide]: http://x\n[the *whole* guide]: http://y\n"
    document = whole(READ["md"](text + end))
    words = [
        [re.sub(r"\w+", "x", part) if isinstance(part, str) else part for part in each.placed]
        for each in document.passages
    ]
    assert " ".join(document.written(words).decode().removesuffix(end).split()) == expected
    assert document.written([each.placed for each in document.passages]).decode() == text + end
