"""Markdown (CommonMark with tables and strikethrough), parsed by markdown-it-py: its blocks say where text is, and its
inline tokens which signs in it are markup. Code, addresses of links, pictures and front matter are kept, and so are the
marks of footnotes, boxes to tick and attributes in braces, which CommonMark has not."""

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from heedful.data.documents.hypertext import hypertext_parts
from heedful.data.documents.inline import Inline, passages_from
from heedful.data.documents.passages import Passage, Placed
from heedful.data.documents.plain import rewrapped

FRONT = re.compile(r"---[ \t]*\r?\n(?![ \t]*\r?\n).*?^(?:---|\.\.\.)[ \t]*(?:\r?\n|$)", re.DOTALL | re.MULTILINE)
TAIL = re.compile(
    r"""\]\(\s*(?:<[^<>\n]*>|[^\s()<]*(?:\([^\s()]*\)[^\s()]*)*)
        (?:\s+(?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\((?:\\.|[^()\\])*\)))?\s*\)
      | \]\[[^\[\]]*\] | \]""",
    re.VERBOSE,
)
KEPT = re.compile(r"(\[\^[^\[\]\s]+\]:?|\A\[[ xX]\](?=\s)|\{[#.:][^{}\n]*\})")
SIGNS = "\\`*_[]<~"
BLOCK = re.compile(r"(?:[-+*>#|~]|\d{1,9}[.)])(?:\s|$)|(?:=+|-+)\s*$|(?:```|~~~|#{1,6}(?:\s|$))")

Edit = tuple[int, int, list[str | Passage]]  # of characters of the file


