"""Measures repetition: the share of a text's n-grams that occurred before."""

from collections.abc import Sequence

import torch

from heedful.decode.rules import NoRepeat
from heedful.decode.search import greedy
from heedful.lab.drawn import curves
from heedful.lab.exhibit import Rows, Says, Shown, holds, unsaid
from heedful.models.lm import LM
from heedful.models.presets import LANGUAGE_MODELS, lm_config

LOOP = "washington , d.c. , washington , d.c. , washington , d.c."
LENGTHS = (1, 2, 3, 4)


def repeated(words: Sequence[object], n: int) -> float:
    """The share of n-grams that occurred before in the same text (Welleck et al. 2020, equation 6)."""
    grams = [tuple(words[at : at + n]) for at in range(len(words) - n + 1)]
    return 1 - len({*grams}) / len(grams) if grams else 0.0


def washington(says: Says, *, text: str = LOOP, tokens: Rows = 80, seed: int = 0) -> Shown:
    """The deck's sample, and an untrained model, which repeats itself too, unless no three tokens may occur twice."""
    torch.manual_seed(seed)
    model = LM(lm_config(LANGUAGE_MODELS["gpt-nano"], vocab_size=64, context_length=tokens + 2)).eval()
    start = torch.tensor([[3]])
    said = {}
    for name, rules in (("greedy", ()), ("greedy, no three tokens twice", (NoRepeat(3),))):
        (one,) = greedy(model, start[:, :0], bos=3, eos=-1, longest=tokens, rules=rules)
        said[name] = one.tokens
    shares = {"the deck's sample": [repeated(text.split(), n) for n in LENGTHS]}
    shares |= {name: [repeated(each, n) for n in LENGTHS] for name, each in said.items()}
    repeats = shares["the deck's sample"][2] > 0.3
    lines = [holds(says, "washington , d.c. , washington , d.c. repeats", repeats)]
    lines += unsaid({f"share of n-grams seen before (n = 1 to 4), {name}": each for name, each in shares.items()})
    drawn = {name: (LENGTHS, each) for name, each in shares.items()}
    return Shown(lines, curves(drawn, x="n", y="n-grams that came before"))
