"""HTML, and XML of any kind: the texts between tags. Inline tags are part of passages; all other tags separate them.

Elements that HTML does not translate are kept: scripts, styles, code, and elements with `translate="no"` or the class
`notranslate`, except elements with `translate="yes"` inside them; ruby readings and links to headings are kept too.
Attributes are kept, except the language of a whole page, and those that people read (`alt`, `placeholder`, the
description of a page) if their tags are not between the words of a passage.
"""

import html
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Literal
from xml.sax.saxutils import escape

from heedful.data.documents.inline import LINE_END, Inline, inline_of, passages_from
from heedful.data.documents.markup import ATTRIBUTE, EMPTY, LANGUAGE, TAG, Kind, Token, tokens_of
from heedful.data.documents.passages import Passage, Placed, plain

Markup = Literal["xml", "html"]

PHRASING = """
a abbr acronym b bdi bdo big cite code data del dfn em font i img ins kbd label mark math nobr q rp rt ruby s samp small
span strike strong sub sup svg time tt u var wbr
"""
INLINE = frozenset(PHRASING.split())
NO_TEXT = {"math", "script", "style", "svg"}  # kept with all their contents
KEPT = {"code", "kbd", "pre", "rp", "rt", "samp", "var"}  # also kept, unless they have translate="yes"
KEPT_CLASSES = frozenset(["notranslate", "headerlink", "hash-link"])  # links to headings of Sphinx and Docusaurus
WORDED = frozenset(["alt", "aria-label", "label", "placeholder", "title"])  # attributes that people read
DESCRIBES = frozenset(
    ["description", "og:title", "og:description", "og:image:alt", "twitter:title", "twitter:description"]
)
BUTTONS = frozenset(["submit", "reset", "button"])
BLOCK = """
address article aside blockquote center details dialog dir div dl fieldset figcaption figure footer form h1 h2 h3 h4 h5
h6 header hgroup hr main menu nav ol p pre search section summary table ul
"""
# Elements whose end tags are optional in HTML (its section 13.1.2.4), the tags that end them then, and the elements
# inside which such tags belong to other elements.
LISTS, TABLE, ROWS = ("dir", "menu", "ol", "ul"), ("table",), ("tbody", "tfoot", "thead", "tr")
ENDED_BY: Mapping[str, tuple[Collection[str], Collection[str]]] = {
    "p": (frozenset(BLOCK.split()), ()),
    "li": (("li",), LISTS),
    **dict.fromkeys(("dd", "dt"), (("dd", "dt"), ("dl",))),
    **dict.fromkeys(("td", "th"), (("td", "th", *ROWS), TABLE)),
    "tr": (ROWS, TABLE),
    **dict.fromkeys(("tbody", "tfoot", "thead"), (("tbody", "tfoot", "thead"), TABLE)),
    "option": (("option", "optgroup"), ("select",)),
    **dict.fromkeys(("rp", "rt"), (("rp", "rt"), ("ruby",))),
}


def hypertext_parts(
    text: str,
    markup: Markup,
    *,
    ignored: Collection[str] = (),
    breaking: Collection[str] = (),
    inline: Collection[str] = (),
    lines: bool = False,
) -> list[str | Passage]:
    """Splits a page or a fragment into parts. Elements named in `ignored` are kept with their contents; tags named in
    `breaking` separate passages, and those in `inline` do not. For other tags, HTML decides by their names; in XML, a
    tag is inline if its parent has text of its own. With `lines`, no passage goes over the end of a line."""
    ended_by = ENDED_BY if markup == "html" else {}
    kept, said = partial(_kept, markup, frozenset(ignored)), _said if markup == "html" else _never
    tokens = [*joined(tokens_of(text, markup), kept, said, ended_by)]
    if markup == "xml":
        mixed = _mixed(tokens)
    parts: list[str | Passage] = []
    run: list[Inline] = []
    line = counted = 0

    def flush(end: int) -> None:
        nonlocal line, counted
        line += text.count("\n", counted, end)
        counted = end
        for part in passages_from(run, line=line + 1) if run else ():
            if isinstance(part, Passage) or markup == "xml":
                parts.append(part)
            else:
                beside = joined(tokens_of(part, "html"), kept, said, ended_by)
                parts.extend(each for token in beside for each in _tag_parts(token, line + 1))
        run.clear()

    for number, token in enumerate(tokens):
        if token.kind == "text":
            within = True
        elif not token.name:
            within = token.raw.startswith("<!--") or markup == "xml"
        elif token.name in breaking or token.name in inline:
            within = token.name not in breaking
        else:
            within = token.name in INLINE if markup == "html" else number in mixed
        if lines and token.kind == "text":
            pieces, end = LINE_END.split(token.raw), token.begin
            for words, line_end in zip(pieces[::2], [*pieces[1::2], ""], strict=True):
                run.append(inline_of(Token("text", words)))
                end += len(words)
                if line_end:
                    flush(end)
                    parts.append(line_end)
                    end += len(line_end)
        elif within:
            run.append(inline_of(token))
        else:
            flush(token.begin)
            parts += _tag_parts(token, line + 1) if markup == "html" else [token.raw]
    flush(len(text))
    return parts


