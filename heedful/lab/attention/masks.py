"""Masks: where a mask is added, arbitrary patterns, and patterns that make long sequences cheaper."""

from collections.abc import Mapping

import torch
from torch import Tensor

from heedful.core import EVERYONE, Mask, attention_weights
from heedful.core.compress import groups_in
from heedful.lab.drawn import grids
from heedful.lab.exhibit import NOTHING_SAID, Rows, Says, Shown, Width, beside, holds, unsaid
from heedful.lab.numbers.five_queries import VISIBLE


def seen(mask: Mask, T: int, S: int) -> Tensor:
    """The mask as a grid (T, S) of bools."""
    dense = mask.dense(T, S, torch.device("cpu"))
    return torch.ones(T, S, dtype=torch.bool) if dense is None else dense[0, 0]


def inside_or_outside(says: Says, *, width: Width = 4, bias: float = -1.5, seed: int = 0) -> Shown:
    """Compares (QK' + M) / sqrt d with QK' / sqrt d + M, for minus infinity and for a finite bias."""
    torch.manual_seed(seed)
    q, k = torch.randn(2, 1, 1, 4, width, dtype=torch.float64)
    scores, scale = q @ k.mT, width**-0.5
    ahead = torch.ones(4, 4, dtype=torch.bool).triu(1)
    differ = {}
    for name, value in (("minus infinity", -torch.inf), (f"{bias:g}", bias)):
        M = torch.zeros(4, 4, dtype=torch.float64).masked_fill(ahead, value)
        inside = ((scores + M) * scale).softmax(-1)
        outside = attention_weights(q, k, mask=EVERYONE, bias=M[None, None], scale=scale)
        differ[f"largest difference of weights for a bias of {name}"] = float((inside - outside).abs().max())
    harmless, harmful = differ.values()
    lines = [holds(says, "softmax((QK' + M) / sqrt d) V", "0 and minus infinity alone", right=harmful < 1e-9)]
    assert harmless < 1e-12
    return Shown(lines + unsaid(differ))


def any_mask(says: Says) -> Shown:
    """A mask that is neither causal nor padding."""
    weights = attention_weights(torch.ones(1, 1, 5, 2), torch.ones(1, 1, 3, 2), mask=VISIBLE, scale=1.0)[0, 0]
    computed = {f"keys that query {row} sees": (weights[row - 1] > 0).nonzero()[:, 0] + 1 for row in (4, 5)}
    return Shown(beside(says, computed), grids({"any mask": VISIBLE, "weights of equal scores": weights}))


def local_and_compressed(says: Says, *, tokens: Rows = 12, shorter: int = 3, block: Rows = 4) -> Shown:
    """Attention within blocks, and attention to fewer keys, after a strided convolution (Liu et al. 2018, 4.2.4)."""
    groups = groups_in(torch.arange(tokens)[None], shorter)
    keys = groups.ends.shape[1]
    local = seen(Mask(causal=True, block=block), tokens, tokens)
    compressed = seen(Mask(causal=True).at(groups.ends, groups.valid, tokens, tokens), tokens, keys)
    computed = {
        f"keys after compression by {shorter} of {tokens}": keys,
        f"a block of {block} of {tokens} sees": int(seen(Mask(block=block), tokens, tokens).sum(-1).max()),
    }
    own = (tokens, shorter, block) == (12, 3, 4)
    return Shown(
        beside(says if own else NOTHING_SAID, computed),
        grids({"local, causal": local, "memory-compressed": compressed}),
    )


def sparse(says: Says, *, tokens: Rows = 24, window: int = 4, stride: int = 6) -> Shown:
    """The share of all pairs of tokens that each pattern allows (Prince, section 12.9)."""
    masks = {
        "full": EVERYONE,
        "causal": Mask(causal=True),
        "local": Mask(window=window),
        "local, causal": Mask(causal=True, window=window),
        "strided": Mask(causal=True, window=window, stride=stride),
        "global and local": Mask(window=window, global_tokens=2),
    }
    return shares_of_pairs(says, masks, tokens, columns=3)


def shares_of_pairs(says: Says, masks: Mapping[str, Mask], tokens: int, *, columns: int) -> Shown:
    """Each mask as a grid, and the share of all pairs of tokens that it allows."""
    grid = {name: seen(mask, tokens, tokens) for name, mask in masks.items()}
    shares = {f"{name}: share of all pairs": round(float(each.float().mean()), 4) for name, each in grid.items()}
    return Shown(beside(says, shares), grids(grid, columns=columns))


def mask_grids(says: Says, *, tokens: Rows = 10) -> Shown:
    """Every kind of mask that has a name in the project."""
    segments = torch.tensor([[1] * 4 + [2] * 4 + [0] * 2]) if tokens == 10 else torch.ones(1, tokens, dtype=torch.long)
    valid = torch.arange(tokens)[None] < tokens - 3
    masks = {
        "everyone": EVERYONE,
        "causal": Mask(causal=True),
        "window of 3": Mask(causal=True, window=3),
        "prefix of 4": Mask(causal=True, prefix=torch.tensor([4])),
        "padding": Mask(valid=valid),
        "packed rows": Mask(segments=(segments, segments)),
        "packed, causal": Mask(causal=True, segments=(segments, segments)),
    }
    grid = {name: seen(mask, tokens, tokens) for name, mask in masks.items()}
    computed = {f"{name}: pairs that may look": int(each.sum()) for name, each in grid.items()}
    return Shown(beside(says, computed), grids(grid))
