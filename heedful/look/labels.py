"""Labels for pictures: a token as one safe short line, and the pattern that an attention head seems to follow.

H heads, T queries, S keys.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.errors import InputError


def token_label(token: str, *, limit: int = 40) -> str:
    """`token` on one line: control characters and direction overrides as escapes, a blank token as ␣, and cut at
    `limit` characters."""
    clipped = token if len(token) <= limit else token[: limit - 1] + "…"
    clipped = clipped if clipped.strip(" ") else "␣"
    # The two joiners are not printable either, but Persian, the Indic scripts and emoji are wrong without them.
    return "".join(
        c if c.isprintable() or c in "\u200c\u200d" else c.encode("unicode_escape").decode() for c in clipped
    )


@dataclass(frozen=True)
class HeadLabel:
    """A head's label: the pattern that explains it best, how well it does (1: completely), and the mean entropy."""

    name: str  # previous | self | next | first | last | diagonal | uniform | mixed
    score: float  # of a pattern: mass above chance, 0 to 1; of uniform and mixed: entropy / its maximum
    entropy: float  # bits

    def __str__(self) -> str:
        return self.name if self.name == "mixed" else f"{self.name} {self.score:.2f}"


def is_causal(weights: Float[Tensor, "H T T"]) -> bool:
    """Whether no head attends to later tokens: without a mask, a softmax is never 0 everywhere above the diagonal."""
    return weights.shape[1] > 1 and not weights.triu(1).any()


def summary(weights: Float[Tensor, "H T S"], *, same: bool) -> list[HeadLabel]:
    """One label for each head of `weights`; `same`: queries and keys are the same tokens.

    A pattern's score is the mass on its cells above that of uniform attention, over the largest possible gain:
    (mass - chance) / (1 - chance), so that short sentences do not look like patterns. If all heads are exactly 0
    above the diagonal, they count as causal. Raises InputError when `same` and T != S.
    """
    _, T, S = weights.shape
    if same and T != S:
        raise InputError(
            f"{T} queries and {S} keys cannot be the same tokens", fix="pass same=False for cross-attention"
        )
    weights = weights.double().cpu()
    allowed = torch.ones(T, S, dtype=torch.bool)
    if same and is_causal(weights):
        allowed = allowed.tril()
    choices = allowed.sum(-1)
    even = allowed / choices.unsqueeze(-1)
    entropy = -torch.xlogy(weights, weights).sum(-1)  # (H, T), nats
    free = choices > 1
    t, s = torch.arange(T).unsqueeze(-1), torch.arange(S).unsqueeze(0)
    offset = s - t * ((S - 1) / max(T - 1, 1))  # from the straight line between the first and the last corner
    shifts = {"previous": -1, "self": 0, "next": 1} if same else {}
    cells = {name: s - t == shift for name, shift in shifts.items()}
    cells |= {
        "first": (s == 0).expand(T, S),
        "last": (s == S - 1).expand(T, S),
        "diagonal": offset.abs() <= 1,
    }

    scores = {}
    for name, pattern in cells.items():
        rows = (pattern & allowed).any(-1) & free
        mass, chance = (weights * pattern).sum(-1)[:, rows].sum(-1), (even * pattern).sum(-1)[rows].sum()
        gain = rows.sum() - chance
        # A pattern that most queries cannot follow (the last token, under a causal mask) gets no score.
        possible = rows.sum() * 2 >= free.sum() and gain > 1e-9
        scores[name] = (mass - chance) / gain if possible else torch.zeros(len(weights))
    evenness = (entropy / choices.clamp(min=2).log())[:, free].mean(-1).nan_to_num()

    labels = []
    for head, bits in enumerate((entropy.mean(-1) / torch.log(torch.tensor(2.0))).tolist()):
        found = {name: float(score[head]) for name, score in scores.items()}
        # The band contains self and its neighbours, so it only counts where none of them explains the head.
        band = found.pop("diagonal")
        name, score = max(found.items(), key=lambda pair: pair[1])
        if score < 0.5 and band >= 0.5:
            name, score = "diagonal", band
        elif score < 0.5:
            name, score = ("uniform" if evenness[head] > 0.9 else "mixed"), float(evenness[head])
        labels.append(HeadLabel(name, score, bits))
    return labels
