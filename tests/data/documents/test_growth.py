"""Documents of any kind are read and written in time that grows as they do, whatever is repeated in them"""

import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import pytest

from documents import NOTES, OPEN, PO, SHARED, SHEET, SLIDE, W, field, opened, presentation, run, word, workbook, xliff
from growth import growing
from heedful.data.documents.passages import Mark, Passage, refuse_large, with_pairs
from heedful.data.documents.read import READERS
from heedful.data.documents.sentences import gap_between, halves, sentences_in
from heedful.data.documents.tags import Alignment, moved
from heedful.data.documents.words import words_in
from heedful.data.protected import lost, lost_placeholders, masked, without
from heedful.errors import InputError

Tally = Callable[[str, int], None]
Wrap = Callable[[str], bytes]

TEXTS = [
    *(
        "a",
        "a ",
        ".",
        ". ",
        "a. ",
        "a.\n",
        "...",
        "\n",
        "\r",
        " ",
        "\t",
        "\u00a0",
        "-",
        "- ",
        "- a\n",
        "1. a\n",
        "(a) ",
    ),
    *(
        "'",
        '"',
        "(",
        ")",
        "?",
        ", ",
        "{",
        "{{",
        "{%",
        "${",
        "%(",
        "%s",
        "$a",
        "<",
        "<a",
        "<a ",
        "[",
        "[a ",
        '[a b="c" ',
    ),
    *("&", "&amp;", "&#", "http://", "www.", "a@", "a@b.c ", "1", "1 ", "1,", "000 ", "1 h 00 ", "\u3042", "\u3002"),
    *("{n} ", "{n}", "  {n}", "\u2014 ", "A. ", "Mr. ", f"{'a ' * 30}\n"),
]
MARKDOWN = [
    *("[^", "[[", "![", "](", "[a](", "[a](b ", '[a]("', "[a](<", "[a](b) ", "[a][b] ", "[a] ", "[a]: b\n", "[", "]["),
    *(
        "`",
        "```\n",
        "$",
        "$$",
        "$a$ ",
        "*",
        "**",
        "*a* ",
        "**a",
        "_",
        "~~",
        "#",
        "# a\n",
        "- a\n",
        "- [ ] a\n",
        "1. a\n",
    ),
    *("> ", "> a\n", "> [!NOTE]\n> a\n", "|a", "|a|b|\n", "|a|\n|-|\n", ":", ":a:", ": a\n", "@a", "[@", "[a;", "-@a"),
    *("{{", "{{ a\n", "{{a}} ", "{{a}}\n", "{%", "{% highlight ", "{% highlight\n", "{{< highlight ", "{#a", "{a="),
    *("import a\n", "import a ", "export const a\n", "---\n", "+++\n", "--8<--", "!!! ", '=== "', "*[a]: ", "::: a\n"),
    *(
        "<code>",
        "<code>\n",
        "<b translate=no>",
        "<div>\n",
        "<!--",
        "\\",
        "\\a{",
        "\\\n",
        "a\n=\n",
        "a  \n",
        "a\n\n",
        "    a\n",
    ),
]
TAGS = [
    *(
        "<a>",
        "</a>",
        "<a/>",
        "<a ",
        '<a b="',
        "<a b='",
        '<a b="c">',
        '<a b="<',
        "<b>a</b> ",
        "<b>a</b>",
        "<b>a",
        "a</b>",
    ),
    *(
        "<!--",
        "<!--a-->",
        "<!",
        "<?",
        "<![CDATA[",
        "<x:y>a</x:y>",
        "<b>a<i>b</b>c</i>",
        "<i> </i>",
        "<b><i>",
        "a <x/> ",
    ),
]
PAGES = [
    *("<p>", "<p>a", "<div>a", "</div>", "a<br>", "<script>", "<title>a</title>", "<code>a</code> ", "<li>a", "<td>a"),
    *(
        "<code><b translate=yes>a</b>",
        "<i translate=no><b translate=yes>a",
        "<p translate=no>a<p>",
        "<dd>a",
        "<option>a",
    ),
    *("<ruby>a<rt>b", '<img alt="a">', '<img alt="a"> a ', "<meta name=description content=a>", "<svg>", "<em> a"),
]
CODES = [
    *(
        '<g id="1">a</g> ',
        "<x/>a ",
        "a<x/> ",
        '<x ctype="lb"/>a',
        '<bpt id="1"/>a<ept id="1"/> ',
        '<bpt id="1"/>a ',
        "&lt;",
    ),
    *("&#10;", "{a, plural, one {a", "{n, plural, one {a} other {b}} ", "{1&gt;a&lt;1} ", "{1&gt;", "&lt;1}", "}", "#"),
    *(
        "<![CDATA[a]]>",
        "<!--a-->",
        '<mrk mtype="seg" mid="1">a</mrk> ',
        '<mrk mtype="protected">a</mrk> ',
        "<ph>a</ph> ",
    ),
    *('<sm id="1" translate="no"/>', '<sm id="1" translate="no"/>a', '<sm id="1" translate="no"/>a<em startRef="1"/>'),
    *('<sc id="1"/>a<ec startRef="1"/>', '<pc id="1">a</pc>'),
]
UNIT = '<trans-unit id="1"><source>a</source></trans-unit>'
MESSAGES = [
    *('msgid "a"\nmsgstr ""\n\n', '#, fuzzy\nmsgid "a"\nmsgstr "b"\n\n', "# a\n", '#~ msgid "a"\n', "\n", " "),
    'msgctxt "b"\nmsgid "a"\nmsgid_plural "b"\nmsgstr[0] ""\nmsgstr[1] ""\n\n',
]
TIMES = "1\n00:00:01,000 --> 00:00:02,500\n"
CUES = [
    *(
        "<i>",
        "</i>",
        "<i>a</i> ",
        "{\\an8}",
        "{\\",
        "<rt>a",
        "<rt>a</rt>",
        "\u266aa\n",
        "A: ",
        "AB: a\n",
        ">> a\n",
        "- a\n",
    ),
    *(TIMES, f"{TIMES}a\n\n", f"{TIMES}- a\n- b\n\n", "1\n", "<v Bob>a\n", "a\n"),
]
LINK, FIELD = f"<w:hyperlink>{run('a ')}</w:hyperlink>", field("begin") + field("separate") + run("a") + field("end")
RUNS = [
    *(
        run("a"),
        run("a ") + run("b ", "<w:b/>"),
        run("a") + run("b", "<w:b/>"),
        LINK,
        FIELD,
        field("begin"),
        field("end"),
    ),
    *("<w:bookmarkStart/>", "<w:hyperlink>", f"{run('a')}<w:r><w:br/></w:r>", f"<w:ins>{run('a')}</w:ins>", "<w:r/>"),
    *(f"<w:sdt><w:sdtPr/><w:sdtContent>{run('a')}</w:sdtContent></w:sdt>", f"<w:p>{run('a')}</w:p>", field("separate")),
]
DRAWN = [
    *("<a:r><a:t>a</a:t></a:r>", "<a:r><a:rPr b='1'/><a:t>a</a:t></a:r><a:r><a:t>b</a:t></a:r>", "<a:br/>", "<a:fld/>"),
    *("</a:p><a:p><a:r><a:t>a</a:t></a:r>", "<a:fld><a:t>a</a:t></a:fld><a:r><a:t>a</a:t></a:r>"),
]
CELLS = [
    *('<c r="A1" t="s"><v>0</v></c>', '<c t="inlineStr"><is><t>a</t></is></c>', '<c><f>"a"&amp;"b"</f></c>', "<c><f>"),
    *('<c><f>"</f></c>', "<f/>", "<c/>"),
]
PIECES = [
    *("a ", "<text:s/>", "<text:tab/>a", "<text:span>a</text:span> ", "<text:span/>", "<text:x>a</text:x>", "<!--a-->"),
    *("<text:note><text:p>a</text:p></text:note>", "<text:note>a</text:note>a", "<text:line-break/>", "<![CDATA[a]]>"),
    *("</text:p><text:p>a", '<text:x table:formula="&quot;a&quot;"/>', "<text:ruby><text:ruby-text>a</text:ruby-text>"),
]
DEEP_RUNS = [
    *(("<w:hyperlink>", run("a"), "</w:hyperlink>"), (f"<w:hyperlink>{run('a ')}", run("a"), "</w:hyperlink>")),
    *((field("begin") + field("separate"), run("a"), field("end")), ("<w:x>", run("a"), "</w:x>")),
    ("<w:hyperlink>", f"{run('a')}<w:r><w:br/></w:r>" * 99, "</w:hyperlink>"),
]


