"""Masked texts: packed rows, with the tokens to predict and the pairs to classify."""

import random
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from heedful.core.seeds import counter_seed
from heedful.data.batches import Ends, pack_rows
from heedful.data.tokenizer import Ids, Tokenizer
from heedful.errors import InputError

PairKind = Literal["none", "next", "order"]
SHARE = 0.15  # the share of the tokens that are chosen
HIDDEN, OTHER = 0.8, 0.1  # of these are masked, and replaced by another token; the rest stay, so that all matter
SHORT = 0.1  # of the pieces of a long text are cut short: the model needs short texts too
WHOLE = 0.25  # of the texts stay whole when pairs are made: masks are filled in whole texts


class MaskedRows(NamedTuple):
    """Rows of texts: `tokens` is the input, made of `words`, which are to be predicted where `chosen`. Segment 0 is
    padding, and the texts of a row are numbered from 1. The second part of a text that is a pair has type 1. `pairs`
    is, at such a text's first token, 0 if the second part continues the first and 1 if not; elsewhere it is -1."""

    tokens: Int[Tensor, "B T"]
    segments: Int[Tensor, "B T"]
    types: Int[Tensor, "B T"]
    words: Int[Tensor, "B T"]
    chosen: Bool[Tensor, "B T"]
    pairs: Int[Tensor, "B T"]


class Masker:
    """Chooses tokens of a row and masks them. With `whole_words`, the tokens of a word are chosen together."""

    def __init__(self, tokenizer: Tokenizer, *, whole_words: bool = False) -> None:
        assert tokenizer.mask is not None
        self.tokenizer, self.mask = tokenizer, tokenizer.mask
        self.controls = torch.tensor(tokenizer.controls)
        self.texts = torch.tensor(sorted({*range(tokenizer.size)}.difference(tokenizer.controls)))
        letters = [tokenizer.letters(index) for index in range(tokenizer.size)] if whole_words else []
        self.begins, self.ends = torch.tensor(letters or [(False, False)] * tokenizer.size).unbind(1)

    def choose(self, words: Int[Tensor, "T"], draw: torch.Generator) -> Int[Tensor, "N"]:
        """Returns the positions of SHARE of the tokens that are text, at least one; with whole words, of as many as
        fit."""
        real = (~torch.isin(words, self.controls)).nonzero()[:, 0]
        if not len(real):
            return real
        joined = self.ends[words[real[:-1]]] & self.begins[words[real[1:]]] & (real.diff() == 1)
        word = torch.cat([joined.new_zeros(1, dtype=torch.long), (~joined).cumsum(0)])
        order = torch.rand(len(real), generator=draw)[word].argsort(stable=True)  # one random number for each word
        count = max(1, round(SHARE * len(real)))
        ends = torch.cat([word[order].diff() != 0, joined.new_ones(1)]).nonzero()[:, 0] + 1
        whole = ends[ends <= count]
        return real[order[: int(whole[-1]) if len(whole) else count]]

    def hide(self, words: Int[Tensor, "T"], seed: int, *, mixed: bool) -> tuple[Int[Tensor, "T"], Bool[Tensor, "T"]]:
        """Returns the masked row, and which of its tokens are to be predicted; `mixed`: not all of these are masked."""
        draw = torch.Generator().manual_seed(seed)
        positions = self.choose(words, draw)
        tokens, chosen = words.clone(), torch.zeros_like(words, dtype=torch.bool)
        chosen[positions], tokens[positions] = True, self.mask
        if mixed:
            chance = torch.rand(len(positions), generator=draw)
            others = self.texts[torch.randint(len(self.texts), (len(positions),), generator=draw)]
            tokens[positions[chance >= HIDDEN]] = others[chance >= HIDDEN]
            kept = positions[chance >= HIDDEN + OTHER]
            tokens[kept] = words[kept]
        return tokens, chosen

    def hide_in(self, rows: MaskedRows, *key: object, mixed: bool) -> MaskedRows:
        """Masks tokens of every row: the random choices for row i depend only on the counter (*key, i)."""
        made = [self.hide(words, counter_seed(*key, i), mixed=mixed) for i, words in enumerate(rows.words)]
        tokens, chosen = (torch.stack(parts) for parts in zip(*made, strict=True))
        return rows._replace(tokens=tokens, chosen=chosen)


