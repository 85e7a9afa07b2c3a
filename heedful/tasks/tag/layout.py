"""Converts words to rows of tokens: a word is several tokens, and its label is predicted at the first (Devlin et al.
2019, section 5.3)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from heedful.data.frame import Frame, Framed, rectangle
from heedful.data.text.tagged import Sentence
from heedful.data.tokenizer import Ids, Tokenizer

NONE = -1  # instead of a label at tokens that have none, and for a label that was not learnt


@dataclass(frozen=True, kw_only=True)
class TagSpec:
    """The content of task.json besides the task's name: the labels of a tagger."""

    labels: tuple[str, ...]


class WordWindow(NamedTuple):
    """Words of one sentence that are read at once, and the position of the first token of each."""

    framed: Framed
    positions: Ids


class TagLayout:
    """Converts words to sequences of at most `context` tokens: a longer sentence is split between words."""

    def __init__(self, tokenizer: Tokenizer, context: int) -> None:
        self.tokenizer, self.frame = tokenizer, Frame.of_encoder(tokenizer)
        self.room = context - self.frame.extra(pair=False)
        self.parted = 0  # the number of sentences that were split

    def encode(self, sentences: Sequence[Sequence[str]]) -> list[list[WordWindow]]:
        words = sorted({word for words in sentences for word in words})
        whole = self.tokenizer.encode_whole([f" {word}" for word in words])
        unknown = self.tokenizer.pad if self.tokenizer.unk is None else self.tokenizer.unk
        ids = {word: (own or [unknown])[: self.room] for word, own in zip(words, whole, strict=True)}
        made = [list(self._pieces([ids[word] for word in sentence])) for sentence in sentences]
        self.parted += sum(len(pieces) > 1 for pieces in made)
        return made

    def _pieces(self, words: Sequence[Ids]) -> Iterator[WordWindow]:
        tokens: Ids = []
        positions: Ids = []
        for word in words:
            if len(tokens) + len(word) > self.room:
                yield WordWindow(self.frame.put(tokens), positions)
                tokens, positions = [], []
            positions = [*positions, len(self.frame.begin) + len(tokens)]
            tokens = [*tokens, *word]
        if positions:
            yield WordWindow(self.frame.put(tokens), positions)


class TagBatch(NamedTuple):
    """Rows of words; `labels` has a word's label at its first token, and NONE elsewhere. Segment 0 is padding."""

    tokens: Int[Tensor, "B T"]
    segments: Int[Tensor, "B T"]
    types: Int[Tensor, "B T"]
    labels: Int[Tensor, "B T"]


TaggedPiece = tuple[WordWindow, Ids]  # with the index of each word's label


def tagged_pieces(layout: TagLayout, sentences: Sequence[Sentence], labels: Sequence[str]) -> list[TaggedPiece]:
    """The pieces of the sentences with their words' labels; NONE for a label that is not among `labels`."""
    number = {label: n for n, label in enumerate(labels)}
    made = []
    for one, pieces in zip(sentences, layout.encode([one.words for one in sentences]), strict=True):
        wanted = iter(one.labels)
        made += [(piece, [number.get(next(wanted), NONE) for _ in piece.positions]) for piece in pieces]
    return made


def tag_batch(examples: Sequence[TaggedPiece]) -> TagBatch:
    tokens, segments, types = rectangle([piece.framed for piece, _ in examples])
    labels = torch.full_like(tokens, NONE)
    for row, (piece, own) in zip(labels, examples, strict=True):
        row[torch.tensor(piece.positions)] = torch.tensor(own)
    return TagBatch(tokens, segments, types, labels)
