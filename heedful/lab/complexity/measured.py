"""Operations, bytes and path lengths of three layers that mix tokens, counted as they run, with fitted exponents."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from heedful.core import EVERYONE, Attention, AttentionConfig, attention_weights
from heedful.lab.drawn import Drawing, Number, curves
from heedful.lab.exhibit import NOTHING_SAID, Rows, Says, Shown, Width, beside, unsaid
from heedful.look.operations import counter

Layer = Callable[[Tensor], Tensor]
LENGTHS, WIDTHS, KERNELS = (256, 512, 1024), (16, 32, 64), (3, 5, 9)


def operations(run: Callable[[], object]) -> int:
    """The multiplications and additions of all matrix products and convolutions in a call."""
    with torch.no_grad(), counter() as counting:
        run()
    return counting.get_total_flops()


def exponent(sizes: Sequence[Number], counts: Sequence[Number]) -> float:
    """The slope of the counts over the sizes in a log-log plot, fitted by least squares."""
    return float(np.polyfit(np.log(sizes), np.log(counts), 1)[0])


def mixing(x: Tensor) -> Tensor:
    """Attention without its projections: scores, softmax, weighted sum."""
    heads = x[:, None]
    return attention_weights(heads, heads, mask=EVERYONE, scale=x.shape[-1] ** -0.5) @ heads


def recurrence(width: int) -> Layer:
    """A layer h_t = tanh(W h_{t-1} + x_t), with one step for each token."""
    cell = nn.Linear(width, width)

    def run(x: Tensor) -> Tensor:
        hidden, states = torch.zeros_like(x[:, 0]), []
        for token in x.unbind(1):
            hidden = torch.tanh(cell(hidden) + token)
            states.append(hidden)
        return torch.stack(states, dim=1)

    return run


def convolution(width: int, kernel: int) -> Layer:
    layer = nn.Conv1d(width, width, kernel, padding="same")
    return lambda x: layer(x.mT).mT


def counted(make: Callable[[int], Layer], n: int, d: int) -> int:
    layer, x = make(d), torch.randn(1, n, d)
    return operations(lambda: layer(x))


def exponents(make: Callable[[int], Layer]) -> list[float]:
    """The exponents of the cost in the number of tokens and in their width."""
    by_length = [counted(make, n, 32) for n in LENGTHS]
    by_width = [counted(make, 64, d) for d in WIDTHS]
    return [round(exponent(LENGTHS, by_length), 3), round(exponent(WIDTHS, by_width), 3)]


def path(make: Callable[[int], Layer], tokens: int = 24) -> int:
    """The number of layers that are stacked until a gradient passes from the last output to the first token, at most
    `tokens`. Attention and recurrence need one; the steps of a recurrence are those of its longest `chain`."""
    layers, x = 0, torch.randn(1, tokens, 4, requires_grad=True)
    out = x
    while layers < tokens:
        out = make(4)(out)
        layers += 1
        reached = torch.autograd.grad(out[0, -1].sum(), x, retain_graph=True)[0][0, 0]
        if reached.abs().sum() > 0:
            return layers
    return layers


def two_layers(says: Says, *, tokens: Rows = 24) -> Shown:
    """Attention and recurrence: the exponents of their cost, and the number of sequential steps."""
    attention, recurrent = exponents(lambda d: mixing), exponents(recurrence)
    computed = {
        "exponents of attention in L and d": attention,
        "exponents of recurrence in L and d": recurrent,
        "steps of attention": path(lambda d: mixing, tokens),
        f"steps of recurrence for {tokens} tokens": chain(recurrence(4), tokens),
    }
    return Shown(beside(says, computed), drawn())


def chain(layer: Layer, tokens: int) -> int:
    """The longest chain of dependent tanh operations in the graph of the last output."""
    last = layer(torch.randn(1, tokens, 4, requires_grad=True))[0, -1].sum()
    return longest_chain(last, lambda node: type(node).__name__ == "TanhBackward0")


def longest_chain(out: Tensor, counts: Callable[[object], bool] = lambda node: True) -> int:
    """The largest number of operations that `counts` on a chain of dependent operations behind a result."""
    longest: dict[object, int] = {}
    waiting = [(out.grad_fn, 0)]
    while waiting:
        node, before = waiting.pop()
        here = before + (node is not None and counts(node))
        if node is None or longest.get(node, -1) >= here:
            continue
        longest[node] = here
        waiting += [(below, here) for below, _ in node.next_functions]
    return max(longest.values())


def three_layers(says: Says, *, tokens: Rows = 24, kernel: Rows = 3) -> Shown:
    """Convolution, recurrence and attention: the costs in the table, and the path from the first token to the last."""
    lengths = exponents(lambda d: convolution(d, kernel))
    by_kernel = [counted(partial(convolution, kernel=k), 64, 32) for k in KERNELS]
    computed = {
        "exponents of attention in n and d": exponents(lambda d: mixing),
        "exponents of recurrence in n and d": exponents(recurrence),
        "exponents of convolution in k, n and d": [round(exponent(KERNELS, by_kernel), 3), *lengths],
        f"layers of convolution from first to last of {tokens}": path(lambda d: convolution(d, kernel), tokens),
        "steps of recurrence": chain(recurrence(4), tokens),
        "layers of attention": path(lambda d: mixing, tokens),
    }
    needed = -(-2 * (tokens - 1) // (kernel - 1))
    text = f"A stack of plain convolutions needs 2(n - 1)/(k - 1) layers, {needed} here; dilated ones about log_k n."
    return Shown(beside(says, computed), drawn(), text)


def drawn() -> Drawing:
    kinds: dict[str, Callable[[int], Layer]] = {
        "attention": lambda d: mixing,
        "recurrence": recurrence,
        "convolution, k = 3": lambda d: convolution(d, 3),
    }
    lines = {name: (LENGTHS, [counted(make, n, 64) for n in LENGTHS]) for name, make in kinds.items()}
    return curves(lines, x="tokens", y="operations", title="Width 64", logarithmic="xy")


def memory(says: Says, *, width: Width = 32) -> Shown:
    """The bytes of the attention weights, by the numbers of queries and keys."""

    def size(m: int, n: int) -> int:
        q, k = torch.randn(1, 1, m, width), torch.randn(1, 1, n, width)
        return attention_weights(q, k, mask=EVERYONE, scale=1.0).nbytes

    rows = [
        round(exponent(LENGTHS, [size(m, 64) for m in LENGTHS]), 3),
        round(exponent(LENGTHS, [size(64, n) for n in LENGTHS]), 3),
    ]
    lines = {"weights": (LENGTHS, [size(n, n) for n in LENGTHS]), "values": (LENGTHS, [4 * n * width for n in LENGTHS])}
    picture = curves(lines, x="tokens (m = n)", y="bytes", logarithmic="xy")
    own = says if "exponents in m and n" in says.values else NOTHING_SAID
    return Shown(beside(own, {"exponents in m and n": rows, "bytes for 1,000 by 1,000": size(1000, 1000)}), picture)


def worst_case(says: Says) -> Shown:
    """The exercise: the memory of attention with m queries and n keys of width d, and values of width l."""
    shown = memory(says)
    most = "O(mn) for the weights, and O(nd + nl + md + ml) for what goes in and comes out"
    return Shown([*shown.lines, *unsaid({"kept at once, at most": most})], shown.draw)


def values_and_weights(says: Says, *, width: Width = 32) -> Shown:
    """Which cost is linear in the number of tokens, and which is quadratic?"""
    torch.manual_seed(0)
    layer = Attention(width, AttentionConfig(n_heads=1))

    def cost(n: int) -> tuple[int, int]:
        x = torch.randn(1, n, width)
        q, k = layer.queries(x).query, layer.keys_values(x).key
        weights = operations(lambda: attention_weights(q, k, mask=EVERYONE, scale=1.0))
        return operations(lambda: layer.value(x)), weights

    values, weights = zip(*map(cost, LENGTHS), strict=True)

    def count(d: int) -> int:
        x = torch.randn(1, 1, 16, d)
        return attention_weights(x, x, mask=EVERYONE, scale=1.0).numel()

    computed = {
        "exponent of the values' cost in N": round(exponent(LENGTHS, values), 3),
        "exponent of the weights' cost in N": round(exponent(LENGTHS, weights), 3),
        "number of weights depends on D": count(8) != count(64),
    }
    lines = {"values": (LENGTHS, values), "weights": (LENGTHS, weights)}
    return Shown(beside(says, computed), curves(lines, x="N", y="operations", logarithmic="xy"))
