"""The text of a segment without inline codes, as in TMX and XLIFF."""

import re
from collections.abc import Callable
from xml.etree.ElementTree import Element

from heedful.data.xml import name_of

# The contents of these are code of another format; the contents of others (hi, g, pc, mrk) are text.
CODES = ("bpt", "ept", "ph", "it", "ut", "sub", "x", "bx", "ex", "sc", "ec", "sm", "em")

SPACE = "{http://www.w3.org/XML/1998/namespace}space"
PHRASE = r"[biu]{1,3}|[\^_]|\d{1,4}"  # Phrase writes tags as text: {b>bold<b}, {1>code<1}
PHRASE_TAG = re.compile(rf"{{(?:{PHRASE})>|<(?:{PHRASE})}}")
DROPPED = "\0"  # stands for a code until all of a segment is read: XML has no such character
BETWEEN_BLANKS = re.compile(rf"(?<=[ \t\n]){DROPPED}+[ \t\n]+")
BREAK = re.compile(r"\s*<(?:[\w-]+:)?br\b[^<>]*>\s*|\r?\n", re.IGNORECASE)  # the contents of a code for a line break


def words_of(segment: Element | None) -> str:
    """Returns the text of a segment without its codes; of the blanks on both sides of one, those before it stay. A code
    that is a line break becomes a space."""
    parts, todo = list[str](), [] if segment is None else _inside(segment)
    while todo:
        item = todo.pop()
        if isinstance(item, str):
            parts.append(item)
        elif name_of(item) == "cp":  # a character that XML cannot contain
            parts.append(_character(item.get("hex", "")))
        elif name_of(item) not in CODES:
            todo += _inside(item)
        else:
            parts.append(f"{DROPPED} {DROPPED}" if breaks_line(item.get, "".join(item.itertext())) else DROPPED)
    return BETWEEN_BLANKS.sub("", PHRASE_TAG.sub(DROPPED, "".join(parts))).replace(DROPPED, "")


def unbroken(text: str, *elements: Element | None) -> str:
    """Joins the lines of a text by blanks: programs that indent XML break it. Not where an element around it says that
    blanks are to be kept."""
    if "\n" not in text or any(element is not None and element.get(SPACE) == "preserve" for element in elements):
        return text
    return " ".join(filter(None, map(str.strip, text.split("\n"))))


def breaks_line(attribute: Callable[[str], str | None], content: str) -> bool:
    """Whether a code is a line break, by its kind (`ctype="lb"`, `subType="xlf:lb"`) or by its contents."""
    kinds = ((attribute(name) or "").rpartition(":")[2] for name in ("ctype", "type", "subType"))
    return "lb" in kinds or BREAK.fullmatch(content) is not None


def _inside(element: Element) -> list[str | Element]:
    """Returns the texts and child elements of an element, the last first."""
    parts = [element.text or "", *(part for child in element for part in (child, child.tail or ""))]
    return parts[::-1]


def _character(number: str) -> str:
    try:
        return chr(int(number, 16))
    except (ValueError, OverflowError):
        return ""
