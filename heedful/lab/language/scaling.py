"""Loss by model size and by data: a small scaling law (Kaplan et al. 2020, in the manner of their figure 1)."""

from pathlib import Path
from random import Random

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from heedful.data.made.phrasebook import phrasebook
from heedful.lab.drawn import curves
from heedful.lab.exhibit import Says, Shown, Steps, holds, unsaid
from heedful.lab.learning import learn
from heedful.lab.whole_words import parameters
from heedful.models.lm import LM
from heedful.models.presets import LMSize, lm_config

WIDTHS, SHARES, CONTEXT = (4, 8, 16, 32, 64), (1 / 256, 1 / 32, 1.0), 48


def text_of(data: str) -> str:
    """The text of the file `data`, or synthetic sentences if it is empty."""
    if data:
        return Path(data).read_text("utf-8")
    return "\n".join(english for english, _ in phrasebook(4000, seed=0, held_out=10).train)


def loss_of(train: Tensor, valid: Tensor, width: int, letters: int, steps: int) -> tuple[int, float]:
    """The parameters without embeddings, and the loss (nats per letter) on held-out text."""
    torch.manual_seed(0)
    size = LMSize(n_layers=2, d_model=width, n_heads=2, activation="gelu", tied=False)
    model, draw = LM(lm_config(size, vocab_size=letters, context_length=CONTEXT)), Random(0)

    def rows(ids: Tensor, count: int) -> Tensor:
        starts = [draw.randrange(len(ids) - CONTEXT) for _ in range(count)]
        return torch.stack([ids[at : at + CONTEXT + 1] for at in starts])

    def loss(batch: Tensor) -> Tensor:
        return cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())

    learn(model, lambda step: loss(rows(train, 16)), steps=steps, lr=1e-2)
    with torch.no_grad():
        return parameters(model.stack), float(loss(rows(valid, 64)))


def fitted(sizes: list[int], losses: list[float]) -> tuple[float, float]:
    """The exponent of a power law that is fitted to the points, and its R squared, both in logarithms."""
    x, y = np.log(sizes), np.log(losses)
    slope, start = np.polyfit(x, y, 1)
    left = y - (slope * x + start)
    return float(-slope), float(1 - left.var() / y.var())


def scaling(says: Says, *, data: str = "", steps: Steps = 400, short: bool = False) -> Shown:
    """Five model sizes and three amounts of text; `data` is a text file to use instead of synthetic sentences."""
    text = text_of(data)
    known = sorted({*text})
    ids = torch.tensor([known.index(letter) for letter in text])
    train, valid = ids[: len(ids) * 9 // 10], ids[len(ids) * 9 // 10 :]
    steps = min(steps, 120) if short else steps
    losses: dict[str, list[float]] = {}
    sizes: list[int] = []
    for share in SHARES:
        own = train[: max(2 * CONTEXT, int(share * len(train)))]
        found = [loss_of(own, valid, width, len(known), steps) for width in WIDTHS]
        sizes = [count for count, _ in found]
        losses[f"{len(own):,} letters"] = [loss for _, loss in found]
    *_, most = losses.values()
    power, fit = fitted(sizes, most)
    falls = power > 0 and fit > 0.85
    lines = [holds(says, "loss falls as a power of the size", falls)]
    facts = {"exponent": power, "R squared": fit, "parameters beside embeddings": sizes}
    lines += unsaid(facts | {f"losses, {name}": each for name, each in losses.items()})
    drawn = {name: (sizes, each) for name, each in losses.items()}
    return Shown(lines, curves(drawn, x="parameters", y="loss, nats a letter", logarithmic="xy"))
