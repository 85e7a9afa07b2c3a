"""Splits HTML and XML into tags and texts, without loss: every character is in exactly one token."""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal
from xml.parsers import expat

Kind = Literal["text", "opens", "closes", "empty", "other"]

TAG = re.compile(r"<(?P<close>/?)(?P<name>[^\W\d][^\s/<>]*)(?P<rest>(?>\"[^\"]*\"|'[^']*'|[^'\"<>])*)>")
ATTRIBUTE = re.compile(r"([^\s=\"'/<>]+)(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'=<>`]+)))?")
LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")  # a language code as in attributes
APART = (("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>"), ("<!", ">"))
EMPTY = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
RAW = {"script", "style", "textarea", "title"}  # their contents have no tags


@dataclass(frozen=True)
class Token:
    """A tag, a text, or something else: a comment, declaration, instruction or CDATA section."""

    kind: Kind
    raw: str
    name: str = ""  # the name of a tag; in HTML in lower case
    begin: int = 0  # its position in the text

    @property
    def end(self) -> int:
        return self.begin + len(self.raw)

    @property
    def local(self) -> str:
        """The name without its namespace prefix."""
        return self.name.rpartition(":")[2]

    @property
    def deeper(self) -> int:
        """The change in depth: 1 for a start tag, -1 for an end tag."""
        return (self.kind == "opens") - (self.kind == "closes")

    def attribute(self, name: str) -> str | None:
        """Returns the value of an attribute, unescaped, "" if it has no value; None if there is no such attribute."""
        for found in ATTRIBUTE.finditer(self.raw, len(self.name) + 1):
            if found[1].lower() == name.lower():
                return html.unescape(found[2] or found[3] or found[4] or "")
        return None


def tokens_of(text: str, markup: Literal["xml", "html"]) -> Iterator[Token]:
    """Yields the tokens, in linear time."""
    begin = position = 0
    absent = set[str]()  # end marks of comments and the like that do not occur any more
    while (position := text.find("<", position)) >= 0:
        token = _tag_at(text, position, markup, absent)
        if token is None:
            position += 1
            continue
        if begin < position:
            yield Token("text", text[begin:position], "", begin)
        yield token
        begin = position = token.end
        if markup == "html" and token.kind == "opens" and token.name in RAW:
            position = _end_of(text, position, token.name)
    if begin < len(text):
        yield Token("text", text[begin:], "", begin)


def refuse_malformed(text: str) -> None:
    """Raises ValueError for text that cannot be the contents of an element. It cannot have a document type, and so no
    entities of its own."""
    parser = expat.ParserCreate("utf-8")
    try:
        parser.Parse(b"<text>" + text.encode() + b"</text>", True)
    except expat.ExpatError as error:
        raise ValueError(f"not well-formed XML ({error})") from None


def _tag_at(text: str, position: int, markup: Literal["xml", "html"], absent: set[str]) -> Token | None:
    for begin, close in APART:
        if text.startswith(begin, position):
            end = -1 if close in absent else text.find(close, position + len(begin))
            if end < 0:
                absent.add(close)
            return None if end < 0 else Token("other", text[position : end + len(close)], "", position)
    found = TAG.match(text, position)
    if found is None:
        return None
    name = found["name"].lower() if markup == "html" else found["name"]
    alone = found["rest"].rstrip().endswith("/") or (markup == "html" and name in EMPTY)
    kind: Kind = "closes" if found["close"] else "empty" if alone else "opens"
    return Token(kind, found[0], name, position)


def _end_of(text: str, position: int, name: str) -> int:
    """Returns the position of the end tag of an element whose contents have no tags."""
    found = re.compile(f"</{re.escape(name)}\\b", re.IGNORECASE).search(text, position)
    return len(text) if found is None else found.start()
