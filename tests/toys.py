"""Models for tests of search: a toy without training, whose logits depend on all tokens before, and a small translator
of each kind."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from heedful.models.presets import TRANSLATORS, translator_config
from heedful.models.rnn import RNN, RNNConfig
from heedful.models.seq2seq import Seq2Seq

V, BOS, EOS, SIZE = 12, 1, 2, 997


@dataclass
class Walk:
    """The row of the toy's table for each row of the batch."""

    row: Tensor

    def pick(self, rows: Tensor) -> "Walk":
        return Walk(self.row[rows])


class Toy:
    """A model whose logits depend on all tokens before."""

    def __init__(self, end: float = 1.0) -> None:
        self.table = 2 * torch.randn(SIZE, V, generator=torch.Generator().manual_seed(5))
        self.table[:, EOS] += end

    def start(self, source: Tensor, segments: Tensor | None) -> Walk:
        return Walk(source.sum(1) * 31 % SIZE)

    def step(self, tokens: Tensor, state: Walk) -> tuple[Tensor, Walk]:
        row = (state.row * 37 + tokens * 101 + 7) % SIZE
        return self.table[row], Walk(row)


def sources(n: int) -> Tensor:
    return torch.arange(3 * n).view(n, 3) * 5


def transformer(vocab: int) -> Seq2Seq:
    row = replace(TRANSLATORS["transformer-tiny"], d_model=16, n_heads=4, d_ff=24, encoder_layers=1, decoder_layers=2)
    return Seq2Seq(translator_config(row, source_vocab=vocab, target_vocab=vocab, joint=True))


def rnn(vocab: int) -> RNN:
    return RNN(RNNConfig(source_vocab=vocab, target_vocab=vocab, d_embed=7, d_hidden=10, d_align=9, d_readout=4))
