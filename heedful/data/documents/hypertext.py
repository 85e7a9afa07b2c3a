"""HTML, and XML of any kind: the texts between tags. Inline tags are in passages, all others are between them.

What HTML says is not to be translated is kept: scripts, styles, code, and what has `translate="no"` or the class
`notranslate`, but for what has `translate="yes"` inside of that; readings of ruby and links to headings are kept too.
Attributes are kept, but for the language of a whole page, and for those that people read (`alt`, `placeholder`, the
description of a page) of tags that are not between the words of a passage.
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

from heedful.data.documents.inline import Inline, inline_of, passages_from
from heedful.data.documents.markup import ATTRIBUTE, EMPTY, LANGUAGE, TAG, Kind, Token, tokens_of
from heedful.data.documents.passages import Passage, Placed, plain

Markup = Literal["xml", "html"]

PHRASING = """
a abbr acronym b bdi bdo big cite code data del dfn em font i img ins kbd label mark math nobr q rp rt ruby s samp small
span strike strong sub sup svg time tt u var wbr
"""
INLINE = frozenset(PHRASING.split())
NO_TEXT = {"math", "script", "style", "svg"}  # kept with all that is in them
KEPT = {"code", "kbd", "pre", "rp", "rt", "samp", "var"}  # and so are these, unless they are said to be translated
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
# Elements whose end tag HTML lets be left out (its section 13.1.2.4), the tags that end them then, and the elements
# inside of which those tags are others'.
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
) -> list[str | Passage]:
    """The parts of a page or a fragment. What is inside of the elements of `ignored` names is kept; tags of `breaking`
    names part passages, and those of `inline` names do not. Of others, HTML's own say it; in XML a tag is inline where
    its parent has text of its own."""
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
        if within:
            run.append(inline_of(token))
        else:
            flush(token.begin)
            parts += _tag_parts(token, line + 1) if markup == "html" else [token.raw]
    flush(len(text))
    return parts


def _tag_parts(token: Token, line: int) -> Iterator[str | Passage]:
    """A tag, with those of its attributes that people read as passages; what is more than a tag as it is."""
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
    """A text as the value of an attribute, by which group of `ATTRIBUTE` it is: in double quotes, single ones, none."""
    text = plain(placed)
    if group == 3:
        return escape(text, {"'": "&#39;"})
    made = escape(text, {'"': "&quot;"})
    return f'"{made}"' if group == 4 else made


def in_language(part: str, target: str) -> str:
    """A tag that begins a page and says a language, with this one in place of it; any other part as it is, and all
    where the target is no code of a language."""
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
    """The tokens, with an element that is kept as one of them, an empty one. An element inside of it that is `said` to
    be translated parts it: what is before it opens, what is behind it closes, and its own tokens are as they are
    outside. One of `ended_by` may lack its end tag."""
    within: list[_Within] = []  # elements in elements, by turns kept and not
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
    """Whether a tag ends what the last of these elements is in, and so that one too."""
    inside = token.kind != "closes" or within[-1].opened.counts[token.name]
    return not inside and any(outer.opened.counts[token.name] for outer in within[:-1])


@dataclass
class _Within:
    """An element that is kept, or one inside of that which is not: what is open in it, and of one that is kept its
    tokens that were not handed on yet, and whether others were."""

    kept: bool
    opened: "_Opened"
    held: list[Token] = field(default_factory=list)
    name: str = ""

    def part(self) -> Iterator[Token]:
        """What comes before an element that is not kept."""
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
    """The elements that are open, the outermost one first, and how many there are of each name."""

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
        if token.kind == "closes":  # of an element that it is in
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
    """What the attribute of that name says ("yes" where it has no value); None where there is none."""
    said = token.attribute("translate")
    return said.strip().lower() or "yes" if said is not None else None


def is_kept(tag: str) -> bool:
    """Whether HTML does not translate the element that begins with this tag."""
    return _kept("html", (), next(iter(tokens_of(tag, "html"))))


def _mixed(tokens: Sequence[Token]) -> set[int]:
    """The numbers of the tags that are inline: their parent has text of its own. The fragment is the first parent."""
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
