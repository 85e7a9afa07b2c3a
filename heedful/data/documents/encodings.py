"""Decodes and encodes a document: in the encoding that it declares, or in UTF-8."""

import codecs
import re
from collections.abc import Callable
from typing import NamedTuple

from heedful.data.lines import MEND_LINE, mostly_utf_8
from heedful.errors import InputError

BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
XML = re.compile(rb"<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([\w.:-]+)")
HTML = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
# The encodings that browsers use for others that a page declares, by Python's names (the Encoding Standard, 4.2).
WIDER = {
    "ascii": "cp1252", "iso8859-1": "cp1252", "iso8859-9": "cp1254", "tis-620": "cp874", "gb2312": "gb18030",
    "gbk": "gb18030", "shift_jis": "cp932", "euc_kr": "cp949",
}  # fmt: skip


class Decoded(NamedTuple):
    text: str
    encode: Callable[[str], bytes]


def decoded(data: bytes, where: str, *, says: re.Pattern[bytes] | None = None, references: bool = False) -> Decoded:
    """Decodes a file without its byte order mark, and returns a function that encodes a text in the same way. `says`
    finds the declared encoding in the first bytes; `references`: characters that the encoding lacks are written as
    character references of XML and HTML. Raises InputError."""
    bom, name = next(((bom, name) for bom, name in BOMS if data.startswith(bom)), (b"", ""))
    if not name:
        found = says.search(data[:4096]) if says is not None else None
        name = found[1].decode("ascii", "replace") if found else "utf-8"
    try:
        name = WIDER.get(codecs.lookup(name).name, name) if says is HTML else name
        text = data[len(bom) :].decode(name)
    except LookupError:
        what = f"its encoding, {name!r}, is not known"
        raise InputError(what, where=where, fix="save it as UTF-8, and write UTF-8 in its place") from None
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, len(bom) + error.start) + 1
        by_line = codecs.lookup(name).name == "utf-8" and mostly_utf_8(data)
        fix = MEND_LINE if by_line else "convert it first, for example: iconv -f CP1252 -t UTF-8"
        what = f"byte 0x{error.object[error.start]:02x} is not {name.upper()}"
        raise InputError(what, where=f"{where}:{line}", fix=fix) from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise InputError("a NUL byte, expected text", where=f"{where}:{line}", fix="save it as UTF-8 text")

    def encode(made: str) -> bytes:
        try:
            return bom + made.encode(name, "xmlcharrefreplace" if references else "strict")
        except UnicodeEncodeError as error:
            what = f"{made[error.start]!r} cannot be written in its encoding, {name}"
            raise InputError(what, where=where, fix="save the document as UTF-8 first") from None

    return Decoded(text, encode)