def _tag_parts(token: Token, line: int) -> Iterator[str | Passage]:
    """Yields a tag, with passages for the attributes that people read; a longer part unchanged."""
    done, whole = 0, TAG.fullmatch(token.raw) and token.kind != "closes" and _translate(token) != "no"
    for found in ATTRIBUTE.finditer(token.raw, len(token.name) + 1) if whole else ():
        group = found.lastindex or 1
        if group > 1 and _is_read(token, found[1].lower()) and any(map(str.isalnum, found[group])):
            begin, end = found.span(group)
            yield token.raw[done:begin]
            yield Passage(html.unescape(found[group]), (), found[group], partial(_as_value, group), line)
            done = end
    yield token.raw[done:]


def _is_read(token: Token, name: str) -> bool:
    if name == "content":
        named = token.attribute("name") or token.attribute("property") or ""
        return token.name == "meta" and named.strip().lower() in DESCRIBES
    if name == "value":
        return token.name == "input" and (token.attribute("type") or "").lower() in BUTTONS
    return name in WORDED and token.name != "link"


def _as_value(group: int, placed: Placed) -> str:
    """Returns a text as the value of an attribute; the group of `ATTRIBUTE` tells whether it was in double quotes,
    single quotes or none."""
    text = plain(placed)
    if group == 3:
        return escape(text, {"'": "&#39;"})
    made = escape(text, {'"': "&quot;"})
    return f'"{made}"' if group == 4 else made


def in_language(part: str, target: str) -> str:
    """Returns the start tag of a page with its language replaced. Other parts are unchanged, and so are all if the
    target is not the code of a language."""
    if not (LANGUAGE.fullmatch(target) and re.fullmatch(r"(?i)<html\s[^<]*>", part)):
        return part
    for found in reversed([*ATTRIBUTE.finditer(part, len("<html"))]):
        if found[1].lower() in ("lang", "xml:lang") and found.lastindex != 1:
            begin, end = found.span(found.lastindex or 0)
            part = f"{part[:begin]}{target}{part[end:]}"
    return part


def joined(
    tokens: Iterator[Token],
    kept: Callable[[Token], bool],
    said: Callable[[Token], bool],
    ended_by: Mapping[str, tuple[Collection[str], Collection[str]]] = MappingProxyType({}),
) -> Iterator[Token]:
    """Yields the tokens, with each kept element as a single, empty one. An element inside it that is `said` to be
    translated splits it: the part before becomes a start tag, the part after an end tag, and the element's own tokens
    stay. Elements in `ended_by` may lack their end tags."""
    within: list[_Within] = []  # nested elements, alternately kept and not
    for token in tokens:
        while within and (within[-1].opened.ends_before(token) or _closes_outside(within, token)):
            yield from within.pop().rest()
        last = within[-1] if within else None
        turns = token.kind == "opens" and (said(token) if last and last.kept else kept(token))
        if turns:
            if last and last.kept:
                yield from last.part()
            last = _Within(not (last and last.kept), _Opened(ended_by))
            within.append(last)
        if last:
            last.opened.take(token)
        if last and last.kept:
            last.held.append(token)
        else:
            yield token
        if last and not last.opened.names:
            yield from within.pop().rest()
    while within:
        yield from within.pop().rest()