def paragraph(text: str) -> bytes:
    return word(f"<w:document {W}><w:body><w:p>{run('x ')}{text}{run('y')}</w:p></w:body></w:document>")


def slide(text: str) -> bytes:
    return presentation(SLIDE.replace("<a:p>", f"<a:p>{text}</a:p><a:p>", 1), NOTES)


def shared(text: str) -> bytes:
    return workbook(SHARED.replace("<si/>", text))


def rich(text: str) -> bytes:
    return shared(f"<si><r><t>x</t></r>{text}</si>")


def open_paragraph(text: str) -> bytes:
    return opened("text", OPEN.replace("<text:p/>", f"<text:p>x {text}</text:p>"))


def coded(text: str, space: str = "") -> bytes:
    return xliff(f'<trans-unit id="1"{space}><source>{text}</source></trans-unit>')


def segmented(text: str) -> bytes:
    return xliff(f"<trans-unit><source>a</source><seg-source>{text}</seg-source><target>{text}</target></trans-unit>")


def cues(text: str) -> bytes:
    return f"{TIMES}a {text}b\n".encode()


def message(text: str) -> bytes:
    return f'{PO}\nmsgid "{text}"\nmsgstr ""\n'.encode()


# By the ending: how a text is made a document, and what is repeated in it.
REPEATED: dict[str, list[tuple[Wrap, Sequence[str]]]] = {
    ".txt": [(str.encode, TEXTS)],
    ".md": [(str.encode, TEXTS + MARKDOWN)],
    ".html": [(str.encode, TEXTS + TAGS + PAGES)],
    ".xlf": [
        (coded, TAGS + CODES),
        (partial(coded, space=' xml:space="preserve"'), CODES),
        (segmented, ['<mrk mtype="seg" mid="1">a</mrk>', '<mrk mtype="seg" mid="1"/>']),
        (xliff, [UNIT, UNIT.replace("</tr", "<target>b</target></tr"), f'<group id="1">{UNIT}</group>']),
    ],
    ".po": [
        (message, ["a", "a ", "\\n", '\\"', "{", "{a, plural, one {", "%s", '"\n"a', "<b>"]),
        (str.encode, MESSAGES),
    ],
    ".srt": [(cues, TEXTS + CUES)],
    ".vtt": [(lambda text: b"WEBVTT\n\n" + cues(text), CUES)],
    ".docx": [(paragraph, RUNS)],
    ".pptx": [(slide, DRAWN)],
    ".xlsx": [
        (shared, ["<si/>", "<si><t>a</t></si>", "<si><t>a\n", "<si><r><t>a"]),
        (rich, ["<r><t>a</t></r>", "<r><rPr><b/></rPr><t>a</t></r><r><t>b</t></r>", "<r><t>a\n\nb</t></r>", "<rPh/>"]),
        (lambda text: workbook(SHARED, SHEET.replace("</row>", f"{text}</row>")), CELLS),
    ],
    ".odt": [(open_paragraph, PIECES)],
}
# What is nested: its beginning, its inside and its end.
NESTED: dict[str, list[tuple[Wrap, Sequence[tuple[str, str, str]]]]] = {
    ".html": [(str.encode, [("<b>a ", "a", "</b>"), ("<div>", "a", "</div>"), ("<ul><li>", "a", "</ul>")])],
    ".md": [(str.encode, [("*a **b ", "c", "** d*"), ("[", "a", "](b)"), ("> ", "a", "\n")])],
    ".xlf": [
        (coded, [("<g>a ", "a", "</g>"), ("<ph>", "a", "</ph>"), ("{a, plural, one {", "a", "}}")]),
        (coded, [('<mrk mtype="protected"><mrk mtype="x-its-translate-yes">', "a", "</mrk></mrk>")]),
        (xliff, [(f'<group id="1">{UNIT}', UNIT, "</group>")]),
    ],
    ".docx": [(paragraph, DEEP_RUNS)],
    ".odt": [(open_paragraph, [(f"<text:{name}>a ", "b", f"</text:{name}>") for name in ("span", "note", "a")])],
    ".ods": [(open_paragraph, [("<text:note><text:p>a ", "b", "</text:p></text:note>")])],
}


