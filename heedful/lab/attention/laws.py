"""Laws of attention, tested on the project's layers: projections, sums, permutations, softness, cues, leaks."""

import math

import torch
from torch import Tensor

from heedful.core import EVERYONE, Attention, AttentionConfig, Mask, attention_weights
from heedful.lab.decoding.student import STEPS, STUDENT, learnt
from heedful.lab.drawn import curves, weights_of
from heedful.lab.exhibit import Few, Rows, Says, Shown, Steps, Width, beside, holds, unsaid
from heedful.lab.sizes.rows import transformer

EQUIVARIANT, INVARIANT = "outputs are permuted as inputs are", "an output stays as keys and values are permuted"


def attending(d_model: int, n_heads: int, seed: int = 0) -> Attention:
    torch.manual_seed(seed)
    return Attention(d_model, AttentionConfig(n_heads=n_heads)).double().eval()


def self_attention(says: Says, *, tokens: Rows = 5, width: Width = 8) -> Shown:
    """Self-attention is the same call with one sequence twice. The deck's matrices are d x x; here x = x' = v."""
    layer = attending(width, 1)
    x = torch.randn(1, tokens, width, dtype=torch.float64)
    own = layer(layer.queries(x), layer.keys_values(x), mask=EVERYONE)
    cross = layer(layer.queries(x), layer.keys_values(x.clone()), mask=EVERYONE)
    shapes = [tuple(each.weight.shape) for each in (layer.query, layer.key, layer.value)]
    told = ", ".join(f"{out} x {given}" for out, given in shapes)
    lines = [holds(says, "shapes of W_q, W_k, W_v", told, right=shapes == [(width, width)] * 3)]
    return Shown(lines + unsaid({"equal to attention to a copy of itself": bool(torch.equal(own, cross))}))


def cross_attention(says: Says, *, sentence: str = STUDENT[0], blocks: Few = 2, steps: Steps = STEPS) -> Shown:
    """All blocks of a decoder attend to one memory: the tokens of which side are the rows of the weights, of which the
    columns? The translator learnt some French, and the picture is of its last block."""
    found = learnt(steps, blocks)
    (said,) = found.translate([sentence])
    memories: list[Tensor] = []
    handles = [
        layer.register_forward_pre_hook(lambda _, given: memories.append(given[0]))
        for name, layer in found.model.named_modules()
        if name.endswith("cross_attention.key")
    ]
    maps = found.cross_attention(sentence, said)
    for handle in handles:
        handle.remove()
    rows, columns = [*said.split(), "<end>"], [*sentence.split(), "<end>"]
    queries = all(weights.shape[1] == len(rows) for weights in maps)
    keys = all(weights.shape[2] == len(columns) for weights in maps)
    same = len(memories) == blocks and all(torch.equal(memory, memories[0]) for memory in memories)
    lines = [
        holds(says, "queries come from", "decoder" if queries else "encoder", right=queries),
        holds(says, "keys and values come from", "encoder" if keys else "decoder", right=keys),
        holds(says, "every decoder block is given the same encoder output", same),
    ]
    return Shown(lines, weights_of(maps[-1].mean(0), rows, columns, "Cross-attention, mean of the last block's heads"))


def heads(says: Says, *, preset: str = "transformer-base") -> Shown:
    """Multi-head attention of the paper's size: the number of output matrices, and the input of the values."""
    row = transformer(preset)
    layer = attending(row.d_model, row.n_heads)
    x, memory = torch.randn(2, 1, 3, row.d_model, dtype=torch.float64)
    values = layer.keys_values(memory).value
    from_values = torch.allclose(values.transpose(1, 2).flatten(2), layer.value(memory))
    lines = beside(
        says.but("values of head i", "output matrices"),
        {"heads": row.n_heads, "d_k": layer.head_dim, "d_model": row.d_model},
    )
    matrices = sum(name == "out.weight" for name, _ in layer.named_parameters())
    lines.append(holds(says, "values of head i", "W_v V" if from_values else "W_v Q", right=not from_values))
    lines.append(holds(says, "output matrices", matrices, right=matrices == row.n_heads))
    out = layer(layer.queries(x), layer.keys_values(memory), mask=EVERYONE)
    return Shown(lines + unsaid({"shape of the output": list(out.shape)}))


def sums(says: Says, *, tokens: Rows = 6, width: Width = 4) -> Shown:
    """With tokens as columns, the weights of each query sum to one over the keys: each column is a softmax."""
    torch.manual_seed(0)
    q, k = torch.randn(2, 1, 1, tokens, width, dtype=torch.float64)
    weights = attention_weights(q, k, mask=EVERYONE, scale=width**-0.5)[0, 0].T  # a[x_m, x_n]: key m, query n
    columns = torch.allclose(weights, (k[0, 0] @ q[0, 0].T / width**0.5).softmax(0))
    computed = {
        "sum of a[x_m, x_n] over n and m": round(float(weights.sum()), 9),
        "sum of a[x_m, x_n] over m, for each n": weights.sum(0).round(decimals=9),
        "the softmax of K'Q is taken over each": "column" if columns else "row",
    }
    names = [f"x{i + 1}" for i in range(tokens)]
    return Shown(beside(says, computed), weights_of(weights, names, names, "Keys down, queries across"))


