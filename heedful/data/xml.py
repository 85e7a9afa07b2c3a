"""Reads XML from elsewhere as a stream: refuses entities, and reports malformed XML in one line."""

import io
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import Element, ParseError, TreeBuilder

from heedful.data.lines import read_bytes, sanitise
from heedful.errors import InputError

INVALID = "reference to invalid character number"  # expat's message
LEAST_CHUNK, MOST_CHUNK = 1 << 14, 1 << 25  # bytes
NO_CHARACTERS = "0*([0-8]|1[124-9]|2[0-9]|3[01])|x0*([0-8BCEFbcef]|1[0-9A-Fa-f])"  # characters that XML forbids
CONTROLS, BARE = re.compile(rb"[\x01-\x08\x0b\x0c\x0e-\x1f]"), re.compile(rb"&(?!#?\w+;)")


ESCAPED = re.compile("_x([0-9A-Fa-f]{4})_")  # a unit of UTF-16 in the texts of a workbook
NOT_PLAIN = re.compile("_(?=x[0-9A-Fa-f]{4}_)|[\x00-\x08\x0b\x0c\x0e-\x1f]")


def decoded_text(text: str) -> str:
    """A text of a workbook with the characters that its escapes stand for (ECMA-376, part 1, 22.9.2.19, ST_Xstring)."""
    return sanitise(ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)) if "_x" in text else text


def encoded_text(text: str) -> str:
    """A text as `decoded_text` reads it, without characters that XML forbids."""
    return NOT_PLAIN.sub(lambda match: f"_x{ord(match[0]):04X}_", text)


def name_of(element: Element) -> str:
    """Returns the name of an element without its namespace."""
    return str(element.tag).rpartition("}")[2]


def language_of(element: Element) -> str:
    """Returns the xml:lang, or else the plain lang, of an element; "" if it has neither."""
    return element.get("{http://www.w3.org/XML/1998/namespace}lang") or element.get("lang") or ""


def elements(path: Path) -> Iterator[tuple[str, Element]]:
    """Yields ("start" or "end", element) in the order of the file. A caller that has finished with an element clears
    it.

    Raises InputError for malformed XML, with the line, and for entities: they can expand without end, or refer to other
    files.
    """
    yield from elements_of(read_bytes(path), str(path))


class _Chunks(io.BytesIO):
    """The contents of a file, in chunks that double in size until a tag ends: a parser begins an unfinished tag again
    with every chunk. Raises InputError where a chunk would be larger than `MOST_CHUNK`."""

    def __init__(self, data: bytes, where: str) -> None:
        super().__init__(data)
        self.where = where
        self.size = LEAST_CHUNK

    def read(self, size: int | None = -1, /) -> bytes:
        if self.size > MOST_CHUNK:
            what = f"a tag, a comment or a text of more than {MOST_CHUNK:,} bytes"
            raise InputError(what, where=self.where, fix="export it again, without what is not text")
        self.size *= 2
        return super().read(self.size // 2)


def elements_of(data: bytes, where: str) -> Iterator[tuple[str, Element]]:
    """As `elements`, for the contents of a file."""
    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import DefusedXMLParser, iterparse

    def declared(element: str, attribute: str, kind: str, default: str | None, required: bool) -> None:
        if default is not None:  # a short file can be long by these
            what = "it declares values of attributes, which are not read"
            raise InputError(what, where=where, fix="export it without a document type that has them")

    parser = DefusedXMLParser(target=TreeBuilder(), forbid_dtd=False)
    parser.parser.AttlistDeclHandler = declared
    chunks = _Chunks(data, where)
    try:
        for event in iterparse(chunks, events=("start", "end"), parser=parser):
            chunks.size = LEAST_CHUNK
            yield event
    except ParseError as error:
        line, column = error.position
        why = str(error).partition(":")[0]
        what = f"not well-formed XML at character {column + 1}: {why}"
        raise InputError(what, where=f"{where}:{line}", fix=_mended(why, data, line, Path(where).name)) from None
    except DefusedXmlException:
        what = "it defines entities of its own, which are not read"
        raise InputError(what, where=where, fix="export it without a document type that has entities") from None
    except (LookupError, ValueError) as error:
        what = f"its encoding cannot be read: {error}"
        raise InputError(what, where=f"{where}:1", fix="save it as UTF-8") from None


def _mended(why: str, data: bytes, line: int, name: str) -> str:
    """How to mend a file that is not well-formed, by what is wrong and in which line."""
    if why == INVALID:
        return f"take out all that XML cannot hold: sed -E 's/&#({NO_CHARACTERS});//g' {name} > new"
    wrong = b"" if data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else data.split(b"\n", line)[line - 1]
    if CONTROLS.search(wrong):
        return f"take out all that XML cannot hold: tr -d '\\000-\\010\\013\\014\\016-\\037' < {name} > new"
    if why.startswith("encoding specified"):
        return f"it is no UTF-16, whatever its first line says: sed '1s/[Uu][Tt][Ff]-16/utf-8/' {name} > new"
    if BARE.search(wrong):
        return rf"a & in a text is written &amp;: sed -E 's/&/\&amp;/g; s/&amp;(#?[[:alnum:]]+;)/\&\1/g' {name} > new"
    return "export it again from the tool that made it"


def tree_of(path: Path) -> Element:
    """Returns the root of an XML document with all that is in it. Raises InputError as `elements`."""
    *_, (_, root) = elements(path)
    return root


def root_of(data: bytes, where: str) -> str:
    """Returns the name of the root element of a well-formed XML document. Raises InputError as `elements`."""
    root = ""
    for event, element in elements_of(data, where):
        root = root or name_of(element)
        if event == "end":
            element.clear()
    return root
