"""The words of a segment without the codes inside it, as TMX and XLIFF write them."""

from xml.etree.ElementTree import Element

from heedful.data.xml import name_of

# What these hold is code of another format, not text; what others hold (hi, g, pc, mrk) is text.
CODES = ("bpt", "ept", "ph", "it", "ut", "sub", "x", "bx", "ex", "sc", "ec", "sm", "em")


def words_of(segment: Element | None) -> str:
    """The text of a segment, its codes left out."""
    parts, todo = list[str](), [] if segment is None else _inside(segment)
    while todo:
        item = todo.pop()
        if isinstance(item, str):
            parts.append(item)
        elif name_of(item) == "cp":  # a character that XML cannot hold
            parts.append(_character(item.get("hex", "")))
        elif name_of(item) not in CODES:
            todo += _inside(item)
    return "".join(parts)


def _inside(element: Element) -> list[str | Element]:
    """The texts and the elements in it, the last first."""
    parts = [element.text or "", *(part for child in element for part in (child, child.tail or ""))]
    return parts[::-1]


def _character(number: str) -> str:
    try:
        return chr(int(number, 16))
    except (ValueError, OverflowError):
        return ""