def pieces(ids: Ids, longest: int, seed: int | None = None) -> Iterator[Ids]:
    """Yields a text in pieces of at most `longest` tokens. With a seed, the cuts of a text that needs several vary: the
    first piece ends anywhere, and a few others early."""
    draw, begin = random.Random(seed), 0
    while begin < len(ids):
        early = seed is not None and len(ids) > longest and (begin == 0 or draw.random() < SHORT)
        end = begin + (draw.randint(1, longest) if early else longest)
        yield ids[begin:end]
        begin = end


class PairSampler:
    """Makes pairs of texts: most texts are split, at the end of a sentence if there is one, and half of the second
    parts do not continue the first. "next": they come from another text (Devlin et al. 2019, section 3.1, task 2);
    "order": the two parts are swapped (Lan et al. 2020, section 3.1). "none" leaves the texts as they are."""

    def __init__(self, tokenizer: Tokenizer, kind: PairKind) -> None:
        self.kind, self.eos = kind, tokenizer.eos
        texts = [] if kind == "none" else [tokenizer.decode_whole([index]) for index in range(tokenizer.size)]
        self.ends = [text.endswith((".", "!", "?", "\n")) for text in texts]
        self.begins = [text.startswith(" ") for text in texts]

    @property
    def extra(self) -> int:
        """The number of tokens that joining adds to a text."""
        return 0 if self.kind == "none" else 1

    def join(self, texts: Sequence[Ids], longest: int, *key: object) -> list[tuple[Ids, list[int]]]:
        """Returns each text with its label: for a pair, [0] if its second part continues the first, else [1]; for a
        whole text, []. Raises InputError for fewer than two texts of two or more tokens."""
        if self.kind == "none":
            return [(ids, []) for ids in texts]
        made = [(ids, list[int]()) for ids in texts if len(ids) < 2]
        longer = [ids for ids in texts if len(ids) > 1]
        if len(longer) < 2:
            raise InputError("too few texts to make pairs of", fix="give more text, or leave out data.pairs")
        draws = [random.Random(counter_seed(*key, i)) for i in range(len(longer))]
        parts = [self._part(ids, draw) for ids, draw in zip(longer, draws, strict=True)]
        for i, ((first, second), draw) in enumerate(zip(parts, draws, strict=True)):
            if draw.random() < WHOLE:
                made.append(([*first, *second], []))
                continue
            wrong = draw.random() < 0.5
            if wrong and self.kind == "order":
                first, second = second, first
            elif wrong:
                _, second = parts[(i + draw.randrange(1, len(parts))) % len(parts)]
            made.append(([*first, self.eos, *second[: longest - len(first)]], [int(wrong)]))
        return made

    def _part(self, ids: Ids, draw: random.Random) -> tuple[Ids, Ids]:
        """Splits a text after a sentence if possible, else between words, else anywhere."""
        positions = range(1, len(ids))
        sentences = [place for place in positions if self.ends[ids[place - 1]]]
        words = [place for place in positions if self.begins[ids[place]]]
        place = draw.choice(sentences or words or list(positions))
        return ids[:place], ids[place:]


def packed(
    texts: Sequence[tuple[Ids, list[int]]], order: Sequence[int], *, context: int, rows: int, tokenizer: Tokenizer
) -> Iterator[MaskedRows]:
    """Yields batches of rows without masks yet; each text begins with BOS and ends with EOS. For `pack_rows`, the text
    is the source of a pair, and the label from `PairSampler.join` the target."""
    ends, paired = Ends(tokenizer.bos, tokenizer.eos), any(told for _, told in texts)
    named = [([ends.bos, *ids], told or [-1]) for ids, told in texts]
    for batch in pack_rows(named, order, row=context, rows=rows, ends=ends):
        segments = batch.source_segments
        words = torch.where(segments > 0, batch.source, tokenizer.pad)
        types, pairs = torch.zeros_like(words), torch.full_like(words, -1)
        if paired:
            begins, closed = _firsts(segments), words == ends.eos
            ended = closed.cumsum(1) - closed.long()
            types = (ended - torch.where(begins, ended, 0).cummax(1).values) * (segments > 0)
            pairs[begins] = batch.target_out[_firsts(batch.target_segments)]
        yield MaskedRows(words, segments, types, words, torch.zeros_like(words, dtype=torch.bool), pairs)


def _firsts(segments: Int[Tensor, "B T"]) -> Bool[Tensor, "B T"]:
    """Where each text begins."""
    return (segments > 0) & (segments.diff(dim=1, prepend=torch.zeros_like(segments[:, :1])) != 0)
