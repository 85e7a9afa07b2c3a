"""The parts of a document: passages, which are translated, and the source between them, which is kept."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from heedful.errors import InputError

LONGEST, DEEPEST = 1_000_000, 256  # characters, and tags within each other, of a passage
Role = Literal["alone", "opens", "closes"]


@dataclass(frozen=True)
class Mark:
    """Something inside a passage that is not text: a tag, or anything else that is kept. Two marks that belong together
    have the same `pair`; what is between them stays between them."""

    at: int  # the number of characters of the passage's text before it
    raw: str  # its source
    role: Role = "alone"
    pair: int = -1


Placed = Sequence[str | Mark]  # a text in parts, with marks between


def plain(placed: Placed) -> str:
    """Joins texts and marks, unescaped."""
    return "".join(part if isinstance(part, str) else part.raw for part in placed)


@dataclass(frozen=True)
class Passage:
    """A unit of translation: a paragraph, a heading, a cell. `text` has neither tags nor escapes, `raw` is the source,
    and `write` makes the source of other words with the same marks."""

    text: str
    marks: tuple[Mark, ...] = ()
    raw: str = ""
    write: Callable[[Placed], str] = field(default=plain, repr=False)
    line: int = 0  # line of the file, from 1; 0: unknown
    place: str = ""  # the position in words, if a line is not enough

    def where(self, file: str | Path) -> str:
        """Returns the file and the position of the passage, for a message."""
        return "".join([str(file), f":{self.line}" * bool(self.line), f": {self.place}" * bool(self.place)])

    @property
    def placed(self) -> list[str | Mark]:
        """The passage's own text in parts, with its marks."""
        return split_at(self.text, self.marks)


def refuse_large(passages: Iterable[Passage], file: str | Path) -> None:
    """Raises InputError for a passage that is too long, or has tags nested too deeply."""
    for passage in passages:
        if len(passage.text) > LONGEST:
            what = f"a paragraph of {len(passage.text):,} characters, at most {LONGEST:,} are read"
            raise InputError(what, where=passage.where(file), fix="is it a document? break its lines")
        depth = 0
        for mark in passage.marks:
            depth += (mark.role == "opens") - (mark.role == "closes")
            if depth > DEEPEST:
                what = f"a paragraph with tags nested more than {DEEPEST} deep"
                raise InputError(what, where=passage.where(file), fix="take out what only formats it")


def passage_json(passage: Passage) -> str:
    """The text of a passage and the places of its marks, for another process, which does without the rest."""
    return json.dumps([passage.text, [[mark.at, mark.role, mark.pair] for mark in passage.marks]])


def passage_of(text: str) -> Passage:
    """The passage that `passage_json` wrote; the source of each mark is its number."""
    content, marks = json.loads(text)
    return Passage(content, tuple(Mark(at, str(n), role, pair) for n, (at, role, pair) in enumerate(marks)))


@dataclass(frozen=True)
class SegmentState:
    """The source before passages: `done`, or `review` if one of the passages up to the next state is to be reviewed."""

    done: str
    review: str


Part = str | Passage | SegmentState


@dataclass(frozen=True)
class Document:
    """The parts of a file in order, and `finish`, which makes the file of them. `notes` tell what is not translated,
    and why; `languages` are the source and target languages that the file, or each file in it, declares, or ""."""

    parts: Sequence[Part]
    finish: Callable[[list[str]], bytes] = field(repr=False)
    notes: tuple[str, ...] = ()
    languages: tuple[tuple[str, str], ...] = ()

    @property
    def passages(self) -> list[Passage]:
        return [part for part in self.parts if isinstance(part, Passage)]

    def written(self, said: Iterable[Placed | None], review: Iterable[bool] = ()) -> bytes:
        """Returns the file with these texts in place of its passages; None, or a passage's own text, leaves its source
        unchanged. `review`: which of them are to be reviewed. Raises InputError if its encoding lacks a character."""
        each, doubts = iter(said), iter(review)
        whole, at, state = list[str](), 0, SegmentState("", "")
        for part in self.parts:
            if isinstance(part, SegmentState):
                at, state = len(whole), part
                whole.append(part.done)
            elif isinstance(part, str):
                whole.append(part)
            else:
                whole.append(_said(part, next(each)))
                if next(doubts, False) and state.review:
                    whole[at] = state.review
        return self.finish(whole)


def _said(passage: Passage, placed: Placed | None) -> str:
    if placed is None or merged(placed) == merged(passage.placed):
        return passage.raw
    return passage.write(merged(placed))


def merged(placed: Placed) -> list[str | Mark]:
    """Returns the parts without empty texts, and with adjacent texts joined."""
    made: list[str | Mark] = []
    for part in placed:
        if isinstance(part, str) and made and isinstance(last := made[-1], str):
            made[-1] = last + part
        elif part != "":
            made.append(part)
    return made


def split_at(text: str, marks: Sequence[Mark]) -> list[str | Mark]:
    """Splits a text at the positions of its marks, and inserts these."""
    made: list[str | Mark] = []
    begin = 0
    for mark in marks:
        made += [text[begin : mark.at], mark]
        begin = mark.at
    return [*made, text[begin:]]


def with_pairs(marks: Sequence[Mark], names: Sequence[str]) -> list[Mark]:
    """Numbers the pairs of marks: a closing mark belongs to the last open one of its name. A mark without a partner, or
    a pair that would cross another, becomes `alone`."""
    made, stack, opened = [*marks], list[int](), Counter[str]()
    for number, (mark, name) in enumerate(zip(marks, names, strict=True)):
        if mark.role == "opens":
            stack.append(number)
            opened[name] += 1
        elif mark.role == "closes" and stack and names[stack[-1]] == name:
            begin = stack.pop()
            opened[name] -= 1
            made[begin], made[number] = replace(made[begin], pair=begin), replace(mark, pair=begin)
        elif mark.role == "closes" and opened[name]:
            while (last := names[stack.pop()]) != name:
                opened[last] -= 1
            opened[name] -= 1  # both stay without a partner, and so do marks opened between them
    return [replace(mark, role="alone") if mark.role != "alone" and mark.pair < 0 else mark for mark in made]
