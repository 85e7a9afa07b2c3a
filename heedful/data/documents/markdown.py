"""Markdown (CommonMark with tables and strikethrough), parsed by markdown-it-py: its blocks show where text is, and its
inline tokens which characters are markup. Code, link addresses, pictures and front matter are kept, and so is syntax
that CommonMark lacks: formulas, footnote marks, check boxes, attributes in braces, emoji (`:tada:`), the beginnings of
definitions, beginnings and ends of notes (`[!NOTE]`, `:::tip`), citations (`[@x]`), shortcodes (`{{< x >}}`, `{% x
%}`), and the imports and exports of MDX."""

import html
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

from heedful.data.documents.hypertext import hypertext_parts, is_kept
from heedful.data.documents.inline import Inline, passages_from
from heedful.data.documents.passages import Mark, Passage, Placed, Role
from heedful.data.documents.plain import rewrapped
from heedful.data.documents.words import Span

FRONT = re.compile(
    r"(?:---[ \t]*\r?\n(?![ \t]*\r?\n).*?^(?:---|\.\.\.)|\+{3}[ \t]*\r?\n.*?^\+{3})[ \t]*(?:\r?\n|$)",
    re.DOTALL | re.MULTILINE,
)
TAIL = re.compile(
    r"""\]\(\s*(?:<[^<>\n]*>|[^\s()<]*(?:\([^\s()]*\)[^\s()]*)*)
        (?:\s+(?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\((?:\\.|[^()\\])*\)))?\s*\)
      | \]\[[^\[\]]*\] | \]""",
    re.VERBOSE,
)
BREAK = re.compile(r"(?:\\| *)\n *")
# The source of tokens whose markup alone does not determine it.
PATTERNS = {"softbreak": BREAK, "hardbreak": BREAK, "link_open": re.compile("<[^>]*>"), "link_close": TAIL}
KEPT = re.compile(
    r"(\[\^[^\[\]\s]+\]:?|\A\[[ xX]\](?=\s)|\{[ \t]*(?:[#.:]|[\w-]+=)[^{}\n]*\}"
    r"|\A\[![A-Za-z]+\][-+]?(?!\()|\A:{3,}[^\n]*|\ue000+|\ue001+)"
)
# Formulas as on GitHub: a private character replaces them while the text is parsed.
FORMULA = re.compile(r"\$\$(?:(?!\n[ \t]*\r?\n)[^$`])+\$\$|(?<![\\$\w])\$(?=[^\s$])[^$\n`]*(?<=[^\s$\\])\$(?![\w${])")
# What begins and ends the shortcodes of Hugo and Jekyll, and code between such.
SHORTCODES = ((r"\{\{", r"\}\}"), (r"\{%", r"%\}"))
HIGHLIGHTS = (
    (r"^\{%-? *highlight\b", r"\{%-? *endhighlight *-?%\}"),
    (r"^\{\{[<%] *highlight\b", r"\{\{[<%] */highlight *[%>]\}\}"),
)
PARAGRAPH_END = r"\n[ \t]*\r?\n"
ALONE = re.compile(r"^[ \t]*(\ue000+(?:\r?\n\ue000+)*)(?=[ \t]*\r?$)", re.MULTILINE)  # a shortcode in a line of its own
# What MkDocs and others replace, where it is in a line of its own.
INSERTED = re.compile(
    r"^[ \t]*(--8<--[^\r\n]*|\[TOC\]|\[\[_?TOC_?\]\]"
    r"|\\[a-z]+(?:\{[^{}\r\n]*\}|\[[^\[\]\r\n]*\])*)(?=[ \t]*\r?$)",
    re.MULTILINE | re.IGNORECASE,
)
# Imports and exports of MDX.
GOES_ON = r"(?!\n(?:[ \t]*(?:\r?\n|```|~~~)|(?:im|ex)port\s))"
CODE = re.compile(
    rf"^(?:import\s(?:{GOES_ON}[^;'\"])*['\"][^'\"\n]+['\"];?(?=[ \t]*\r?$)"
    rf"|export[ ](?:default|const|let|var|function|class|async)\b(?:{GOES_ON}[\s\S])*)",
    re.MULTILINE,
)
# Citations as in Pandoc, names after @, and wiki links.
CITED = re.compile(
    r"\[(?:[^\[\]\n]*[\s;-])?@\w[^\[\]\n]*\](?![(\[])|(?<![\w@/.`-])-?@[A-Za-z](?:[\w:./-]*\w)?|\[\[[^\[\]\n]+\]\]"
)
EMOJI = re.compile(r"(?<![\w:]):(?=[+_-]*[a-z0-9])[a-z0-9_+-]+:(?![\w:])")
TAG = re.compile(r"<([a-zA-Z][\w-]*)(?:\s[^<>\n]*)?>")
EITHER_TAG = re.compile(r"<(/)?([a-zA-Z][\w-]*)(?(1)\s*>)")
NOTE = re.compile(  # beginnings of footnotes, notes of MkDocs or tabs, after markers of quotes and lists
    r"^((?:[ \t]*(?:>|(?:[-+*]|\d{1,9}[.)])(?=[ \t])))*[ \t]*)"
    r'(\[\^[^\[\]\s]+\]:|(?:!{3}|\?{3}\+?)[ ][^\r\n]*|={3}[ ]"[^\r\n]*)',
    re.MULTILINE,
)
# The markers of definitions and abbreviations.
DEFINES = re.compile(r"^(?:[ \t]*>)*[ \t]*([:~][ \t]+|\*\[[^\[\]\n]+\]:[ \t]+)(?=\S)", re.MULTILINE)
REFERENCE = re.compile(r"&(?=#?\w{1,31};)")
BY_WORDS = ("]", "][]")  # the ends of links whose text refers to an address below
SIGNS = "\\`*_[]<~"
BLOCK = re.compile(r"(?:[-+*>#|~]|\d{1,9}[.)])(?:\s|$)|(?:=+|-+)\s*$|(?:```|~~~|#{1,6}(?:\s|$))")
# White space inside marks (code, link titles) is replaced while lines are wrapped, so that it stays unchanged.
HELD = {ord(blank): 0xD800 + number for number, blank in enumerate(" \t\r\n")}
FREE = {sign: blank for blank, sign in HELD.items()}

