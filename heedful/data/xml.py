"""XML from elsewhere, read as a stream: entities are refused, what is no XML is one line."""

import io
from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import Element, ParseError

from heedful.data.lines import read_bytes
from heedful.errors import InputError

INVALID = "reference to invalid character number"  # as expat says it
NO_CHARACTERS = "0*([0-8]|1[124-9]|2[0-9]|3[01])|x0*([0-8BCEFbcef]|1[0-9A-Fa-f])"  # by number, in no XML


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
        why = str(error).partition(":")[0]
        what = f"not well-formed XML at character {column + 1}: {why}"
        fix = "export it again from the tool that made it"
        if why == INVALID:
            fix = f"take out all that XML cannot hold: sed -E 's/&#({NO_CHARACTERS});//g' {Path(where).name} > new"
        raise InputError(what, where=f"{where}:{line}", fix=fix) from None
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
