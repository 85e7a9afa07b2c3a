"""Files of data made to do harm: packed a thousand times over, with sizes that lie, devices, names: refused in one
line, with little memory (X2)."""

import gzip
import io
import os
import socket
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

import written
from heedful.data import lines, xml
from heedful.data.images.boxes import read_boxed_images
from heedful.data.images.labelled import read_labelled_images
from heedful.data.text.conversations import read_conversations
from heedful.data.text.documents import read_documents
from heedful.data.text.glossary import read_glossary
from heedful.data.text.judgements import read_judgements
from heedful.data.text.labelled import read_labelled
from heedful.data.text.questions import read_answered
from heedful.data.text.reading import read_whole
from heedful.data.text.tagged import read_sentences
from heedful.data.text.trees import read_trees
from heedful.errors import HeedError, InputError

Tally = Callable[[str, int], None]
Read = Callable[[Path], object]
ROW = "the same text in English\tderselbe Text auf Deutsch\n"
FEW = [(f"sentence {i} of them", f"Satz {i} davon") for i in range(30)]
MEMORY = 5  # times as much as any file may unpack to
READERS: tuple[Read, ...] = (
    read_whole,
    read_glossary,
    read_labelled,
    read_conversations,
    read_judgements,
    read_answered,
    read_sentences,
    read_trees,
    read_documents,
)