def made(ending: str) -> Iterator[tuple[str, Callable[[int], bytes]]]:
    for number, (wrap, parts) in enumerate(REPEATED.get(ending, [])):
        for part in parts:
            yield f"{number}: {part}", lambda count, wrap=wrap, part=part: wrap(part * count)
    for number, (wrap, triples) in enumerate(NESTED.get(ending, [])):
        for begin, inside, end in triples:
            yield (
                f"{number}: nested {begin}",
                lambda count, wrap=wrap, begin=begin, inside=inside, end=end: wrap(
                    begin * count + inside + end * count
                ),
            )


def read_and_written(ending: str, data: bytes) -> None:
    """Reads a document, and writes it with its own words, and with others."""
    try:
        document = READERS[ending](data, "a", "de")
        refuse_large(document.passages, "a")
    except InputError:
        return
    for change in (str, str.swapcase):
        document.written([changed(passage, change) for passage in document.passages], [True] * len(document.passages))


def changed(passage: Passage, change: Callable[[str], str]) -> list[str | Mark]:
    text = change(passage.text)
    words, others = words_in(passage.text), words_in(text)
    shares = [{min(number, len(words) - 1): 1.0} for number in range(len(others))]
    return moved(passage.text, passage.marks, text, Alignment(words, others, shares))


