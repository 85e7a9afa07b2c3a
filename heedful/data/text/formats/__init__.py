"""File formats of translators, recognised by their contents: TMX, XLIFF, PO, Excel, Parquet.

Each module reads one format as rows of a source and a target, and describes what it took.
"""

import io
import re
import zipfile
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Literal

from heedful.data.lines import read_beginning, read_bytes
from heedful.data.parts import kind_of
from heedful.data.text.columns import Columns, Rows
from heedful.errors import InputError

Format = Literal["tmx", "xliff", "po", "xlsx", "parquet"]
Reader = Callable[[Path, str, str], tuple[Rows, Columns]]
LOOKED_AT, LOOKED_AT_LINES = 1 << 14, 200  # bytes, and lines
ROOTS: dict[str, Format] = {"tmx": "tmx", "xliff": "xliff"}  # by the name of the first element
# The first tag, behind comments, declarations and instructions.
FIRST_TAG = re.compile(r"[^<]*+(?:(?s:<!--.*?-->|<[?!][^>]*>)[^<]*+)*+<(?:[\w.-]+:)?(\w+)")
# Text that is not one sentence a line: by the suffix, by the first line, and by a share of the first lines.
NAMED = {
    **dict.fromkeys((".md", ".markdown", ".rst", ".tex"), "a document with marks"),
    **dict.fromkeys((".yaml", ".yml", ".toml", ".ini", ".properties", ".strings"), "keys and their values"),
}
BEGINS = {"subtitles": r"WEBVTT|\[Script Info\]", "a page, or XML": r"<(?:\?xml|!doctype|html)\b"}
TIME = r"(?:\d{4}[-/]\d\d[-/]\d\d[T ]|[A-Z][a-z]{2} +\d{1,2} )?\d\d:\d\d:\d\d|\d{4}-\d\d-\d\d[T ]\d\d:\d\d"
CUE = r"(?:\d+:)?\d{1,2}:\d\d[.,]\d{1,3}(?: *-->|,\d)|\[\d+:\d\d[.:]\d\d\]|\{\d+\}\{\d+\}|Dialogue: "
LINES = (
    (0.2, "subtitles", CUE),
    (0.5, "a page, or XML", r"<[A-Za-z/!?][^\t]*>$"),
    (0.5, "JSON", r"[]{}[],?$|\{[^\t]*\},?$|\"[^\t\"]*\" *:|\"[^\t]*\",$"),
    (0.5, "a log", rf"\W*(?:{TIME}|(?:DEBUG|INFO|WARN(?:ING)?|ERROR)\b)[^\t]*$"),
    (0.5, "a program's output", r"[^\s:]+\.\w+:\d+:|[STHDP]-\d+\t"),  # of compilers and of fairseq
    (0.5, "columns with ||| between them", r"[^\t]*?\|\|\|"),
)
TABLE = (0.5, "a table", r"[^\t]*\t")


def format_of(path: Path) -> Format | None:
    """Returns the format of a file by its first bytes; None for plain lines and tables. Raises InputError or
    MissingError if it cannot be read."""
    data = read_beginning(path, LOOKED_AT)
    if data.startswith(b"PAR1"):
        return "parquet"
    if data.startswith(b"PK"):
        return "xlsx" if _holds(path, "xl/workbook.xml") else None
    text = _text(data)
    if kind := ROOTS.get(first_element(data)):
        return kind
    entry = re.search(r'^msgid\s+"', text, re.MULTILINE)
    return "po" if entry and re.match(r'(\s|#.*\n|msgctxt\s+"|msgid\s+")*', text) else None


def refuse_other_formats(path: Path, lines: Sequence[str], *, columns: bool = False) -> None:
    """Raises InputError for lines of a format that is known, and is not one sentence a line; `columns`: nor a
    table."""
    first = [line.strip() for line in islice(filter(str.strip, lines), LOOKED_AT_LINES)]
    found = NAMED.get(kind_of(path), "")
    found = found or next((name for name, begin in BEGINS.items() if re.match(begin, first[0], re.IGNORECASE)), "")
    for share, name, pattern in (*LINES, TABLE) if columns else LINES:
        found = found or (name if sum(bool(re.match(pattern, line)) for line in first) > share * len(first) else "")
    if found:
        fix = "give the sentences alone, one on each line; or a table: a text, a TAB and its translation on each line"
        raise InputError(f"{found}, expected one sentence a line", where=str(path), fix=fix)


def first_element(data: bytes) -> str:
    """Returns the name of the first element of XML, in lower case; "" if the data are not XML."""
    found = FIRST_TAG.match(_text(data))
    return found[1].lower() if found else ""


def _text(data: bytes) -> str:
    """Decodes the beginning of a file, in any encoding, well enough to find ASCII words in it."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data[: len(data) // 2 * 2].decode("utf-16", "replace")
    return data.decode("utf-8", "replace")


def _holds(path: Path, name: str) -> bool:
    try:
        with zipfile.ZipFile(io.BytesIO(read_bytes(path))) as archive:
            return name in archive.namelist()
    except zipfile.BadZipFile:
        return False


def reader_of(kind: Format) -> Reader:
    """Returns the reader of a format. Imports it, and the library that it needs, only now."""
    if kind == "tmx":
        from heedful.data.text.formats.tmx import read_tmx as reader
    elif kind == "xliff":
        from heedful.data.text.formats.xliff import read_xliff as reader
    elif kind == "po":
        from heedful.data.text.formats.po import read_po as reader
    elif kind == "xlsx":
        from heedful.data.text.formats.xlsx import read_xlsx as reader
    else:
        from heedful.data.text.formats.parquet import read_parquet as reader
    return reader
