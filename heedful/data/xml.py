"""XML from elsewhere, read as a stream: entities are refused, what is no XML is one line."""

import io
from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import Element, ParseError

from heedful.data.lines import read_bytes
from heedful.errors import InputError


def name_of(element: Element) -> str:
    """The name of an element without its namespace."""
    return str(element.tag).rpartition("}")[2]


def language_of(element: Element) -> str:
    """What xml:lang, or a plain lang, says; "" for neither."""
    return element.get("{http://www.w3.org/XML/1998/namespace}lang") or element.get("lang") or ""


def elements(path: Path) -> Iterator[tuple[str, Element]]:
    """("start" or "end", element) in the order of the file. Who has read an element to its end clears it.

    Raises InputError for what is not well-formed, with the line, and for entities: they can grow without end, or name
    other files.
    """
    yield from elements_of(read_bytes(path), str(path))


def elements_of(data: bytes, where: str) -> Iterator[tuple[str, Element]]:
    """The same of what a file holds."""
    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import iterparse

    try:
        yield from iterparse(io.BytesIO(data), events=("start", "end"), forbid_dtd=False)
    except ParseError as error:
        line, column = error.position
        what = f"not well-formed XML at character {column + 1}: {str(error).partition(':')[0]}"
        raise InputError(what, where=f"{where}:{line}", fix="export it again from the tool that made it") from None
    except DefusedXmlException:
        what = "it defines entities of its own, which are not read"
        raise InputError(what, where=where, fix="export it without a document type that has entities") from None
    except (LookupError, ValueError) as error:
        what = f"its encoding cannot be read: {error}"
        raise InputError(what, where=f"{where}:1", fix="save it as UTF-8") from None


def root_of(data: bytes, where: str) -> str:
    """The name of the first element of what is XML to its end. Raises InputError as `elements`."""
    root = ""
    for event, element in elements_of(data, where):
        root = root or name_of(element)
        if event == "end":
            element.clear()
    return root
