"""Reads texts that are not in UTF-8, if just one encoding that is usual for their language decodes them into words. The
result names that encoding. Where most lines are UTF-8, the others are faults."""

import re
from collections.abc import Sequence
from pathlib import Path

from heedful.data.large import large_lines
from heedful.data.lines import MARKS, mostly_utf_8, read_beginning, read_bytes, read_lines, text_lines
from heedful.data.text.quality.languages import SURE, identifier
from heedful.errors import InputError

LOOKED_AT = 1 << 18  # bytes
JUDGED = 5000  # characters, of the cells with more than ASCII
# The encodings that texts of a language usually have, if not UTF-8, by its code.
_WESTERN = "ca da de en es fi fr gl id is it nb nl nn no pt sv"
_CENTRAL = "bs cs hr hu pl ro sk sl"
_CYRILLIC = "be bg kk mk ru sr uk"
USUAL: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_WESTERN.split(), ("cp1252",)),
    **dict.fromkeys(_CENTRAL.split(), ("cp1250", "iso8859_2")),
    **dict.fromkeys(_CYRILLIC.split(), ("cp1251", "koi8_r")),
    "el": ("cp1253", "iso8859_7"),
    "tr": ("cp1254",),
    "he": ("cp1255",),
    "ar": ("cp1256",),
    "et": ("cp1257",),
    "lt": ("cp1257",),
    "lv": ("cp1257",),
    "ja": ("cp932", "euc_jp"),
    "ko": ("cp949",),
    "zh": ("gb18030", "big5"),
}
# Signs of a wrong encoding: control characters, symbols inside words, capitals after small letters.
_LETTER = "[A-Za-z\u00c0-\u04ff]"
_BROKEN = re.compile(
    f"[\x80-\x9f]|(?<={_LETTER})[^\\w\\s\x00-\x7f\u2018\u2019\u2013\u2014\u00b4\u00b7](?={_LETTER})"
    "|[\u00df-\u00f6\u00f8-\u00ff\u0430-\u044f](?=[\u00c0-\u00d6\u00d8-\u00de\u0410-\u042f])"
)


def read_encoded_lines(path: Path) -> tuple[Sequence[str], str]:
    """Reads the lines of a file, and returns its encoding too ("" for UTF-8). Raises MissingError, or InputError, with
    a command for conversion if the encoding is uncertain."""
    if (large := large_lines(path)) is not None:
        return large, ""
    mark = next((name for mark, name in MARKS if read_beginning(path, 4).startswith(mark)), "")
    try:
        return read_lines(path), mark
    except InputError as error:
        if not error.what.endswith("is not UTF-8"):
            raise
        data = read_bytes(path)
        if mostly_utf_8(data):
            raise
        found = likely_encodings(data)
        if len(found) != 1:
            what = f"{error.what}, and may be {' or '.join(found)}" if found else error.what
            command = f"iconv -f {(*found, 'CP1252')[0].upper()} -t UTF-8 {path.name} > utf-8.txt"
            raise InputError(what, where=error.where, fix=f"convert it, for example: {command}") from None
    return text_lines(data.decode(found[0], "replace"), path), f"{found[0]}, as it seems"


def likely_encodings(data: bytes) -> list[str]:
    """Returns the encodings that a text may have; of several that decode it to the same text, only the first."""
    sample = data[:LOOKED_AT]
    sample = sample[: sample.rfind(b"\n") + 1] or sample
    found: dict[str, str] = {}
    for name in dict.fromkeys(each for names in USUAL.values() for each in names):
        try:
            text = sample.decode(name)
        except UnicodeDecodeError:
            continue
        cells = " ".join(cell for cell in re.split(r"[\t\n;|]", text) if not cell.isascii())
        if _BROKEN.search(cells):
            continue
        code, probability = identifier().classify(cells[:JUDGED])
        if probability >= SURE and name in USUAL.get(code, ()):
            found.setdefault(text, name)
    return list(found.values())