def permutations(says: Says, *, tokens: Rows = 6, width: Width = 8, seed: int = 0) -> Shown:
    """What happens to the outputs of self-attention when the tokens are reordered?"""
    layer = attending(width, 2, seed)
    x, order = torch.randn(1, tokens, width, dtype=torch.float64), torch.randperm(tokens)

    def out(queries: Tensor, memory: Tensor) -> Tensor:
        return layer(layer.queries(queries), layer.keys_values(memory), mask=EVERYONE)

    plain, permuted = out(x, x), out(x[:, order], x[:, order])
    claim = "self-attention is permutation-invariant"
    same = torch.allclose(plain, permuted)
    laws = {
        EQUIVARIANT: torch.allclose(plain[:, order], permuted),
        INVARIANT: torch.allclose(plain, out(x, x[:, order])),
    }
    return Shown([holds(says, claim, same), *unsaid(laws)])


def saturation(says: Says, *, keys: Rows = 64, draws: Rows = 200, largest: Width = 1024) -> Shown:
    """For queries and keys of unit variance: the variance of their product and the entropy of the softmax, by width."""
    torch.manual_seed(0)
    widths = [2**power for power in range(1, int(math.log2(largest)) + 1)]
    variance: list[float] = []
    entropy: dict[str, list[float]] = {"q.k": [], "q.k / root d_k": []}
    for width in widths:
        q, k = torch.randn(draws, 1, 1, width), torch.randn(draws, 1, keys, width)
        variance.append(float((q @ k.mT).var()))
        for name, scale in (("q.k", 1.0), ("q.k / root d_k", width**-0.5)):
            weights = attention_weights(q, k, mask=EVERYONE, scale=scale)
            entropy[name].append(float(torch.special.entr(weights).sum(-1).mean()))
    close = all(abs(found / width - 1) < 0.1 for found, width in zip(variance, widths, strict=True))
    plain, scaled = entropy.values()
    soft = max(scaled) - min(scaled) < 0.15 * math.log(keys) and plain[-1] < 0.1 * math.log(keys)
    lines = [
        holds(says, "variance of q.k for unit variance", f"{variance[-1]:.0f} at d_k = {widths[-1]}", right=close),
        holds(says, "scaling keeps the softmax as soft at every width", soft),
        *unsaid(
            {f"entropy of {name} at widths {widths[0]} and {widths[-1]}": [e[0], e[-1]] for name, e in entropy.items()},
        ),
    ]
    drawn = {name: (widths, found) for name, found in entropy.items()}
    title = f"Softness of a softmax over {keys} keys (nats; even: {math.log(keys):.2f})"
    return Shown(lines, curves(drawn, x="d_k", y="entropy", title=title, logarithmic="x"))


def cues(says: Says, *, sharp: float = 4.0) -> Shown:
    """A red cup among papers: without a query, attention goes to what stands out; with one, to what it asks for."""
    things = ["cup", "paper", "book"]
    salience, wanted = torch.tensor([3.0, 1.0, 1.0]), torch.eye(3)[2]
    keys = torch.eye(3, dtype=torch.float64)
    non_volitional = salience.softmax(-1)
    weights = attention_weights(wanted.double()[None, None, None], keys[None, None], mask=EVERYONE, scale=sharp)[
        0, 0, 0
    ]
    found = {
        "without a query": things[int(non_volitional.argmax())],
        "with one for a book": things[int(weights.argmax())],
    }
    changed = found["without a query"] != found["with one for a book"]
    lines = [
        holds(says, "volitional cues are", "queries", right=changed),
        holds(says, "non-volitional cues are", "keys", right=changed),
        *unsaid({f"looked at {name}": thing for name, thing in found.items()}),
    ]
    both = torch.stack([non_volitional.double(), weights])
    return Shown(lines, weights_of(both, [*found], things, "A red cup among papers, and a book"))


def leaks(says: Says, *, tokens: Rows = 6) -> Shown:
    """The gradient of output i by input j, for all i and j: without a mask, outputs depend on later words."""
    layer = attending(8, 2)

    def reached(mask: Mask) -> Tensor:
        x = torch.randn(1, tokens, 8, dtype=torch.float64, requires_grad=True)
        out = layer(layer.queries(x), layer.keys_values(x), mask=mask)
        return torch.stack([torch.autograd.grad(row.sum(), x, retain_graph=True)[0][0].abs().sum(-1) for row in out[0]])

    free, masked = reached(EVERYONE), reached(Mask(causal=True))
    ahead = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
    sees, hidden = bool((free[ahead] > 0).all()), bool((masked[ahead] == 0).all())
    lines = [
        holds(says, "without a mask the next word is seen", sees),
        holds(says, "with a mask it is seen", not hidden, right=hidden),
    ]
    names = [str(i + 1) for i in range(tokens)]
    reach = (masked > 0).double()
    return Shown(lines, weights_of(reach, names, names, "Inputs that reach an output", ~ahead, value="reaches"))
