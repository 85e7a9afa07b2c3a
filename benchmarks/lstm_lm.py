"""A recurrent language model of words, as they were before attention: what ours is to beat in the same minutes.

    python -m benchmarks.lstm_lm --data PATH/TO/wikitext2 --minutes 10

Two layers of LSTM between dropouts (Zaremba et al. 2014), trained on stretches of text side by side whose states go on
from one stretch to the next. Four fifths of a text are its two thousand most frequent words: the output is the adaptive
softmax of Grave et al. 2017, a distribution over all words as any other is, in a fraction of the time. Optimizer,
schedule, clipping and averaging are those of our own models, so that what is compared is the model.
"""

import argparse
import math
from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from benchmarks.ngram import SPLITS, numbered, read_words
from heedful.core.dropout import Dropout
from heedful.errors import HeedError
from heedful.training.loop import Budget, Step, TrainState, fit
from heedful.training.loss import Loss
from heedful.training.optim import Average, OptimConfig, Optimizer
from heedful.training.precision import DTYPES, Precision

CUTS = (2000, 10000)  # words above each of these share a smaller output
SCORED = 4096  # words that are scored at a time
SHOWN = 500  # steps between two lines
Memory = list[tuple[Tensor, Tensor]]  # of each layer: what it puts out, and its cell


class LSTM(nn.Module):
    """Words are numbered by how often they occur, the most frequent first."""

    def __init__(self, vocabulary: int, *, width: int = 256, layers: int = 2, dropout: float = 0.2) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(nn.LSTM(width, width, batch_first=True) for _ in range(layers))
        self.drop = Dropout(dropout)
        cuts = [cut for cut in CUTS if cut < vocabulary] or [vocabulary // 2]
        self.out = nn.AdaptiveLogSoftmaxWithLoss(width, vocabulary, cuts, div_value=4.0)
        nn.init.normal_(self.embed.weight, std=0.1)

    def forward(
        self, words: Int[Tensor, "B T"], following: Int[Tensor, "B T"], memory: Memory
    ) -> tuple[Float[Tensor, "B T"], Memory]:
        """The log-probability of each word that follows, and the memory after them all. No memory: it begins."""
        x, after = self.drop(self.embed(words)), []
        for i, layer in enumerate(self.layers):
            x, kept = layer(x, memory[i] if memory else None)
            x = self.drop(x)
            after.append(kept)
        return self.out(x.flatten(0, 1), following.flatten()).output.view_as(words), after


class Stretch(NamedTuple):
    """So many rows of the text side by side: place i of `words` predicts place i of `following`."""

    words: Int[Tensor, "B T"]
    following: Int[Tensor, "B T"]
    first: bool  # of an epoch


class Stretches:
    """Back-propagation through time, cut off after `length` words."""

    def __init__(self, text: Int[Tensor, "T"], *, rows: int, length: int) -> None:
        each = (len(text) - 1) // rows
        self.words = text[: rows * each].view(rows, each)
        self.following = text[1 : rows * each + 1].view(rows, each)
        self.length = length
        self.memory: Memory = []

    def batches(self, epoch: int, model: LSTM) -> list[Stretch]:
        parts = zip(self.words.split(self.length, 1), self.following.split(self.length, 1), strict=True)
        return [Stretch(words, following, i == 0) for i, (words, following) in enumerate(parts)]

    def loss(self, model: LSTM, batch: Stretch) -> Loss:
        found, memory = model(batch.words, batch.following, [] if batch.first else self.memory)
        self.memory = [(out.detach(), cell.detach()) for out, cell in memory]
        return Loss(-found.float().sum(), batch.words.numel())


@torch.inference_mode()
def nats(model: LSTM, text: Int[Tensor, "T"]) -> float:
    """The negative log-probability of a text, all of it in one go, after the end of a line."""
    words, total = torch.cat([text.new_zeros(1), text])[None], 0.0
    memory: Memory = []
    for i in range(0, len(text), SCORED):
        following = text[None, i : i + SCORED]
        found, memory = model(words[:, i : i + following.shape[1]], following, memory)
        total -= float(found.double().sum())
    return total


def trained(
    text: Int[Tensor, "T"],
    *,
    vocabulary: int,
    minutes: float,
    width: int = 256,
    dropout: float = 0.2,
    rows: int = 32,
    length: int = 35,
    lr: float = 3e-3,
    precision: Precision = "bf16",
) -> LSTM:
    """A model after so many minutes of training."""
    torch.manual_seed(1)
    model = LSTM(vocabulary, width=width, dropout=dropout)
    average = Average(model, 0.998)
    model = model.to(DTYPES[precision])
    optimizer = Optimizer(model, OptimConfig(lr=lr, schedule="cosine", warmup=200))
    state = TrainState(model=model, optimizer=optimizer, average=average, seed=1)
    for step in fit(Stretches(text, rows=rows, length=length), state, Budget(minutes=minutes)):
        assert isinstance(step, Step)
        if step.step % SHOWN == 0:
            rate = f"{state.tokens / state.seconds:,.0f} words/s"
            print(f"epoch {step.epoch}, {step.progress:.0%}: {step.loss:.3f} nats a word, {rate}", flush=True)
    assert isinstance(average.model, LSTM)
    return average.model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--dropout", type=float, default=0.2)
    parser.add_argument("--rows", type=int, default=32, help="of text side by side")
    parser.add_argument("--length", type=int, default=35, help="words after which back-propagation is cut off")
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--precision", choices=list(DTYPES), default="bf16")
    chosen = vars(parser.parse_args())
    read, vocabulary = numbered({name: read_words(chosen["data"] / f"{name}.txt") for name in SPLITS})
    texts = {name: torch.from_numpy(text) for name, text in read.items()}
    del chosen["data"]
    model = trained(texts["train"], vocabulary=vocabulary, **chosen)
    valid, test = (math.exp(nats(model, texts[name]) / len(texts[name])) for name in SPLITS[1:])
    print(f"valid {valid:.2f}, test {test:.2f}")


if __name__ == "__main__":
    try:
        main()
    except HeedError as error:
        raise SystemExit(f"error: {error}") from None
