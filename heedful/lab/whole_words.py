"""Synthetic text in whole words, and translators trained on it: shared by the exhibits that translate.

B sentences, S words of the longest.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pad_sequence

from heedful.decode.search import greedy
from heedful.lab.learning import learn
from heedful.look.record import record
from heedful.models import make_model
from heedful.models.presets import TransformerSize, TranslatorSize, translator_config

PAD, BEGIN, END = 0, 1, 2
MARKS = ("<pad>", "<begin>", "<end>")

Pair = tuple[str, str]
Maker = Callable[[Random], Pair]


class WordVocabulary:
    """A vocabulary of whole words: the special tokens, then `more`, then the words in alphabetical order."""

    def __init__(self, texts: Iterable[str], more: Sequence[str] = ()) -> None:
        self.words = [*MARKS, *more, *sorted({word for text in texts for word in text.split()} - {*more})]
        self.numbers = {word: number for number, word in enumerate(self.words)}

    def __len__(self) -> int:
        return len(self.words)

    def ids(self, text: str) -> list[int]:
        return [self.numbers[word] for word in text.split()]

    def text(self, ids: Iterable[int]) -> str:
        return " ".join(self.words[number] for number in ids)

    def rows(self, texts: Sequence[str], *, begin: bool = False, end: bool = False) -> tuple[Tensor, Tensor]:
        """Padded tokens (B, S) and their segments (0: padding), with BEGIN before and END after them if asked for."""
        rows = [torch.tensor([BEGIN] * begin + self.ids(text) + [END] * end) for text in texts]
        tokens = pad_sequence(rows, batch_first=True, padding_value=PAD)
        lengths = torch.tensor([len(row) for row in rows])
        return tokens, (torch.arange(tokens.shape[1]) < lengths[:, None]).long()


@dataclass(frozen=True)
class Learnt:
    """A translator of whole words, and its vocabulary."""

    model: Any  # a TranslationModel
    words: WordVocabulary

    def translate(self, texts: Sequence[str], longest: int = 40) -> list[str]:
        """Translates greedily, with the likeliest word at each step, until the end."""
        source, segments = self.words.rows(texts, end=True)
        found = greedy(self.model, source, segments, bos=BEGIN, eos=END, longest=longest)
        return [self.words.text(one.tokens) for one in found]

    def right(self, pairs: Sequence[Pair]) -> float:
        """The share of the pairs whose translation is exactly right."""
        said = self.translate([source for source, _ in pairs])
        return sum(one == target for one, (_, target) in zip(said, pairs, strict=True)) / len(pairs)

    @torch.no_grad()
    def given(self, source: str, target: str) -> Tensor:
        """Runs the model on both (teacher forcing), for a recording; returns the logits."""
        return self.model(*self.words.rows([source], end=True)[:1], *self.words.rows([target], begin=True)[:1])

    def cross_attention(self, source: str, target: str) -> list[Tensor]:
        """The cross-attention weights of each layer (H, T, S); T: the target's words and end, S: the source's."""
        with record(self.model, "decoder*cross_attention") as recording:
            self.given(source, target)
        return [recording.weights(name)[0] for name in recording.names]


def translator(
    size: TranslatorSize, make: Maker, words: WordVocabulary, *, steps: int, lr: float, batch: int = 64, seed: int = 0
) -> Learnt:
    """Trains a translator on pairs that `make` draws, new ones at every step."""
    torch.manual_seed(seed)
    model = make_model(translator_config(size, source_vocab=len(words), target_vocab=len(words), joint=True))
    draw = Random(seed)

    def loss(step: int) -> Tensor:
        pairs = [make(draw) for _ in range(batch)]
        source, segments = words.rows([pair[0] for pair in pairs], end=True)
        target, seen = words.rows([pair[1] for pair in pairs], begin=True, end=True)
        logits = model(source, target[:, :-1], segments, seen[:, 1:])
        return cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten(), ignore_index=PAD)

    learn(model, loss, steps=steps, lr=lr)
    return Learnt(model, words)


def small(width: int = 64, layers: int = 2, heads: int = 4) -> TransformerSize:
    """A Transformer that trains in seconds."""
    return TransformerSize(
        d_model=width,
        n_heads=heads,
        d_ff=4 * width,
        encoder_layers=layers,
        decoder_layers=layers,
        dropout=0.0,
        order="pre",
    )


def parameters(model: nn.Module) -> int:
    return sum(weight.numel() for weight in model.parameters())