Edit = tuple[int, int, list[str | Passage]]  # a range of characters of the file, and its parts


def markdown_parts(text: str) -> tuple[list[str | Passage], list[str]]:
    """Returns the parts, and notes on text that is kept because its markup could not be followed."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable("text_join")
    front = FRONT.match(text)
    body = re.sub(r"[^\r\n]", " ", front[0]) + text[front.end() :] if front else text
    for begins, ends in HIGHLIGHTS:
        body = _hidden(body, _enclosed(body, begins, ends), "\ue001")
    body = _hidden(body, _spans(CODE, body), "\ue001")
    for begins, ends in SHORTCODES:
        body = _hidden(body, _enclosed(body, begins, ends, never=PARAGRAPH_END))
    for parting in (ALONE, INSERTED):
        body = _hidden(body, _spans(parting, body, 1), "\ue001")
    for kept in (FORMULA, EMOJI, CITED):
        body = _hidden(body, _spans(kept, body))
    body = _hidden(body, _kept_elements(body))
    # Parse it as a list item, which holds everything indented below it: a footnote of one word would be a link
    # definition.
    body = NOTE.sub(lambda found: found[1] + "+   ".ljust(len(found[2]), "\ue001"), body)
    body = DEFINES.sub(lambda found: found[0].removesuffix(found[1]) + "\ue001" * len(found[1]), body)
    starts = [0, *(found.end() for found in re.finditer(r"\r\n|\r|\n", body)), len(body)]
    edits, notes = list[Edit](), list[str]()
    line_end = "\r\n" if "\r\n" in text else "\n"
    row, after = -1, 0  # the row of a table, and where its next cell may begin
    block = ""  # the type of the block that has just begun
    for token in parser.parse(body.replace("\0", " ")):
        cell, block = block in ("td_open", "th_open"), token.type
        if token.map is None or token.type not in ("inline", "html_block"):
            continue
        first, last = token.map
        if token.type == "html_block":
            begin, end = starts[first], starts[last]
            parts = hypertext_parts(text[begin:end], "html")
            edits.append((begin, end, [_below(part, first) for part in parts]))
            continue
        after = after if row == first else starts[first]
        found = _edit(token, text, body, starts, after, cell, line_end)
        row = first
        if found is None:
            notes.append(f"line {first + 1}: kept as it is, since its markup could not be followed")
            continue
        edits.append(found)
        after = found[1]
    return [*_spliced(text, edits)], notes


def _hidden(text: str, spans: Iterable[Span], sign: str = "\ue000") -> str:
    """Replaces all characters in these spans, except line ends."""
    parts, done = list[str](), 0
    for begin, end in spans:
        parts += [text[done:begin], re.sub(r"[^\r\n]", sign, text[begin:end])]
        done = end
    return "".join([*parts, text[done:]])


def _spans(pattern: re.Pattern[str], text: str, group: int = 0) -> Iterator[Span]:
    return (found.span(group) for found in pattern.finditer(text))


def _enclosed(text: str, begins: str, ends: str, *, never: str = r"(?!)") -> Iterator[Span]:
    """Yields the spans from what `begins` to what next `ends`, without what is `never` inside. In linear time, which a
    pattern of all three is not where much begins and does not end."""
    closing = [found.span() for found in re.finditer(ends, text)]
    breaks = [found.start() for found in re.finditer(never, text)]
    done = 0
    for found in re.finditer(begins, text, re.MULTILINE):
        number = bisect_left(closing, (found.end(), 0))
        if number == len(closing):
            return
        begin, end = closing[number]
        if found.start() >= done and bisect_left(breaks, found.end()) == bisect_left(breaks, begin):
            yield found.start(), end
            done = end


def _kept_elements(body: str) -> Iterator[Span]:
    """Yields the spans of elements on one line, without code or another of their name inside, that HTML does not
    translate."""
    tags: dict[str, list[tuple[int, int, bool]]] = {}  # by their names: the span of each, and whether it is an end tag
    for tag in EITHER_TAG.finditer(body):
        tags.setdefault(tag[2].lower(), []).append((*tag.span(), bool(tag[1])))
    bounds = [found.start() for found in re.finditer("[\n`]", body)]
    done = 0
    for tag in TAG.finditer(body):
        if tag.start() >= done and is_kept(tag[0]):
            named = tags[tag[1].lower()]
            begin, end, closes = named[min(bisect_left(named, (tag.end(), 0, False)), len(named) - 1)]
            if closes and begin >= tag.end() and bisect_left(bounds, tag.end()) == bisect_left(bounds, begin):
                yield tag.start(), end
                done = end


def _spliced(text: str, edits: Sequence[Edit]) -> Iterator[str | Passage]:
    done = 0
    for begin, end, parts in sorted(edits, key=lambda edit: edit[:2]):
        if begin >= done:
            yield text[done:begin]
            yield from parts
            done = end
    yield text[done:]


def _below(part: str | Passage, lines: int) -> str | Passage:
    """Returns the part, moved down by `lines` lines."""
    return part if isinstance(part, str) else replace(part, line=part.line + lines)


def _edit(
    token: Any, text: str, body: str, starts: Sequence[int], after: int, cell: bool, line_end: str
) -> Edit | None:
    """Returns the passages of an inline token, and the range of characters in the file that they replace; None if that
    cannot be found in the parsed text, `body`. In the `cell` of a table, "|" is markup."""
    first = token.map[0]
    offsets = list[int]()  # offsets in the file of each character of the content, and of its end
    for number, line in enumerate(token.content.split("\n")):
        begin, end = max(starts[first + number], after if not number else 0), starts[first + number + 1]
        own = line.rstrip()
        written = own if body.find(own, begin, end) >= 0 else own.replace("|", "\\|")
        at = body.find(written, begin, end)
        if at < 0:
            return None
        wide = (2 if sign == "|" and written != own else 1 for sign in own)
        offsets += [*accumulate(wide, initial=at)]
        offsets += [offsets[-1]] * (len(line) - len(own))
    content = token.content
    if len(offsets) != len(content) + 1:
        return None
    runs = _runs(token.children or [], content, text, offsets)
    if runs is None:
        return None
    several = token.map[1] - first > 1 and "\n" in content
    last = content[content.rfind("\n") + 1 :]
    begin = len(content) - len(last.lstrip(" \t"))  # otherwise a line might leave its note
    lead = text[starts[first + content.count("\n")] : offsets[begin]] if several else ""
    width = max(map(len, text[starts[first] : starts[token.map[1]]].splitlines())) if several else 0
    parts: list[str | Passage] = []
    for run in runs:
        literal = "".join(part.raw for part in run if part.text is not None)
        bare = "".join(part.raw for part in run if part.raw == part.text)
        told = "".join(part.text for part in run if part.text is not None and part.raw != part.text)
        signs = "".join(sign for sign in SIGNS if sign in told or sign not in bare) + "|" * cell

        def write(placed: Placed, literal: str = literal, signs: str = signs) -> str:
            apart = _apart(placed)
            made = "".join(
                _escaped(part, signs) if isinstance(part, str) else part.raw.translate(HELD) for part in apart
            )
            made = made if BLOCK.match(literal.lstrip()) else _no_block(made)
            made = rewrapped(made, width, lead, line_end, never=BLOCK) if several else made
            return made.translate(FREE)

        parts += passages_from(run, write=write, line=first + 1)
    return offsets[0], offsets[-1], parts


def _apart(placed: Placed) -> Iterator[str | Mark]:
    """Yields the parts with a space between adjacent marks that would otherwise join, such as two code spans."""
    before: str | Mark = ""
    for part in placed:
        if part == "":
            continue
        if not isinstance(before, str) and not isinstance(part, str):
            both = before.role != "opens" and part.role != "closes"
            if both and before.raw[-1:] == part.raw[:1] and part.raw[:1] in ("`", "*", "_", "~"):
                yield " "
        yield part
        before = part


def _escaped(text: str, signs: str) -> str:
    """Puts a backslash before characters that would be markup: those that the source does not have as text, or only
    escaped; and those that begin a character reference."""
    made = re.sub(f"[{re.escape(signs)}]", lambda found: f"\\{found[0]}", text) if signs else text
    return REFERENCE.sub(r"\\&", made)


def _no_block(text: str) -> str:
    """Escapes the beginning of a text, so that it does not begin a list, heading or quote."""
    if not BLOCK.match(text):
        return text
    return re.sub(r"^(\d*)(.)", r"\1\\\2", text, count=1, flags=re.DOTALL)


def _runs(children: Sequence[Any], content: str, text: str, offsets: Sequence[int]) -> list[list[Inline]] | None:
    """Returns the inline parts in order, in runs between hard line breaks; None if a token is not found where it should
    be."""
    runs: list[list[Inline]] = [[]]
    at, skip = 0, False
    begin = 0  # the beginning of a link's text
    for token in children:
        if skip:  # inside an autolink
            skip = token.type != "link_close"
            continue
        skip = token.type == "link_open" and token.markup == "autolink"
        end = _end(token, content, at)
        if end is None:
            return None
        beside = ""
        runs += [[]] if token.content.startswith("\ue001") else []
        if token.type == "link_open":
            begin = end
        elif token.type == "link_close" and content[at:end] in BY_WORDS:
            label = (" " if content[n] == "\n" else text[offsets[n] : offsets[n + 1]] for n in range(begin, at))
            beside = f"][{' '.join(''.join(label).split())}]"
        for length, said, role, name in _said(token, end - at):
            runs[-1].append(Inline(text[offsets[at] : offsets[at + length]], said, role, name, beside))
            at += length
        runs += [[]] if token.type == "hardbreak" else []
    return runs if not content[at:].strip() else None


def _end(token: Any, content: str, at: int) -> int | None:
    """Returns the end of the token that begins at `at`; None if it does not."""
    kind, markup = token.type, token.markup
    if kind == "code_inline":
        found = re.compile(rf"{markup}(?!`).*?(?<!`){markup}(?!`)", re.DOTALL).match(content, at)
    elif kind == "image":
        end = _label(content, at + 1)
        found = TAIL.match(content, end) if end else None
    elif kind == "link_open" and markup != "autolink":
        return at + 1 if content.startswith("[", at) else None
    elif pattern := PATTERNS.get(kind):
        found = pattern.match(content, at)
    else:
        raw = token.content if kind in ("text", "html_inline") else markup
        return at + len(raw) if content.startswith(raw, at) else None
    return found.end() if found else None


def _said(token: Any, length: int) -> list[tuple[int, str | None, Role, str]]:
    """Returns the parts of a token of this length: the length of each, its text if it is one, and else its role and
    name."""
    kind = token.type
    if kind == "text":
        parts = enumerate(KEPT.split(token.content))
        return [(len(part), None if number % 2 else part, "alone", "") for number, part in parts]
    if kind == "text_special":
        said = html.unescape(token.markup) if token.markup.startswith("&") else token.content
        return [(length, said, "alone", "")]
    if kind == "softbreak":
        return [(length, " ", "alone", "")]
    if kind == "html_inline":
        raw, tag = token.content, re.match(r"</?([\w-]+)", token.content)
        role: Role = "closes" if raw.startswith("</") else "opens" if tag and not raw.endswith("/>") else "alone"
        return [(length, None, role, f"<{tag[1].lower()}>" if tag else "")]
    if not token.nesting or token.markup == "autolink":
        return [(length, None, "alone", "")]
    return [(length, None, "opens" if token.nesting > 0 else "closes", kind.rpartition("_")[0])]


def _label(content: str, begin: int) -> int:
    """Returns the position of the "]" that closes the "[" at `begin`; 0 if there is none."""
    depth = 0
    for found in re.compile(r"\\.|[\[\]]", re.DOTALL).finditer(content, begin):
        depth += (found[0] == "[") - (found[0] == "]")
        if found[0] == "]" and not depth:
            return found.start()
    return 0
