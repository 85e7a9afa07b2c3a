"""The control tokens around the texts of an encoder's input: one text, or a pair."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from heedful.data.tokenizer import PAD, Ids, Tokenizer


class Framed(NamedTuple):
    """An input sequence, with the type of each token: 1 for the second of two texts and its end token, else 0."""

    tokens: Ids
    types: Ids


@dataclass(frozen=True)
class Frame:
    """The control tokens: begin, text, end; or begin, text, between, text, end."""

    begin: Ids
    between: Ids
    end: Ids

    @classmethod
    def of_encoder(cls, tokenizer: Tokenizer) -> "Frame":
        """As in Devlin et al. 2019, figure 2, where BOS and EOS are called [CLS] and [SEP]; Liu et al. 2019 separate
        two texts by two EOS."""
        return cls([tokenizer.bos], [tokenizer.eos] * tokenizer.special.separators, [tokenizer.eos])

    def extra(self, *, pair: bool) -> int:
        """The number of control tokens around the texts."""
        return len(self.begin) + len(self.between) * pair + len(self.end)

    def put(self, first: Ids, second: Ids | None = None) -> Framed:
        before = [*self.begin, *first, *(self.end if second is None else self.between)]
        after = [] if second is None else [*second, *self.end]
        return Framed(before + after, [0] * len(before) + [1] * len(after))


def rectangle(sequences: Sequence[Framed]) -> tuple[Int[Tensor, "B T"], Int[Tensor, "B T"], Int[Tensor, "B T"]]:
    """Returns tokens, segments and types of sequences as rows: segment 1 is the sequence, and 0 the padding behind
    it."""
    T = max((len(one.tokens) for one in sequences), default=0)
    tokens, segments, types = torch.full((len(sequences), T), PAD), *torch.zeros(2, len(sequences), T).long()
    for row, one in enumerate(sequences):
        length = len(one.tokens)
        tokens[row, :length], segments[row, :length] = torch.tensor(one.tokens), 1
        types[row, :length] = torch.tensor(one.types)
    return tokens, segments, types


def rectangles(
    groups: Sequence[Sequence[Framed]],
) -> tuple[Int[Tensor, "B N T"], Int[Tensor, "B N T"], Int[Tensor, "B N T"]]:
    """As `rectangle`, for groups of sequences; groups with fewer sequences than the largest are filled up with
    padding."""
    N = max(map(len, groups))
    rows = [one for group in groups for one in (*group, *[Framed([], [])] * (N - len(group)))]
    tokens, segments, types = (part.unflatten(0, (-1, N)) for part in rectangle(rows))
    return tokens, segments, types
