"""Running text that is too large for the memory: read piece by piece, each time that it is asked for, it is the text
that `heedful.data.text.documents.read_documents` reads, and the same of it is held out."""

import re
from array import array
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from heedful.data.large import large_lines
from heedful.data.lines import BETWEEN, PART, json_items, json_lines, read_lines
from heedful.data.parts import kind_of, sorted_in, stems
from heedful.data.text.documents import (
    HELD_MOST,
    SHARE,
    Documents,
    characters_held,
    document_files,
    documents_in,
    documents_kept,
    marked_up,
    text_of,
)
from heedful.errors import InputError, MissingError


class Piece(NamedTuple):
    """Some text of a document; the first piece `begins` it."""

    begins: bool
    text: str


@dataclass(frozen=True)
class Outline:
    """What is learnt of a text: the first `documents`; or all of them, joined to one of so many `characters`."""

    documents: int
    characters: int
    joined: bool


@dataclass(frozen=True)
class Running:
    """The files of running text: those that are learnt from, and what is read of the others."""

    name: str
    learnt: tuple[Path, ...]
    others: tuple[Path, ...] = ()

    @property
    def files(self) -> tuple[Path, ...]:
        return tuple(sorted((*self.learnt, *self.others)))

    def absolute(self) -> "Running":
        """The same from any folder."""
        learnt, others = ([path.absolute() for path in paths] for paths in (self.learnt, self.others))
        return replace(self, learnt=tuple(learnt), others=tuple(others))

    def pieces(self) -> Iterator[Piece]:
        """All text of the files that are learnt from. Raises InputError or MissingError."""
        return chain.from_iterable(map(_pieces, self.learnt))

    def outlined(self) -> tuple[Outline, Documents]:
        """What is learnt, and the other parts, whose `train` is empty; reads all once. Raises InputError or
        MissingError."""
        _, valid, tests = sorted_in((file.name, documents_in(file)) for file in self.others)
        sizes, ends = array("q"), _Ends(HELD_MOST)
        for piece in self.pieces():
            if piece.begins:
                sizes.append(0)
            sizes[-1] += len(piece.text)
            ends.add(piece)
        if not ends.words:
            raise InputError("no document with a word", where=self.name, fix='write {"text": "..."} on each line')
        notes: tuple[str, ...] = ()
        if valid:
            outline = Outline(len(sizes), sum(sizes), joined=False)
        elif len(sizes) >= 2 * SHARE:
            kept, note = documents_kept(sizes, HELD_MOST, self.name)
            outline, notes = Outline(kept, sum(sizes[:kept]), joined=False), (note,)
            valid = ends.documents(len(sizes) - kept)
        else:
            whole = sum(sizes) + len(sizes) - 1
            held, note = characters_held(whole, HELD_MOST, self.name)
            outline, notes = Outline(1, whole - held, joined=True), (note,)
            valid = [ends.text(held)]
        if self.learnt == (Path(self.name),):
            notes = (*marked_up(self.learnt[0]), *notes)
        return outline, Documents([], valid, stems(tests), self.name, self.files, notes)

    def learnt_pieces(self, outline: Outline) -> Iterator[Piece]:
        """The text that is learnt."""
        documents, left = 0, outline.characters
        for piece in self.pieces():
            documents += piece.begins
            text = piece.text
            if outline.joined and piece.begins and documents > 1:
                text = f"\n{text}"
            begins = piece.begins and not (outline.joined and documents > 1)
            if left <= 0 if outline.joined else documents > outline.documents:
                return
            yield Piece(begins, text[:left] if outline.joined else text)
            left -= len(text)


class _Ends:
    """The last pieces, of more than `most` characters; once there are many documents, with all of the last one."""

    def __init__(self, most: int) -> None:
        self.most, self.size, self.pieces, self.words = most, 0, deque[Piece](), False
        self.count = self.held = 0  # documents that were read, and whose beginnings are held

    def add(self, piece: Piece) -> None:
        self.words = self.words or bool(piece.text.strip())
        self.pieces.append(piece)
        self.size += len(piece.text)
        self.count += piece.begins
        self.held += piece.begins
        while self.size - len(self.pieces[0].text) > self.most:
            first = self.pieces[0]
            if first.begins and self.held == 1 and self.count >= 2 * SHARE:
                break
            self.pieces.popleft()
            self.size -= len(first.text)
            self.held -= first.begins

    def documents(self, count: int) -> list[str]:
        """The last so many documents."""
        texts = list[list[str]]()
        for piece in self.pieces:
            if piece.begins or not texts:
                texts.append([])
            texts[-1].append(piece.text)
        return ["".join(pieces) for pieces in texts[-count:]]

    def text(self, size: int) -> str:
        """So many of the last characters, of documents that are joined to one."""
        texts = (f"\n{piece.text}" if piece.begins else piece.text for piece in self.pieces)
        return "".join(texts)[-size:]


def running_text(path: str | Path) -> Running:
    """The files of a text, of which nothing is read yet. Raises MissingError or InputError."""
    path = Path(path)
    if not path.is_dir():
        if not path.is_file():
            raise MissingError("there is no such file", where=str(path), fix="name a .txt or .jsonl file")
        return Running(str(path), (path,))
    train, valid, tests = sorted_in((file.name, [file]) for file in document_files(path))
    if not train:
        raise InputError("no text to train on", where=str(path), fix="add train.txt")
    others = (*valid, *(file for part in tests.values() for file in part))
    return Running(str(path), tuple(train), others)


def _pieces(path: Path) -> Iterator[Piece]:
    kind = kind_of(path)
    if kind == ".json":
        return (Piece(True, text_of(row, where)) for where, row in json_items(path))
    lines = large_lines(path) or read_lines(path)
    if kind == ".jsonl":
        return (Piece(True, text_of(row, where)) for where, row in json_lines(path, lines))
    return (Piece(not number, f"{line}\n") for number, line in enumerate(lines))


class TextPart(NamedTuple):
    """A part of a document that a tokenizer may be given alone; the first one `begins` it, and the last one `ends`
    it."""

    begins: bool
    ends: bool
    text: str


def in_text_parts(pieces: Iterable[Piece], *, whole: bool, between: re.Pattern[str] = BETWEEN) -> Iterator[TextPart]:
    """The documents in the parts in which `heedful.data.lines.in_parts` cuts them, or in such of whole sentences, with
    what is `between` these left out; or each `whole`."""
    held, size, begins = list[str](), 0, True
    for piece in pieces:
        if piece.begins and held:
            yield from _cut("".join(held), begins, None if whole else between, ends=True)
            held, size, begins = [], 0, True
        held.append(piece.text)
        size += len(piece.text)
        if not whole and size >= 4 * PART:
            *parts, last = _cut("".join(held), begins, between, ends=False)
            yield from parts
            held, size, begins = [last.text], len(last.text), begins and not parts
    if held:
        yield from _cut("".join(held), begins, None if whole else between, ends=True)


def _cut(text: str, begins: bool, between: re.Pattern[str] | None, *, ends: bool) -> Iterator[TextPart]:
    while between is not None and (place := between.search(text, PART)) is not None:
        yield TextPart(begins, False, text[: place.start()])
        text, begins = text[place.end() :], False
    yield TextPart(begins, ends, text)
