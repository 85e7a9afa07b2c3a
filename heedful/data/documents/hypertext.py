"""HTML, and XML of any kind: the texts between tags. Inline tags are in passages, all others are between them.

What HTML says is not to be translated is kept: scripts, styles, code, and what has `translate="no"` or the class
`notranslate`. So are attributes, but for the language of a whole page.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Literal

from heedful.data.documents.inline import Inline, inline_of, passages_from
from heedful.data.documents.markup import ATTRIBUTE, EMPTY, LANGUAGE, Token, tokens_of
from heedful.data.documents.passages import Passage

Markup = Literal["xml", "html"]

PHRASING = """
a abbr acronym b bdi bdo big cite code data del dfn em font i img ins kbd label mark math nobr q rp rt ruby s samp small
span strike strong sub sup svg time tt u var wbr
"""
INLINE = frozenset(PHRASING.split())
KEPT = {"code", "kbd", "math", "pre", "samp", "script", "style", "svg", "var"}  # with all that is in them
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
NOT_TRANSLATED = re.compile(
    r"(?i)\stranslate\s*=\s*[\"']?no\b|\sclass\s*=\s*(?:\"[^\"]*\bnotranslate\b|'[^']*\bnotranslate\b|notranslate\b)"
)


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
    tokens = [*joined(tokens_of(text, markup), partial(_kept, markup, frozenset(ignored)), ended_by)]
    if markup == "xml":
        mixed = _mixed(tokens)
    parts: list[str | Passage] = []
    run: list[Inline] = []
    line = counted = 0

    def flush(end: int) -> None:
        nonlocal line, counted
        line += text.count("\n", counted, end)
        counted = end
        if run:
            parts.extend(passages_from(run, line=line + 1))
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
            parts.append(token.raw)
    flush(len(text))
    return parts


def in_language(part: str, target: str) -> str:
    """A tag that begins a page and says a language, with this one in place of it; any other part as it is, and all
    where the target is no code of a language."""
    if not (LANGUAGE.fullmatch(target) and re.fullmatch(r"(?i)<html\s[^<]*>", part)):
        return part
    for found in reversed([*ATTRIBUTE.finditer(part, len("<html"))]):
        if found[1].lower() in ("lang", "xml:lang"):
            begin, end = next(found.span(group) for group in (2, 3, 4) if found[group] is not None)
            part = f"{part[:begin]}{target}{part[end:]}"
    return part


def joined(
    tokens: Iterator[Token],
    kept: Callable[[Token], bool],
    ended_by: Mapping[str, tuple[Collection[str], Collection[str]]] = MappingProxyType({}),
) -> Iterator[Token]:
    """The tokens, with an element that is kept as one of them, an empty one. One of `ended_by` may lack its end tag."""
    held: list[Token] = []
    opened = _Opened({})
    for token in tokens:
        if held and opened.ends_before(token):
            yield _as_one(held)
            held = []
        if held:
            held.append(token)
            opened.take(token)
            if not opened.names:
                yield _as_one(held)
                held = []
        elif token.kind == "opens" and kept(token):
            held, opened = [token], _Opened(ended_by)
            opened.take(token)
        else:
            yield token
    if held:
        yield _as_one(held)


def _as_one(held: Sequence[Token]) -> Token:
    return Token("empty", "".join(each.raw for each in held), held[0].name, held[0].begin)


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
    return (
        markup == "html" and token.name not in EMPTY and (token.name in KEPT or bool(NOT_TRANSLATED.search(token.raw)))
    )


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