@pytest.mark.parametrize("ending", sorted({*REPEATED, *NESTED}))
def test_documents(ending: str, full: bool, tally: Tally) -> None:
    inputs = dict(made(ending))
    assert growing(partial(read_and_written, ending), inputs, most=10_000 if full else 1_000) == {}
    tally("X2 growth of readers and writers", len(inputs))


@pytest.mark.parametrize(
    "act",
    [
        words_in,
        partial(sentences_in, language="en"),
        partial(halves, clauses=False),
        masked,
        without,
        lambda text: lost(text, text),
        lambda text: lost_placeholders(text, text),
        lambda text: gap_between(text, " ", text),
    ],
)
def test_texts(act: Callable[[str], object], full: bool, tally: Tally) -> None:
    inputs = {part: (lambda count, part=part: part * count) for part in TEXTS}
    assert growing(act, inputs, most=30_000 if full else 3_000) == {}
    tally("X2 growth of readers and writers", len(inputs))


def with_marks(kind: str, spaces: str) -> Callable[[int], tuple[str, list[Mark], Alignment]]:
    """A text of so many words with a mark, or two, at each of them, and a translation with its words in another order
    within each sentence of 30, where each word has something of ten."""

    def make(count: int) -> tuple[str, list[Mark], Alignment]:
        draw, text = random.Random(1), f"w{spaces}" * count
        begins = range(0, len(text), 1 + len(spaces))
        ends = [Mark(at, "<b>", "opens") for at in begins] + [Mark(at + 1, "</b>", "closes") for at in begins]
        marks = sorted(ends, key=lambda mark: mark.at) if kind == "pairs" else [Mark(at, "<x/>") for at in begins]
        words = words_in(text)
        rows = [
            sorted({min(word // 30 * 30 + draw.randrange(30), len(words) - 1) for _ in range(10)})
            for word in range(len(words))
        ]
        alignment = Alignment(words, words, [dict.fromkeys(row, 1 / len(row)) for row in rows])
        return text, with_pairs(marks, ["b"] * len(marks)), alignment

    return make


@pytest.mark.parametrize("kind", ["pairs", "alone"])
@pytest.mark.parametrize("spaces", ["", " "])
def test_thousands_of_formats_in_a_paragraph(kind: str, spaces: str, full: bool, tally: Tally) -> None:
    """Such as a heading with each letter in a colour of its own."""

    def move(given: tuple[str, list[Mark], Alignment]) -> None:
        text, marks, alignment = given
        moved(text, marks, text, alignment)

    assert growing(move, {kind: with_marks(kind, spaces)}, most=10_000 if full else 3_000) == {}
    tally("X2 growth of readers and writers", 1)
