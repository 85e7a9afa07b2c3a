"""Only what is said changes, in documents of all kinds; presentations, workbooks and OpenDocument files."""

import io
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree

import openpyxl
import pytest
from openpyxl.comments import Comment
from openpyxl.worksheet.table import Table

from documents import ANY, CELL, DOCUMENTS, NOTES, OPEN, SHARED, SHEET, opened, presentation, shouted, workbook
from heedful.data.documents.passages import Document
from heedful.data.documents.read import READERS

Read = Callable[[str, bytes | str], Document]
Event = tuple[str, ...]
OF_OLD_WORDS = {"lang", "dirty", "err"}
TARGETS = re.compile(
    r'\s*<target\b[^<>]*(?:/>|>.*?</target>)| (?:trgLang|target-language|state|subState|state-qualifier)="[^"]*"',
    re.IGNORECASE,
)
MESSAGES = re.compile(r'(msgstr(?:\[\d\])?) (?:".*"\n)+')


def all_but_words(name: str, data: bytes) -> object:
    """What must stay the same in a document: all, but the case of letters, and its translations if it has such."""
    if zipfile.is_zipfile(io.BytesIO(data)):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return [(info.filename, info.compress_type, [*events(archive.read(info))]) for info in archive.infolist()]
    text = data.decode("utf-16" if data.startswith(b"\xff\xfe") else "utf-8").lower()
    return MESSAGES.sub(r"\1", TARGETS.sub("", text)) if name.endswith((".xlf", ".xliff", ".po")) else text


def events(content: bytes) -> Iterator[Event]:
    """The tags of a member that is XML, and its texts, each with its format; runs of one format are joined."""
    if not content.startswith(b"<"):
        yield (repr(content),)
        return
    last: Event = ()
    for event in _events(ElementTree.fromstring(content), ""):
        if last[:2] == event[:2] and event[0] == "text":
            last = (*event[:2], last[2] + event[2])
        else:
            yield last
            last = event
    yield last


def _events(element: ElementTree.Element, format_: str) -> Iterator[Event]:
    name = element.tag.rpartition("}")[2]
    if name == "r":  # a run
        found = next((own for own in element if own.tag.endswith("}rPr")), None)
        own_format = "" if found is None else " ".join(_format(found))
        for own in element:
            if own is not found:
                yield from _events(own, own_format)
    elif name == "proofErr":  # it is about the old words
        return
    elif name == "t":
        yield ("text", format_, (element.text or "").lower())
    else:
        yield (name, *map(str, sorted(element.attrib.items())))
        yield from [("text", "", element.text.lower())] if element.text else []
        for own in element:
            yield from _events(own, format_)
        yield (f"/{name}",)
    if element.tail and element.tail.strip():
        yield ("text", "", element.tail.lower())


def _format(element: ElementTree.Element) -> list[str]:
    return [
        f"{own.tag} {key} {value}"
        for own in element.iter()
        for key, value in [("", ""), *own.attrib.items()]
        if (key or own is not element) and key not in OF_OLD_WORDS and not own.tag.endswith("}lang")
    ]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_nothing_but_the_words_changes(read: Read, name: str) -> None:
    document = read(name, DOCUMENTS[name])
    made = shouted(document)
    assert made != DOCUMENTS[name]
    before, after = (all_but_words(name, data) for data in (DOCUMENTS[name], made))
    assert after == before


def test_each_kind_of_document_is_under_that_law() -> None:
    same = {".markdown": ".md", ".htm": ".html"} | dict.fromkeys((".sdlxliff", ".mqxliff", ".mxliff"), ".xlf")
    assert {same.get(ending, ending) for ending in READERS} == {Path(name).suffix for name in DOCUMENTS}


HOSTILE = "Ba <b> & > \" ' | * # - ` [x](y) {z} ]]> _x_ \\n &amp; </w:t> </a:t> </text:p> \u2028 1. ne"