def markdown_parts(text: str) -> tuple[list[str | Passage], list[str]]:
    """The parts, and lines about what is kept because it could not be told from its markup."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable("text_join")
    front = FRONT.match(text)
    body = re.sub(r"[^\r\n]", " ", front[0]) + text[front.end() :] if front else text
    starts = [0, *(found.end() for found in re.finditer(r"\r\n|\r|\n", body)), len(body)]
    edits, notes = list[Edit](), list[str]()
    row, after = -1, 0  # of a table, and where its next cell may begin
    block = ""  # the kind of the one that has just begun
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
        found = _edit(token, text, starts, after, cell)
        row = first
        if found is None:
            notes.append(f"line {first + 1}: kept as it is, since its markup could not be followed")
            continue
        edits.append(found)
        after = found[1]
    return [*_spliced(text, edits)], notes


def _spliced(text: str, edits: Sequence[Edit]) -> Iterator[str | Passage]:
    done = 0
    for begin, end, parts in sorted(edits, key=lambda edit: edit[:2]):
        if begin >= done:
            yield text[done:begin]
            yield from parts
            done = end
    yield text[done:]


def _below(part: str | Passage, lines: int) -> str | Passage:
    """The same after so many lines."""
    return part if isinstance(part, str) else replace(part, line=part.line + lines)


def _edit(token: Any, text: str, starts: Sequence[int], after: int, cell: bool) -> Edit | None:
    """The passages of an inline token, and which characters of the file they are; None where they are not found. In the
    `cell` of a table "|" is markup."""
    first = token.map[0]
    offsets = list[int]()  # of each character of the content in the file, and of its end
    for number, line in enumerate(token.content.split("\n")):
        begin, end = max(starts[first + number], after if not number else 0), starts[first + number + 1]
        own = line.rstrip()
        written = own if text.find(own, begin, end) >= 0 else own.replace("|", "\\|")
        at = text.find(written, begin, end)
        if at < 0:
            return None
        offsets += [at + len(own[:n].replace("|", "\\|") if written != own else own[:n]) for n in range(len(own) + 1)]
        offsets += [offsets[-1]] * (len(line) - len(own))
    content = token.content
    if len(offsets) != len(content) + 1:
        return None
    runs = _runs(token.children or [], content, text, offsets)
    if runs is None:
        return None
    several = token.map[1] - first > 1 and "\n" in content
    lead = text[starts[first + content.count("\n")] : offsets[content.rfind("\n") + 1]] if several else ""
    width = max(len(line) for line in text[starts[first] : starts[token.map[1]]].splitlines())
    parts: list[str | Passage] = []
    for run in runs:
        literal = "".join(part.raw for part in run if part.text is not None)

        def write(placed: Placed, literal: str = literal) -> str:
            made = "".join(_escaped(part, literal, cell) if isinstance(part, str) else part.raw for part in placed)
            made = made if BLOCK.match(literal.lstrip()) else _no_block(made)
            return rewrapped(made, width, lead, "\r\n" if "\r\n" in text else "\n", never=BLOCK) if several else made

        parts += passages_from(run, write=write, line=first + 1)
    return offsets[0], offsets[-1], parts


def _escaped(text: str, literal: str, cell: bool) -> str:
    """With a backslash before what would be markup, but for signs that were text in the source as they stand."""
    signs = "".join(sign for sign in SIGNS if sign not in literal) + "|" * cell
    return re.sub(f"[{re.escape(signs)}]", lambda found: f"\\{found[0]}", text) if signs else text


def _no_block(text: str) -> str:
    """That its beginning begins no list, heading or quote."""
    if not BLOCK.match(text):
        return text
    return re.sub(r"^(\d*)(.)", r"\1\\\2", text, count=1, flags=re.DOTALL)


def _runs(children: Sequence[Any], content: str, text: str, offsets: Sequence[int]) -> list[list[Inline]] | None:
    """The inline parts in the order of the content, in runs between hard line breaks; None where a token is not found
    where it must be."""
    runs: list[list[Inline]] = [[]]
    at = 0

    def take(end: int, said: str | None = None, role: str = "alone", name: str = "") -> None:
        nonlocal at
        runs[-1].append(Inline(text[offsets[at] : offsets[end]], said, role, name))
        at = end

    skip = False
    for token in children:
        kind, markup = token.type, token.markup
        if skip:  # inside <an address>
            skip = kind != "link_close"
            continue
        raw = token.content if kind in ("text", "html_inline") else markup
        if kind == "softbreak" or kind == "hardbreak":
            found = re.compile(r"(?:\\| *)\n *").match(content, at)
            if found is None:
                return None
            if kind == "softbreak":
                take(found.end(), " ")
            else:
                runs[-1].append(Inline(text[offsets[at] : offsets[found.end()]], None))
                at = found.end()
                runs.append([])
        elif kind == "code_inline":
            found = re.compile(rf"{markup}(?!`).*?(?<!`){markup}(?!`)", re.DOTALL).match(content, at)
            if found is None:
                return None
            take(found.end())
        elif kind == "image":
            end = _label(content, at + 1)
            found = TAIL.match(content, end) if end else None
            if found is None:
                return None
            take(found.end())
        elif kind == "link_open" and markup == "autolink":
            end = content.find(">", at) + 1
            if not end or content[at] != "<":
                return None
            take(end)
            skip = True
        elif kind == "link_open":
            if content[at : at + 1] != "[":
                return None
            take(at + 1, None, "opens", "link")
        elif kind == "link_close":
            found = TAIL.match(content, at)
            if found is None:
                return None
            take(found.end(), None, "closes", "link")
        elif not content.startswith(raw, at):
            return None
        elif kind == "text":
            for number, part in enumerate(KEPT.split(token.content)):
                take(at + len(part), None if number % 2 else part)
        elif kind == "text_special":
            take(at + len(raw), html.unescape(markup) if markup.startswith("&") else token.content)
        elif kind == "html_inline":
            name = re.match(r"</?([\w-]+)", raw)
            role = "closes" if raw.startswith("</") else "opens" if name and not raw.endswith("/>") else "alone"
            take(at + len(raw), None, role, f"<{name[1].lower()}>" if name else "")
        else:
            take(at + len(raw), None, "opens" if token.nesting > 0 else "closes", kind.rpartition("_")[0])
    return runs if not content[at:].strip() else None


def _label(content: str, begin: int) -> int:
    """Where the "]" is that closes the "[" at `begin`; 0 where there is none."""
    depth = 0
    for found in re.compile(r"\\.|[\[\]]", re.DOTALL).finditer(content, begin):
        depth += (found[0] == "[") - (found[0] == "]")
        if found[0] == "]" and not depth:
            return found.start()
    return 0
