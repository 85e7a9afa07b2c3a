"""Files of other formats in place of sentences, one a line, or of a table: refused in one line, however they are given,
before time is spent on them."""

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from heedful.data.text.conversations import read_conversations
from heedful.data.text.documents import read_documents
from heedful.data.text.glossary import read_glossary
from heedful.data.text.labelled import read_labelled
from heedful.data.text.reading import read_whole
from heedful.data.text.trees import read_trees
from heedful.errors import HeedError, InputError

SIDES = {"en": "the cat sleeps", "de": "die Katze schläft"}


def of(form: str, head: str = "", end: str = "") -> Callable[[str], str]:
    """A file of 29 parts with a text and a number of two digits."""
    return lambda text: head + "".join(form.format(text=text, n=f"{i:02}") for i in range(1, 30)) + end


FORMATS = {
    "subtitles": {
        "SubRip": of("{n}\n00:00:{n},000 --> 00:00:{n},900\n{text}\n\n"),
        "SubRip of many lines": of("{n}\n00:00:{n},000 --> 00:00:{n},900\n{text}\n{text}\n\n"),
        "WebVTT": of("00:{n}.000 --> 00:{n}.900\n{text}\n\n", "WEBVTT\n\n"),
        "WebVTT without hours": of("{n}:01.000 --> {n}:02.000\n{text}\n\n"),
        "Substation Alpha": of("Dialogue: 0,0:00:{n}.00,0:00:{n}.90,,,0,0,0,,{text}\n", "[Script Info]\n"),
        "MicroDVD": of("{{{n}}}{{{n}9}}{text}\n"),
        "SubViewer": of("0:00:{n}.000,0:00:{n}.900\n{text}\n\n"),
        "LRC": of("[00:{n}.00]{text}\n"),
    },
    "a page, or XML": {
        "HTML": of("<p>{text}</p>\n", "<!DOCTYPE html>\n<html><body>\n", "</body></html>\n"),
        "a part of HTML": of("  <p>{text}</p>\n"),
        "XML": of("{text}\n", '<?xml version="1.0"?>\n<a>\n', "</a>\n"),
        "SGML": of('<seg id="{n}"> {text} </seg>\n', '<refset setid="a">\n', "</refset>\n"),
    },
    "JSON": {
        "an object": of('  "k{n}": "{text}",\n', "{\n", '  "k": ""\n}\n'),
        "a list": of('  "{text}",\n', "[\n", '  ""\n]\n'),
        "an object a line": of('{{"text": "{text}"}}\n'),
    },
    "a log": {
        "dates": of("2024-05-01 12:00:{n},123 {text}\n"),
        "dates of ISO": of("[2024-05-01T12:00:{n}Z] {text}\n"),
        "minutes": of("2024-05-01 12:{n} {text}\n"),
        "dates of syslog": of("May  1 12:00:{n} host app[3]: {text}\n"),
        "times": of("12:00:{n} {text}\n"),
        "levels": of("INFO:root:{text}\n"),
        "levels in brackets": of("[WARNING] {text}\n"),
    },
    "a program's output": {
        "of a compiler": of("src/main.c:{n}: {text}\n"),
        "of fairseq": of("S-{n}\t{text}\nH-{n}\t-0.3\t{text}\nP-{n}\t-0.1 -0.2\n"),
    },
    "columns with ||| between them": {
        "best translations": of("{n} ||| {text} ||| F0= -1 ||| -1.2\n"),
        "both sides": of("{text} ||| {text}\n"),
    },
}
CASES = [(told, name) for told, files in FORMATS.items() for name in files]
NOT_ALONE = [("JSON", "a list"), ("JSON", "an object a line")]  # a table or its key is looked for in them


def refused(read: Callable[[], object], told: str) -> None:
    with pytest.raises(InputError, match=told) as caught:
        read()
    assert caught.value.fix
    assert "\n" not in f"{caught.value}{caught.value.fix}"


