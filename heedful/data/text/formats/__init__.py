"""File formats of translators, recognised by their contents: TMX, XLIFF, PO, Excel, Parquet.

Each module reads one format as rows of a source and a target, and describes what it took.
"""

import io
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from heedful.data.lines import read_beginning, read_bytes
from heedful.data.text.columns import Columns, Rows

Format = Literal["tmx", "xliff", "po", "xlsx", "parquet"]
Reader = Callable[[Path, str, str], tuple[Rows, Columns]]
LOOKED_AT = 4096  # bytes
ROOTS: dict[str, Format] = {"tmx": "tmx", "xliff": "xliff"}  # by the name of the first element


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


def first_element(data: bytes) -> str:
    """Returns the name of the first element of XML, in lower case; "" if the data are not XML."""
    found = re.search(r"<(?:[\w.-]+:)?(\w+)", re.sub(r"<[?!][^>]*>", "", _text(data)))
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
