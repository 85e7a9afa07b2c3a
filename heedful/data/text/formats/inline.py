"""The words of a segment without the codes inside it, as TMX and XLIFF write them."""

from xml.etree.ElementTree import Element

from heedful.data.xml import name_of

# What these hold is code of another format, not text; what others hold (hi, g, pc, mrk) is text.
CODES = ("bpt", "ept", "ph", "it", "ut", "sub", "x", "bx", "ex", "sc", "ec", "sm", "em")


def words_of(segment: Element | None) -> str:
    """The text of a segment, its codes left out."""
    return "" if segment is None else "".join(_parts(segment))


def _parts(element: Element) -> list[str]:
    parts = [element.text or ""]
    for child in element:
        name = name_of(child)
        if name == "cp":  # a character that XML cannot hold
            parts.append(_character(child.get("hex", "")))
        elif name not in CODES:
            parts += _parts(child)
        parts.append(child.tail or "")
    return parts


def _character(number: str) -> str:
    try:
        return chr(int(number, 16))
    except (ValueError, OverflowError):
        return ""
