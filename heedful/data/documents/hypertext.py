"""HTML, and XML of any kind: the texts between tags. Inline tags are in passages, all others are between them.

What HTML says is not to be translated is kept: scripts, styles, code, and what has `translate="no"` or the class
`notranslate`. So are attributes.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Literal

from heedful.data.documents.inline import Inline, inline_of, passages_from
from heedful.data.documents.markup import EMPTY, Token, tokens_of
from heedful.data.documents.passages import Passage

Markup = Literal["xml", "html"]

PHRASING = """
a abbr acronym b bdi bdo big cite code data del dfn em font i img ins kbd label mark math nobr q rp rt ruby s samp small
span strike strong sub sup svg time tt u var wbr
"""
INLINE = frozenset(PHRASING.split())
KEPT = {"code", "kbd", "math", "pre", "samp", "script", "style", "svg", "var"}  # with all that is in them
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
    tokens = [*joined(tokens_of(text, markup), partial(_kept, markup, frozenset(ignored)))]
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


def joined(tokens: Iterator[Token], kept: Callable[[Token], bool]) -> Iterator[Token]:
    """The tokens, with an element that is kept as one of them, an empty one."""
    held: list[Token] = []
    depth = 0
    for token in tokens:
        if held:
            held.append(token)
            depth += (token.name == held[0].name) * ((token.kind == "opens") - (token.kind == "closes"))
            if depth:
                continue
            yield Token("empty", "".join(each.raw for each in held), held[0].name, held[0].begin)
            held = []
        elif token.kind == "opens" and kept(token):
            held, depth = [token], 1
        else:
            yield token
    if held:
        yield Token("empty", "".join(each.raw for each in held), held[0].name, held[0].begin)


def _kept(markup: Markup, ignored: Collection[str], token: Token) -> bool:
    if token.name in ignored or token.local in ignored:
        return True
    return (
        markup == "html" and token.name not in EMPTY and (token.name in KEPT or bool(NOT_TRANSLATED.search(token.raw)))
    )


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
