"""XLIFF 1.2 and 2 (OASIS 2008; 2014 to 2018): each unit that is not translated yet gets a target.

Units that have a translation, are approved or locked, or are marked `translate="no"` are left alone, except marked
segments of 1.2 without a translation in a unit that has others. A target of 1.2 gets the state "translated" and the
qualifier "mt-suggestion", and a segment of 2 the state "translated"; if it is to be reviewed, the state
"needs-review-translation", or "translated" with the substate "heedful:needs-review". The target keeps the codes of the
source, and text that is marked as not to be translated. Each marked segment of 1.2 is a passage, and so is each line,
as separated by codes, or by line ends if white space is preserved.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import unescape
from typing import NamedTuple

from heedful.data.documents.encodings import XML, decoded
from heedful.data.documents.hypertext import joined
from heedful.data.documents.inline import LINE_END, Inline, inline_of, passages_from
from heedful.data.documents.markup import LANGUAGE, Token, tokens_of
from heedful.data.documents.messages import chooses, passages_of
from heedful.data.documents.passages import Document, Part, Passage, SegmentState
from heedful.data.lines import quoted
from heedful.data.text.formats.inline import PHRASE, breaks_line
from heedful.data.text.formats.xliff import UNTRANSLATED
from heedful.data.text.headers import SIDES, meaning
from heedful.data.xml import root_of
from heedful.errors import InputError, counted

# Elements that are kept with their contents: codes of other formats, and elements without words.
CODES = frozenset(["bpt", "ept", "ph", "it", "ut", "x", "bx", "ex", "sc", "ec", "sm", "em", "cp"])
OPENS, CLOSES = frozenset(["bpt", "bx", "sc"]), frozenset(["ept", "ex", "ec"])
# Attributes of marks that are not to be translated: in XLIFF 2, in 1.2, and by ITS 2.0.
KEPT = (("translate", "no"), ("mtype", "protected"), ("mtype", "x-its-translate-no"), ("its:translate", "no"))
SAID = (("translate", "yes"), ("mtype", "x-its-translate-yes"), ("its:translate", "yes"))  # and of marks that are
REVIEW, SUBSTATE = "needs-review-translation", "heedful:needs-review"
LOCKED = (("mq:locked", "locked"), ("m:locked", "true"))  # by memoQ and Phrase
UNITS = {"trans-unit": "unit", "segment": "segment"}  # and their names in messages
CONTENT = re.compile(r"\A<[^<>]*>|<[^<>]*>\Z")  # the tags around the content of a code
ANGULAR = re.compile(r"(START|CLOSE)_(\w+?)(?:_\d+)?")  # Angular's names of codes for tags
PHRASE_TAG = re.compile(rf"{{({PHRASE})(?:>|&gt;)|&lt;({PHRASE})}}")


class _Open(NamedTuple):
    """An open element, and whether its contents are kept, or its white space preserved."""

    name: str
    kept: bool
    preserved: bool
    at: int  # the index of its token
    place: str  # its name and that of the unit around it, for messages


@dataclass
class Unit:
    """A trans-unit or a segment: its tags and those of its children, as indices of tokens."""

    opens: int
    kept: bool
    preserved: bool  # whether white space is preserved
    place: str  # its name, for messages
    found: dict[str, tuple[int, int]] = field(default_factory=dict)  # the first and the last token of each child
    locked: dict[str | None, bool] = field(default_factory=dict)  # whether Trados has locked its marked segments


def xliff_document(data: bytes, where: str, target: str) -> Document:
    """Parses an XLIFF file. `target` is the language of the translation ("fr", "French"), which is added where the file
    lacks it."""
    root = root_of(data, where)
    if root != "xliff":
        raise InputError(f"<{root}>, expected <xliff>", where=where, fix="give an XLIFF file")
    text, encode = decoded(data, where, says=XML, references=True)
    tokens = [*_without_kept(list(joined(tokens_of(text, "xml"), _code, _said)))]
    units = [*_units(tokens)]
    if not units:
        raise InputError("no unit with a source", where=where, fix="export it again from the tool that made it")
    changes: dict[int, list[Part]] = {}  # parts that replace a token
    after: dict[int, list[Part]] = {}  # and parts that follow it
    gone: set[int] = set()
    left = 0
    line_ends = [found.start() for found in re.finditer("\n", text)]
    for unit in units:
        line = 1 + bisect_left(line_ends, tokens[unit.found["source"][0]].begin)
        if unit.kept or _is_translated(unit, tokens):
            open_segments = {} if unit.kept else _open_segments(unit, tokens, line)
            changes |= open_segments
            left += not open_segments
            continue
        made = _target(unit, tokens, line)
        if (old := unit.found.get("target")) is not None:
            gone.update(range(old[0], old[1] + 1))
            after[old[1]] = made
        else:
            last = unit.found.get("seg-source", unit.found["source"])[1]
            after[last] = [_indent(tokens, unit.found["source"][0]), *made]
        if tokens[unit.opens].local == "segment":
            done, review = ({"state": "translated", "subState": own} for own in (None, SUBSTATE))
            opening = tokens[unit.opens].raw
            changes[unit.opens] = [SegmentState(_with(opening, done), _with(opening, review))]
    notes = [f"{counted(left, 'unit')} translated already, or not to be: left as before"] if left else []
    languages = _languages(tokens, target, changes, notes)
    parts: list[Part] = []
    for number, token in enumerate(tokens):
        if number not in gone:
            parts += changes.get(number, [token.raw])
        parts += after.get(number, [])
    return Document(parts, lambda whole: encode("".join(whole)), tuple(notes), languages)


def _languages(
    tokens: Sequence[Token], target: str, changes: dict[int, list[Part]], notes: list[str]
) -> tuple[tuple[str, str], ...]:
    """Returns the source and target languages that the file declares. Where it declares no target, adds one to the
    `changes`, or a note."""
    found: dict[tuple[str, str], None] = {}
    code = target if LANGUAGE.fullmatch(target) else meaning(target)
    for number, token in enumerate(tokens):
        names = {"xliff": ("srcLang", "trgLang"), "file": ("source-language", "target-language")}.get(token.local)
        if token.kind != "opens" or names is None or not (source := token.attribute(names[0])):
            continue
        said = token.attribute(names[1]) or ""
        found[source, said] = None
        if not said and code is not None and code not in SIDES:
            changes[number] = [_with(token.raw, {names[1]: code})]
        elif not said and token.local == "xliff":
            notes.append("the model does not know what language it translates to: set trgLang, which XLIFF 2 requires")
    return tuple(found)


def _code(token: Token) -> bool:
    kept = any(token.attribute(name) == word for name, word in KEPT)
    return token.local in CODES or (token.local == "mrk" and kept)


def _without_kept(tokens: Sequence[Token]) -> Iterator[Token]:
    """Yields the tokens, with a range between two marks that is not to be translated as one code, if it consists of
    whole elements."""
    ends = _ends_of_marks(tokens)
    number = 0
    while number < len(tokens):
        token, end = tokens[number], ends.get(number)
        if end is not None:
            yield Token("empty", "".join(each.raw for each in tokens[number:end]), token.name, token.begin)
        else:
            yield token
        number = end or number + 1


def _ends_of_marks(tokens: Sequence[Token]) -> dict[int, int]:
    """Returns the marks that are not to be translated, as indices of tokens, and the index after the end of each;
    without those that end in another element."""
    ends, inside = dict[int, int](), [-1]  # the elements around a token
    begun: dict[str | None, list[tuple[int, int]]] = {}  # marks by their id, each with the element that it is in
    for number, token in enumerate(tokens):
        if token.local == "sm" and token.attribute("translate") == "no":
            begun.setdefault(token.attribute("id"), []).append((number, inside[-1]))
        elif token.local == "em":
            ended = begun.pop(token.attribute("startRef"), [])
            ends.update((mark, number + 1) for mark, element in ended if element == inside[-1])
        if token.kind == "opens":
            inside.append(number)
        elif token.kind == "closes" and inside[1:]:
            inside.pop()
    return ends


def _said(token: Token) -> bool:
    return token.local == "mrk" and any(token.attribute(name) == word for name, word in SAID)


def _units(tokens: Sequence[Token]) -> Iterator[Unit]:
    stack: list[_Open] = []
    unit: Unit | None = None
    for number, token in enumerate(tokens):
        if unit is not None and token.local == "seg" and token.kind != "closes":
            unit.locked[token.attribute("id")] = token.attribute("locked") == "true"
        if token.kind == "opens":
            outer = stack[-1] if stack else _Open("", kept=False, preserved=False, at=-1, place="")
            said = token.attribute("translate")
            kept = said == "no" if said is not None else outer.kept
            kept |= token.attribute("approved") == "yes" or any(token.attribute(name) == word for name, word in LOCKED)
            preserved = _preserved(token, outer.preserved)
            stack.append(_Open(token.local, kept, preserved, number, _place(token, outer.place)))
            if token.local in UNITS:
                unit = Unit(number, kept, preserved, stack[-1].place)
        elif token.kind == "empty" and unit is not None and stack[-1].name in UNITS:
            unit.found.setdefault(token.local, (number, number))
        elif token.kind == "closes" and stack:
            closed = stack.pop()
            if unit is not None and stack and stack[-1].at == unit.opens:
                unit.found.setdefault(closed.name, (closed.at, number))
            if closed.name in UNITS:
                if unit is not None and "source" in unit.found:
                    unit.kept |= bool(unit.locked) and all(unit.locked.values())
                    yield unit
                unit = None


def _place(token: Token, outside: str) -> str:
    name, own = UNITS.get(token.local, token.local), token.attribute("id")
    if not own or name not in UNITS.values():
        return outside
    return ", ".join(filter(None, [outside if name == "segment" else "", f"{name} {quoted(own)}"]))


def _preserved(token: Token, outside: bool) -> bool:
    said = token.attribute("xml:space")
    return outside if said is None else said == "preserve"


def _is_translated(unit: Unit, tokens: Sequence[Token]) -> bool:
    if "target" not in unit.found:
        return False
    first, last = unit.found["target"]
    states = tokens[unit.opens].attribute("state"), tokens[first].attribute("state")
    said = any(token.kind == "text" and not token.raw.isspace() for token in tokens[first + 1 : last])
    return said and not any(state in UNTRANSLATED for state in states)


def _open_segments(unit: Unit, tokens: Sequence[Token], line: int) -> dict[int, list[Part]]:
    """Returns, for a partly translated unit, what replaces the start tags of marked segments without a translation."""
    first, last = unit.found.get("seg-source", (0, 0))
    sources: dict[str | None, list[Token]] = {}
    for number in range(first, last):
        if _is_segment(tokens[number]):
            sources[tokens[number].attribute("mid")] = [*_inside(tokens, number)]
    first, last = unit.found["target"]
    made: dict[int, list[Part]] = {}
    preserved = _preserved(tokens[unit.found["source"][0]], unit.preserved)
    for number in range(first, last):
        token = tokens[number]
        open_ = _is_segment(token) and not unit.locked.get(token.attribute("mid"))
        own = sources.get(token.attribute("mid")) if open_ else None
        if own and not any(each.raw.strip() for each in _inside(tokens, number)):
            opening = re.sub(r"\s*/>$", ">", token.raw)
            close = f"</{token.name}>" if token.kind == "empty" else ""
            made[number] = [SegmentState("", ""), opening, *_passages(own, preserved, line, _segment(token)), close]
    return made


def _is_segment(token: Token) -> bool:
    begins = token.kind == "opens" or token.raw.endswith("/>")
    return token.local == "mrk" and begins and token.attribute("mtype") == "seg"


def _inside(tokens: Sequence[Token], number: int) -> Iterator[Token]:
    """Yields the tokens inside a mark."""
    depth = int(tokens[number].kind == "opens")
    while depth:
        number += 1
        if tokens[number].local == "mrk":
            depth += tokens[number].deeper
        if depth:
            yield tokens[number]


def _target(unit: Unit, tokens: Sequence[Token], line: int) -> list[Part]:
    """Returns the whole target element of a unit; `line` is the line of its source."""
    first, last = unit.found.get("seg-source", unit.found["source"])
    source = tokens[unit.found["source"][0]]
    prefix = source.name.removesuffix(source.local)
    opening = _with(f"<{prefix}target>", {"xml:space": source.attribute("xml:space")})
    if (old := unit.found.get("target")) is not None:
        opening = re.sub(r"\s*/>$", ">", tokens[old[0]].raw)
    begins: Part = opening
    if tokens[unit.opens].local == "trans-unit":
        done, review = ({"state": own, "state-qualifier": "mt-suggestion"} for own in ("translated", REVIEW))
        begins = SegmentState(_with(opening, done), _with(opening, review))
    inside = [*_unlocked(tokens[first + 1 : last], unit)]
    passages = _passages(inside, _preserved(source, unit.preserved), line, unit.place)
    return [begins, *passages, f"</{prefix}target>"]


def _unlocked(tokens: Sequence[Token], unit: Unit) -> Iterator[Token]:
    """Yields all tokens except those inside locked segments."""
    depth = 0
    for token in tokens:
        if depth and token.local == "mrk":
            depth += token.deeper
        if not depth:
            yield token
            locked = _is_segment(token) and unit.locked.get(token.attribute("mid"))
            depth = int(bool(locked) and token.kind == "opens")


def _passages(tokens: Sequence[Token], preserved: bool, line: int, unit: str) -> Iterator[str | Passage]:
    run: list[Inline] = []
    place = unit
    segments: list[bool] = []  # whether each open mark is a segment
    for token in tokens:
        bounds = False
        if token.local == "mrk" and token.kind == "opens":
            bounds = token.attribute("mtype") == "seg"
            segments.append(bounds)
        elif token.local == "mrk" and token.kind == "closes":
            bounds = segments.pop()
        if bounds or (token.kind == "empty" and breaks_line(token.attribute, unescape(CONTENT.sub("", token.raw)))):
            yield from passages_of(run, unescape, line=line, place=place, blanks=not preserved)
            yield token.raw
            run = []
            place = place if token.kind == "empty" else _segment(token) if token.kind == "opens" else unit
            continue
        parts = [token.raw]
        if preserved and token.kind == "text" and not chooses(token.raw):
            parts = LINE_END.split(token.raw)
        for own, line_end in zip(parts[::2], parts[1::2], strict=False):
            yield from passages_from([*run, *_words(own)], line=line, place=place, blanks=False)
            yield line_end
            run = []
        run += _words(parts[-1]) if token.kind == "text" else [_inline(token)]
    yield from passages_of(run, unescape, line=line, place=place, blanks=not preserved)


def _segment(token: Token) -> str:
    return f"segment {quoted(token.attribute('mid') or '')}"


def _words(raw: str) -> Iterator[Inline]:
    """Yields a text, and the tags in it that Phrase writes as words."""
    last = 0
    for found in PHRASE_TAG.finditer(raw):
        yield Inline(raw[last : found.start()], unescape(raw[last : found.start()]))
        opens, closes = found.groups()
        yield Inline(found[0], role="opens" if opens else "closes", name=f"#{opens or closes}")
        last = found.end()
    yield Inline(raw[last:], unescape(raw[last:]))


def _inline(token: Token) -> Inline:
    made = inline_of(token)
    if token.raw.startswith("<![CDATA["):
        return Inline(token.raw, token.raw[9:-3])
    if token.local in OPENS | CLOSES:
        made.role = "opens" if token.local in OPENS else "closes"
        made.name = f"#{token.attribute('startRef') or token.attribute('rid') or token.attribute('id')}"
    elif token.local == "x" and (found := ANGULAR.fullmatch(token.attribute("id") or "")):
        made.role, made.name = "opens" if found[1] == "START" else "closes", f"#{found[2]}"
    return made


def _indent(tokens: Sequence[Token], number: int) -> str:
    before = tokens[number - 1] if number else None
    return before.raw if before is not None and before.kind == "text" and before.raw.isspace() else ""


def _with(tag: str, values: Mapping[str, str | None]) -> str:
    """Returns a start tag with these attributes set; None removes one."""
    for name, value in values.items():
        tag = re.sub(rf"\s+{name}\s*=\s*(\"[^\"]*\"|'[^']*')", "", tag)
        if value is not None:
            tag = re.sub(r"\s*(/?>)$", rf' {name}="{value}"\1', tag)
    return tag