def zipped(folder: Path, path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for file in folder.iterdir():
            archive.write(file, file.name)
    return path


@pytest.mark.parametrize(("told", "name"), CASES)
def test_files_whose_lines_are_no_sentences(told: str, name: str, tmp_path: Path) -> None:
    (folder := tmp_path / "data").mkdir()
    files = [folder / f"train.{language}" for language in SIDES]
    for file in files:
        file.write_text(FORMATS[told][name](SIDES[file.suffix[1:]]))
    message = rf"train.*{told.replace('|', '[|]')}, expected one sentence a line"
    refused(lambda: read_whole([str(file) for file in files]), message)
    refused(lambda: read_whole(folder), message)
    refused(lambda: read_whole(zipped(folder, tmp_path / "data.zip")), message)
    (alone := folder / "train.txt").write_text(files[0].read_text())
    if (told, name) not in NOT_ALONE:
        refused(lambda: read_whole(alone), message)


@pytest.mark.parametrize(
    ("suffix", "told"),
    [(".md", "a document with marks"), (".yaml", "keys and their values"), (".properties", "keys and their values")],
)
def test_files_that_are_called_other_than_text(suffix: str, told: str, tmp_path: Path) -> None:
    files = [tmp_path / f"a.{language}{suffix}" for language in SIDES]
    for file in files:
        file.write_text(of("{text}\n")(SIDES["en"]))
    refused(lambda: read_whole([str(file) for file in files]), told)


def test_a_table_is_no_side(tmp_path: Path) -> None:
    files = [tmp_path / f"a.{language}" for language in SIDES]
    for file in files:
        file.write_text(of("{n}\t{text}\n")(SIDES[file.suffix[1:]]))
    refused(lambda: read_whole([str(file) for file in files]), "a table, expected one sentence a line")


SENTENCES = [
    "{text}", "<2de> {text}", "[{n}] {text}", "({n}) {text}", "- {text}", "{n}. {text}", "# {text}", "* {text}",
    "5:{n} {text}", "Chapter {n}:1 {text}", "At 12:00:{n} {text}", '"{text}", she said', "{{0}} {text}", "{text} | {n}",
    "Info: {text}", "Error {n}: {text}", "May {n} {text}", "{text} <b>now</b>", "<b>{text}</b> now", "a < b and {text}",
    "http://a.example/{n} {text}", "NOTE {text}", "{text} --> {n}", "en:{n}: {text}", "...", "{text}\u2028{n}",
]  # fmt: skip


@pytest.mark.parametrize("form", SENTENCES)
def test_sentences_with_signs_are_sentences(form: str, tmp_path: Path) -> None:
    files = [tmp_path / f"train.{language}" for language in SIDES]
    for file in files:
        file.write_text(of(f"{form}\n")(SIDES[file.suffix[1:]]))
    assert len(read_whole([str(file) for file in files]).train) == 29
    assert len(read_whole(tmp_path).train) == 29


def test_a_few_lines_of_another_format_are_told_by_the_check_and_not_refused(tmp_path: Path) -> None:
    files = [tmp_path / f"train.{language}" for language in SIDES]
    for file in files:
        text = SIDES[file.suffix[1:]]
        file.write_text(of("{text}\n")(text) + f"<p>{text}</p>\nINFO: {text}\n00:01.000 --> 00:02.000\n" * 2)
    assert len(read_whole(tmp_path).train) == 35


# Unquoted commas


@pytest.mark.parametrize(
    "rows",
    [
        "Well, yes {n},Nun, ja {n}\n",
        "Well, yes {n},Ja {n}\n",
        "Well, yes, so {n},Nun, ja, also {n}\n",
        "Well,Nun, ja {n}\n",
    ],
)
def test_commas_that_cut_sentences(rows: str, tmp_path: Path) -> None:
    (path := tmp_path / "p.csv").write_text(of(rows)(""))
    refused(lambda: read_whole(path, source="en", target="de"), "column|cells that begin with a blank")


@pytest.mark.parametrize("rows", ["Yes {n},Ja {n}\n", '"Well, yes {n}","Nun, ja {n}"\n', "Yes {n}, Ja {n}\n"])
def test_commas_that_cut_nothing(rows: str, tmp_path: Path) -> None:
    (path := tmp_path / "p.csv").write_text(of(rows)(""))
    read = read_whole(path, source="en", target="de")
    assert len(read.train) == 29
    assert ("is it one of the text?" in read.told[0]) == (", Ja" in rows)


@pytest.mark.parametrize("first", ["Yes,Ja", "Well, yes,Nun, ja"])
def test_rows_of_other_numbers_of_cells(first: str, tmp_path: Path) -> None:
    (path := tmp_path / "p.csv").write_text(f"{first}\n" + of("Yes, and then {n},Ja, und dann {n}\nNo,Nein\n")(""))
    refused(lambda: read_whole(path, source="en", target="de"), "columns?, expected|cells that begin with a blank")


# Files of other programs


def package(*members: tuple[str, str]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, text in members:
            archive.writestr(name, text)
    return made.getvalue()


def opened(kind: str) -> bytes:
    """As OpenDocument and EPUB begin: the first member says what the file is, and is not packed."""
    return package(("mimetype", f"application/{kind}"), ("content.xml", "<a/>"))


OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(2000)
PROGRAMS = {
    "p.ods": (opened("vnd.oasis.opendocument.spreadsheet"), "an OpenDocument sheet .*", "save it as .xlsx or .csv"),
    "p.odt": (opened("vnd.oasis.opendocument.text"), "an OpenDocument text", "save its text alone"),
    "p.epub": (opened("epub+zip"), "a book", "save its text alone"),
    "p.docx": (
        package(("[Content_Types].xml", ""), ("word/document.xml", "")),
        "a Word document",
        "save its text alone",
    ),
    "p.xls": (OLE + "Workbook".encode("utf-16-le"), "an old workbook", "save it as .xlsx or .csv"),
    "p.doc": (OLE + "WordDocument".encode("utf-16-le"), "an old Office file", "save its text alone"),
    "p.pdf": (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", "a PDF", "save its text alone"),
    "p.rtf": (b"{\\rtf1\\ansi text}", "Rich Text", "save its text alone"),
}
READERS = (read_whole, read_glossary, read_labelled, read_conversations, read_documents, read_trees)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("suffix", ["", ".tsv", ".txt", ".csv", ".jsonl", ".xlsx"])
def test_files_of_other_programs(name: str, suffix: str, tmp_path: Path) -> None:
    data, told, fix = PROGRAMS[name]
    (path := tmp_path / f"{Path(name).stem}{suffix or Path(name).suffix}").write_bytes(data)
    for read in READERS:
        with pytest.raises(HeedError) as caught:
            read(path)
        if read is read_whole or suffix in (".txt", ".jsonl"):
            assert caught.match(f"{told}.*expected text|not a kind of file|ending|no file of")
        if "expected text" in str(caught.value):
            assert fix in caught.value.fix