@pytest.mark.parametrize("name", [name for name in DOCUMENTS if not name.endswith((".srt", ".xlf", ".xliff", ".po"))])
def test_any_translation_is_words_and_no_markup(read: Read, name: str) -> None:
    """In SubRip, which has no escapes, a tag is one."""
    document = read(name, DOCUMENTS[name])
    middle = [len(each.marks) // 2 for each in document.passages]
    said = zip(document.passages, middle, strict=True)
    again = read(name, document.written([*each.marks[:half], HOSTILE, *each.marks[half:]] for each, half in said))
    assert [each.text.split() for each in again.passages] == [HOSTILE.split() for _ in document.passages]


def texts(document: Document) -> list[str]:
    return [passage.text for passage in document.passages]


def test_slides_and_their_notes_are_in_the_order_of_the_show(read: Read) -> None:
    document = read("a.pptx", presentation())
    assert [(each.text, each.place.rpartition(", ")[0]) for each in document.passages] == [
        ("ba de & gi", "slide 1, paragraph 1"),
        ("ko", "slide 1, paragraph 1"),
        ("lu", "slide 1, paragraph 2"),
        ("ba de & gi", "slide 2, paragraph 1"),
        ("su", "slide 2, paragraph 1"),
        ("12", "slide 2, paragraph 2"),
        ("ma ne", "notes of slide 1, paragraph 1"),
    ]
    with zipfile.ZipFile(io.BytesIO(shouted(document))) as made:
        slide = made.read("ppt/slides/slide2.xml").decode()
        assert '<a:r><a:t>BA </a:t></a:r><a:r><a:rPr b="1"/><a:t>DE &amp; GI</a:t></a:r><a:br>' in slide
        assert '<a:rPr><a:hlinkClick r:id="rId9"/></a:rPr><a:t>KO</a:t>' in slide
        assert made.read("ppt/notesSlides/notesSlide1.xml").decode() == NOTES.replace(
            "<a:rPr lang='en'/><a:t>ma ne", "<a:t>MA NE"
        )


def test_what_formulas_and_tables_name_stays(read: Read) -> None:
    document = read("a.xlsx", workbook())
    assert texts(document) == ["su", "ba de", "gi", "ko & lu", "ne pi", "ro"]
    assert document.notes == ("2 texts left, as formulas, tables or pivots name them",)
    assert document.passages[1].place == "sheet 1, cell A1, 'ba de'"
    assert document.passages[2].place == "sheet 1, cell G1, 'gi'"
    with zipfile.ZipFile(io.BytesIO(shouted(document))) as made:
        shared, sheet = (made.read(f"xl/{name}.xml").decode() for name in ("sharedStrings", "worksheets/sheet1"))
    assert sheet == SHEET.replace("<t>su", "<t>SU")
    assert shared[: shared.index("<r>")] == SHARED[: SHARED.index("<r>")].replace("ba de", "BA DE").replace(
        "gi\nko &amp; lu\n", "GI\nKO &amp; LU\n"
    )
    indented = SHARED.replace("<si><t", "<si>\n  <t").replace("ba de", "<![CDATA[ba de]]>")
    assert texts(read("a.xlsx", workbook(indented))) == texts(document)
    prefixed = re.sub(r"<(/?)(?=[a-z])", r"<\1x:", SHARED).replace("xmlns=", "xmlns:x=")
    assert texts(read("a.xlsx", workbook(prefixed))) == texts(document)


def test_a_workbook_of_another_program_is_read_by_it(read: Read, tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    sheet = book.worksheets[0]
    for row in (["head", "value"], ["ba\nde", 1.5], ["no", True], ['=A2&"x"', '=IF(A3="No",1,2)'], ["12", "no"]):
        sheet.append(row)
    sheet["A2"].comment = Comment("gi ko", "lu")
    sheet.add_table(Table(displayName="ma", ref="A1:B5"))
    book.create_sheet("ne").append(["pi ro", "ba\nde"])
    book.save(tmp_path / "b.xlsx")
    document = read("a.xlsx", (tmp_path / "b.xlsx").read_bytes())
    assert {*texts(document)} == {"ba", "de", "12", "gi ko", "pi ro"}
    again = openpyxl.load_workbook(io.BytesIO(shouted(document)))
    assert [[cell.value for cell in row] for row in again.worksheets[0].rows] == [
        ["head", "value"],
        ["BA\nDE", 1.5],
        ["no", True],
        ['=A2&"x"', '=IF(A3="No",1,2)'],
        ["12", "no"],
    ]
    comment = again.worksheets[0]["A2"].comment
    assert comment is not None
    assert comment.text == "GI KO"
    assert [cell.value for cell in again["ne"][1]] == ["PI RO", "BA\nDE"]


def test_notes_comments_and_text_boxes_move_with_the_words_around_them(read: Read) -> None:
    document = read("a.odt", opened("text"))
    assert texts(document) == ["ba de", "gi ko & lu", "su ro", "pi", "ma ne", "ba ro"]
    assert document.notes == (
        "2 texts left, as formulas name them",
        "1 tracked deletion is left as it was written: accept or reject the changes first",
    )
    places = {each.text: each.place for each in document.passages}
    assert places["ba ro"] == "headers and footers, paragraph 1, 'ba ro'"
    (mark,) = document.passages[1].marks
    said: list[list[str | Mark]] = [[each.text.upper()] for each in document.passages]
    said[1] = ["& ", mark, "LU"]
    with zipfile.ZipFile(io.BytesIO(document.written(said))) as made:
        content = made.read("content.xml").decode()
    assert "<text:p>&amp; <text:note " in content
    assert "<text:note-body><text:p>MA NE</text:p></text:note-body></text:note>LU<text:line-break/>" in content
    for cell in (
        CELL.format("string", "", "ba"),
        CELL.format("float", ' office:value="1"', "one"),
        CELL.format("string", "", "yes"),
    ):
        assert cell in content


def test_elements_deep_inside_each_other_are_read(read: Read) -> None:
    deep = "<text:p>ba<text:note>" * 200 + "<text:p>de</text:p>" + "</text:note>gi</text:p>" * 200
    begin, end = OPEN.index("<text:tracked"), OPEN.index("</office:document")
    document = read("a.odt", opened("text", OPEN[:begin] + deep + OPEN[end:]))
    assert len(document.passages) == 202
    with zipfile.ZipFile(io.BytesIO(shouted(document))) as made:
        assert (
            made.read("content.xml").decode()
            == OPEN[:begin] + re.sub(">(ba|de|gi)<", lambda found: found[0].upper(), deep) + OPEN[end:]
        )


def test_escapes_of_a_workbook_are_the_characters_that_they_stand_for(read: Read) -> None:
    """`_xHHHH_` in texts and in runs; what only looks like one is written so again."""
    cells = "<si><t>ba_x0007_ _x00e9_</t></si><si><r><t>gi _x005F_x0041_</t></r></si><si><t>ko_x005F_x000D_</t></si>"
    data = workbook(f'{ANY}<sst xmlns="x">{cells}</sst>')
    document = read("a.xlsx", data)
    assert texts(document)[1:] == ["ba\x07 é", "gi _x0041_", "ko_x000D_"]
    with zipfile.ZipFile(io.BytesIO(document.written([each.text + "!"] for each in document.passages))) as made:
        shared = made.read("xl/sharedStrings.xml").decode()
    assert "<t>ba_x0007_ é!</t>" in shared
    assert "gi _x005F_x0041_!</t>" in shared
    assert "<t>ko_x005F_x000D_!</t>" in shared
    again = document.written([HOSTILE + " _x0041_ \x0b"] for _ in document.passages)
    assert [each.text for each in read("a.xlsx", again).passages] == [HOSTILE + " _x0041_ \x0b"] * 4