def zipped(name: str, data: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.writestr(name, data)
    return made.getvalue()


def smaller(data: bytes, size: int) -> bytes:
    """A zip file of one member, which says that this unpacks to so many bytes."""
    local, central = data.index(b"PK\3\4"), data.rindex(b"PK\1\2")
    told = struct.pack("<L", size)
    return data[: local + 22] + told + data[local + 26 : central + 24] + told + data[central + 28 :]


def workbook(changed: Callable[[str, str], str]) -> bytes:
    """A workbook of FEW, each part of which is changed by its name and text."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(written.xlsx(FEW))) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, changed(name, old.read(name).decode()))
    return made.getvalue()


def long_strings(name: str, text: str) -> str:
    """A string of 100,000 characters in each of 20,000 cells."""
    if name == "xl/_rels/workbook.xml.rels":
        return text.replace("</Rel", '<Relationship Id="s" Type="x/sharedStrings" Target="styles.xml"/></Rel', 1)
    if name == "xl/styles.xml":
        return f"<sst><si><t>{'x' * 100_000}</t></si></sst>"
    return text.replace("</sheetData>", '<row><c t="s"><v>0</v></c></row>' * 20_000 + "</sheetData>")


def repeated(dictionary: bool) -> bytes:
    """A long text in each of many rows of Parquet, where it is once."""
    made = io.BytesIO()
    column = pyarrow.array(["x" * 100_000] * 2000)
    column = column.dictionary_encode() if dictionary else column
    pyarrow.parquet.write_table(pyarrow.table({"en": column, "de": ["b"] * 2000}), made)
    return made.getvalue()


def packed(kind: str, size: int) -> bytes:
    rows = (ROW * (size // len(ROW))).encode()
    match kind:
        case "p.tsv.gz":
            return gzip.compress(rows)
        case "p.zip":
            return zipped("p.tsv", rows)
        case "in.zip":
            return zipped("p.tsv.gz", gzip.compress(rows))
        case "less.zip":
            return smaller(zipped("p.tsv", rows), 1000)
        case "twice.zip":
            return zipped("p.xlsx", zipped("xl/workbook.xml", bytes(size)))
        case "sheet.xlsx":
            row = "<row><c t='str'><v>a</v></c><c t='str'><v>b</v></c></row>"
            return workbook(lambda name, text: text.replace("</sheetData>", row * (size // len(row)) + "</sheetData>"))
        case "strings.xlsx":
            return workbook(long_strings)
        case "dictionary.parquet":
            return repeated(dictionary=True)
    return repeated(dictionary=False)


PACKED = (
    "p.tsv.gz",
    "p.zip",
    "in.zip",
    "less.zip",
    "twice.zip",
    "sheet.xlsx",
    "strings.xlsx",
    "dictionary.parquet",
    "plain.parquet",
)


@pytest.mark.parametrize("kind", PACKED)
def test_what_is_packed_a_thousand_times_over(
    kind: str, tmp_path: Path, full: bool, monkeypatch: pytest.MonkeyPatch, tally: Tally
) -> None:
    if not full:
        monkeypatch.setattr(lines, "ALWAYS_UNPACKED", 1 << 24)
    (path := tmp_path / kind).write_bytes(packed(kind, (8 if full else 3) * lines.ALWAYS_UNPACKED))
    tracemalloc.start()
    with pytest.raises(InputError, match=r"when unpacked|than there are bytes|damaged in the zip file") as caught:
        read_whole(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "\n" not in f"{caught.value}{caught.value.fix}"
    assert caught.value.fix
    assert peak < MEMORY * lines.ALWAYS_UNPACKED
    tally("X2 packed files", 1)


@pytest.mark.parametrize("size", ["A1:XFD1048576", "A1", "A1:B3", "XFD1048576"])
def test_the_size_that_a_sheet_tells_is_not_believed(size: str, tmp_path: Path, tally: Tally) -> None:
    data = workbook(lambda name, text: text.replace('<dimension ref="A1:B31"/>', f'<dimension ref="{size}"/>'))
    (path := tmp_path / "p.xlsx").write_bytes(data)
    train = read_whole(path).train
    assert [*zip(train.source, train.target, strict=True)] == FEW
    tally("X2 sizes that lie", 1)


@pytest.mark.parametrize(
    ("cell", "told"),
    [("XFD32", "columns"), ("A99999999999999999999", ""), ("ZZZZ1", "a cell 'ZZZZ1'"), ("7", "a cell '7'")],
)
def test_cells_that_are_far_away(cell: str, told: str, tmp_path: Path, tally: Tally) -> None:
    """They cost nothing, or are refused: blank rows and columns before them are not made."""
    row = f'<row r="1048576"><c r="{cell}" t="str"><v>x</v></c></row></sheetData>'
    (path := tmp_path / "p.xlsx").write_bytes(workbook(lambda name, text: text.replace("</sheetData>", row)))
    if told:
        with pytest.raises(InputError, match=told):
            read_whole(path)
    else:
        assert read_whole(path).train.source == [source for source, _ in FEW]
    tally("X2 sizes that lie", 1)


def test_a_zip_file_is_opened_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "p.zip", "w") as archive:
        for number in range(300):
            archive.writestr(f"{number}.en", "a\n")
            archive.writestr(f"{number}.de", "b\n")
    opened: list[object] = []

    class Counted(zipfile.ZipFile):
        def __init__(self, *words: Any, **more: Any) -> None:
            opened.append(self)
            super().__init__(*words, **more)

    monkeypatch.setattr(zipfile, "ZipFile", Counted)
    assert len(read_whole(tmp_path / "p.zip").train) == 300
    assert len(opened) == 1


def test_a_zip_file_that_changed_is_opened_again(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / "p.zip").write_bytes(zipped("p.tsv", f"a {number}\tb\n".encode() * 2))
        os.utime(tmp_path / "p.zip", ns=(number, number))
        assert read_whole(tmp_path / "p.zip").train.source == [f"a {number}"] * 2


@pytest.mark.parametrize("name", ["/p.tsv", "../p.tsv", "a/../../p.tsv"])
def test_a_zip_file_leads_nowhere_else(name: str, tmp_path: Path, tally: Tally) -> None:
    (tmp_path / "p.zip").write_bytes(zipped(name, ROW.encode()))
    with pytest.raises(InputError, match="which leads out of it"):
        read_whole(tmp_path / "p.zip")
    tally("X2 packed files", 1)


def refused(read: Read, path: Path, told: str) -> None:
    with pytest.raises(HeedError, match=told) as caught:
        read(path)
    assert "\n" not in f"{caught.value}{caught.value.fix}"
    assert caught.value.fix


@pytest.mark.parametrize("read", [*READERS, read_labelled_images, read_boxed_images])
@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null", "pipe", "socket"])
def test_what_is_no_file_is_not_read(
    read: Read, device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tally: Tally
) -> None:
    monkeypatch.chdir(tmp_path)  # the name of a socket must be short
    for suffix in (".tsv", ".jsonl", ".txt", ".json", ".zip"):
        path = Path(f"p{suffix}")
        if device == "pipe":
            os.mkfifo(path)
        elif device == "socket":
            with socket.socket(socket.AF_UNIX) as bound:
                bound.bind(str(path))
        else:
            path.symlink_to(device)
        refused(read, path, "a pipe, which|a device or a socket|not a kind of file")
    tally("X2 devices and names", 5)


@pytest.mark.parametrize("read", READERS)
def test_names_that_no_file_has(read: Read, tmp_path: Path, tally: Tally) -> None:
    suffix = ".tsv" if read is read_sentences else ".jsonl"
    other = tmp_path / os.fsdecode(b"p\xff" + suffix.encode())
    other.write_text("x")
    refused(read, other, "a name that is not UTF-8")
    refused(read, tmp_path / f"p\0{suffix}", "a NUL byte, which no path has")
    tally("X2 devices and names", 2)


BOMB = '<!DOCTYPE a [<!ENTITY b "c">]>'
VALUES = '<!DOCTYPE a [<!ATTLIST seg b CDATA "{}">]>'.format("x" * 3000)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le"])
@pytest.mark.parametrize("kind", ["tmx", "xlf", "tbx", "xml"])
@pytest.mark.parametrize(("begin", "told"), [(BOMB, "entities of its own"), (VALUES, "values of attributes")])
def test_all_xml_comes_in_by_one_way(
    kind: str, encoding: str, begin: str, told: str, tmp_path: Path, tally: Tally
) -> None:
    """In every encoding, what a declaration would make of a short file is refused."""
    body = {"tmx": written.tmx(FEW).decode(), "xlf": written.xliff(FEW).decode()}.get(kind, "<annotation/>")
    body = '<martif type="TBX"><text/></martif>' if kind == "tbx" else body.partition("?>")[2] or body
    text = f'<?xml version="1.0" encoding="{encoding[:6].rstrip("-")}"?>{begin}{body}'
    (tmp_path / f"p.{kind}").write_bytes((b"\xff\xfe" if encoding == "utf-16-le" else b"") + text.encode(encoding))
    read: Read = {"xml": read_boxed_images, "tbx": read_glossary}.get(kind, read_whole)
    refused(read, tmp_path if kind == "xml" else tmp_path / f"p.{kind}", told)
    tally("X2 XML", 1)


def test_a_tag_without_an_end(tmp_path: Path, full: bool, monkeypatch: pytest.MonkeyPatch, tally: Tally) -> None:
    """The parser begins such a tag again with every chunk."""
    if not full:
        monkeypatch.setattr(xml, "MOST_CHUNK", 1 << 20)
    text = written.tmx(FEW).decode().replace("<body>", f'<body><prop type="{"x" * (2 * xml.MOST_CHUNK + 1)}"/>')
    (tmp_path / "p.tmx").write_text(text)
    refused(read_whole, tmp_path / "p.tmx", "a tag, a comment or a text of more than")
    tally("X2 XML", 1)