def _closes_outside(within: "Sequence[_Within]", token: Token) -> bool:
    """Whether a tag ends an element around the last of these, and so the last one too."""
    inside = token.kind != "closes" or within[-1].opened.counts[token.name]
    return not inside and any(outer.opened.counts[token.name] for outer in within[:-1])


@dataclass
class _Within:
    """A kept element, or an element inside one that is not kept: what is open in it, and for a kept one, the tokens
    that were not yielded yet, and the name under which earlier ones were."""

    kept: bool
    opened: "_Opened"
    held: list[Token] = field(default_factory=list)
    name: str = ""

    def part(self) -> Iterator[Token]:
        """Yields the tokens before an element that is not kept."""
        yield self._as_one("empty" if self.name else "opens")
        self.name = self.name or self.held[0].name
        self.held = []

    def rest(self) -> Iterator[Token]:
        if self.held:
            yield self._as_one("closes" if self.name else "empty")

    def _as_one(self, kind: Kind) -> Token:
        begin = self.held[0].begin if self.held else 0
        return Token(kind, "".join(each.raw for each in self.held), self.name or self.held[0].name, begin)


class _Opened:
    """The open elements, the outermost first, and their number by name."""

    def __init__(self, ended_by: Mapping[str, tuple[Collection[str], Collection[str]]]) -> None:
        self.ended_by, self.names, self.counts = ended_by, list[str](), Counter[str]()

    def take(self, token: Token) -> None:
        if token.kind == "opens":
            self.names.append(token.name)
            self.counts[token.name] += 1
        elif token.kind == "closes" and self.counts[token.name]:
            closed = ""
            while closed != token.name:
                closed = self.names.pop()
                self.counts[closed] -= 1

    def ends_before(self, token: Token) -> bool:
        """Whether the outermost element ended before this tag, without an end tag."""
        if self.names[0] not in self.ended_by:
            return False
        tags, within = self.ended_by[self.names[0]]
        if token.kind == "closes":  # the end tag of an outer element
            return (token.name not in INLINE or token.name in within) and not self.counts[token.name]
        return token.name in tags and not any(self.counts[name] for name in within)


def _kept(markup: Markup, ignored: Collection[str], token: Token) -> bool:
    if token.name in ignored or token.local in ignored:
        return True
    if markup == "xml" or token.name in EMPTY:
        return False
    said = _translate(token)
    named = said == "no" or not KEPT_CLASSES.isdisjoint((token.attribute("class") or "").lower().split())
    return token.name in NO_TEXT or named or (token.name in KEPT and said != "yes")


def _said(token: Token) -> bool:
    return token.name not in NO_TEXT and _translate(token) == "yes"


def _never(token: Token) -> bool:
    return False


def _translate(token: Token) -> str | None:
    """Returns the value of the attribute `translate` ("yes" if it is empty), or None."""
    said = token.attribute("translate")
    return said.strip().lower() or "yes" if said is not None else None


def is_kept(tag: str) -> bool:
    """Whether HTML does not translate the element with this start tag."""
    return _kept("html", (), next(iter(tokens_of(tag, "html"))))


def _mixed(tokens: Sequence[Token]) -> set[int]:
    """Returns the indices of the inline tags: their parent has text of its own. The outermost parent is the
    fragment."""
    stack, children, texts = [-1], dict[int, list[int]](), set[int]()
    for number, token in enumerate(tokens):
        if token.kind == "text" and not token.raw.isspace():
            texts.add(stack[-1])
        elif token.kind == "closes":
            own = stack.pop() if len(stack) > 1 else -1
            children.setdefault(stack[-1], []).append(number)
            if own in children and own in texts:
                continue
        elif token.name:
            children.setdefault(stack[-1], []).append(number)
            if token.kind == "opens":
                stack.append(number)
    return {number for parent in texts for number in children.get(parent, ())}
