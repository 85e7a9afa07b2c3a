"""What a document is made of: passages, which are translated, and what is kept between them as it stands."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

Role = Literal["alone", "opens", "closes"]


@dataclass(frozen=True)
class Mark:
    """What stands inside a passage and is no text: a tag, or anything else that is kept as it is. Two that belong
    together have one `pair`; what is between them stays between them."""

    at: int  # characters of the passage's text before it
    raw: str  # as it stands in the file
    role: Role = "alone"
    pair: int = -1


Placed = Sequence[str | Mark]  # a text in parts, with marks between them


def plain(placed: Placed) -> str:
    """Texts and marks as they stand."""
    return "".join(part if isinstance(part, str) else part.raw for part in placed)


@dataclass(frozen=True)
class Passage:
    """What is translated as a whole: a paragraph, a heading, a cell. `text` has no tags and no escapes, `raw` is how it
    all stands in the file, and `write` says how other words and the same marks stand there."""

    text: str
    marks: tuple[Mark, ...] = ()
    raw: str = ""
    write: Callable[[Placed], str] = field(default=plain, repr=False)
    line: int = 0  # of the file, from 1; 0: not known
    place: str = ""  # in words, where a line alone does not say it

    def where(self, file: str | Path) -> str:
        """The file and where in it the passage stands, for a message."""
        return "".join([str(file), f":{self.line}" * bool(self.line), f": {self.place}" * bool(self.place)])

    @property
    def placed(self) -> list[str | Mark]:
        """The passage itself in parts."""
        return split_at(self.text, self.marks)


@dataclass(frozen=True)
class SegmentState:
    """What stands before passages, and what stands there where one of those up to the next state is to be reviewed."""

    done: str
    review: str


Part = str | Passage | SegmentState


@dataclass(frozen=True)
class Document:
    """The parts of a file in their order, and `finish`, which makes the file of them. `notes` are lines about what is
    not translated in it, and why; `languages` what the file says that it, or each file in it, is in, and is to be
    translated to, or ""."""

    parts: Sequence[Part]
    finish: Callable[[list[str]], bytes] = field(repr=False)
    notes: tuple[str, ...] = ()
    languages: tuple[tuple[str, str], ...] = ()

    @property
    def passages(self) -> list[Passage]:
        return [part for part in self.parts if isinstance(part, Passage)]

    def written(self, said: Iterable[Placed | None], review: Iterable[bool] = ()) -> bytes:
        """The file with these in place of its passages; None, and what is the passage itself, leave one as it stands.
        `review`: which of them are to be reviewed. Raises InputError where its encoding lacks a character."""
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
    """The same without empty texts, and with one text where two follow each other."""
    made: list[str | Mark] = []
    for part in placed:
        if isinstance(part, str) and made and isinstance(last := made[-1], str):
            made[-1] = last + part
        elif part != "":
            made.append(part)
    return made


def split_at(text: str, marks: Sequence[Mark]) -> list[str | Mark]:
    """A text in parts, with the marks where they say that they stand."""
    made: list[str | Mark] = []
    begin = 0
    for mark in marks:
        made += [text[begin : mark.at], mark]
        begin = mark.at
    return [*made, text[begin:]]


def with_pairs(marks: Sequence[Mark], names: Sequence[str]) -> list[Mark]:
    """Marks that open and close, with their pairs numbered: a close belongs to the last open one of its name. What has
    no partner, or crosses another pair, becomes a mark alone."""
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
            opened[name] -= 1  # both stay without a partner, and so does what was opened between them
    return [replace(mark, role="alone") if mark.role != "alone" and mark.pair < 0 else mark for mark in made]
