"""One attention in numbers: the computation of one query in one head, step by step.

    with tapped(attention) as tap:
        model(source, target)
    walk(attention, tap, head=0, query=3)

T queries, S keys, H heads, D head width, E width of values, C model width.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import get_ident
from typing import Any, TypedDict

import torch
from torch import Tensor

from heedful.core.attention import KV, Attention, Queries, soft_capped
from heedful.core.mask import Mask
from heedful.errors import InputError
from heedful.run.task import Served
from heedful.tasks.load import row_of_model
from heedful.verbs.look import blind


class Walk(TypedDict):
    """`x` (C) is what the query is projected from, `q` (D) the query and `k` (S, D) the keys, both with positions, and
    `v` (S, E) the values. `products` (S) are those of q and k, `softcap` the bound of the scaled products, `bias` (S)
    that of positions or pairs, `allowed` (S) the mask, and `scores` (S) the result (None: not allowed). `weights` (S)
    are their softmax, `found` (E) the weighted sum of the values, `share` (C) this head's part of the output, and `out`
    (C) the output of all heads with its bias. `difference`: between the model's weights and those computed again in
    float64 from q, k, bias and mask."""

    x: list[float]
    q: list[float]
    k: list[list[float]]
    v: list[list[float]]
    products: list[float]
    scale: float
    softcap: float | None
    bias: list[float] | None
    allowed: list[bool]
    scores: list[float | None]
    weights: list[float]
    found: list[float]
    gate: list[float] | None
    share: list[float]
    out: list[float]
    difference: float
    heads: int


@dataclass
class Tap:
    """The last call of an attention: its input, the input of its heads, and its output."""

    x: Tensor | None = None
    heads: tuple[Tensor, KV, Mask, Tensor | None] | None = None
    gate: Tensor | None = None
    out: Tensor | None = None


@contextmanager
def tapped(attention: Attention) -> Iterator[Tap]:
    """Records this thread's last call inside a `with` block; the results do not change."""
    tap, thread = Tap(), get_ident()

    def keep_heads(module: object, arguments: tuple[Any, ...], output: Tensor) -> None:
        if get_ident() == thread:
            tap.heads = (arguments[0], arguments[1], arguments[2], arguments[3])

    def keep_out(module: object, arguments: tuple[Any, ...], output: Tensor) -> None:
        if get_ident() == thread:
            queries: Queries = arguments[0]
            tap.x, tap.gate, tap.out = queries.x, queries.gate, output.detach()

    handles = [
        attention.heads.register_forward_hook(keep_heads),
        attention.register_forward_hook(keep_out),
    ]
    try:
        yield tap
    finally:
        for handle in handles:
            handle.remove()


@torch.no_grad()
def walk(attention: Attention, tap: Tap, *, head: int, query: int) -> Walk:
    """The numbers of one head and query, for the first text of a batch; `query` may count from the end. Raises
    InputError where they do not exist, and where the attention was not called."""
    if tap.heads is None or tap.x is None or tap.out is None:
        raise InputError("this attention was not called", fix="choose a layer that reads this text")
    q, kv, mask, bias = tap.heads
    if mask.indices is not None:
        what = "its keys are compressed: each stands for several tokens"
        raise InputError(what, fix="choose a layer without compressed keys")
    H, T, S = q.shape[1], q.shape[2], kv.key.shape[2]
    if not 0 <= head < H:
        raise InputError(f"{H} heads, no head {head}", fix="they are counted from 0")
    if not -T <= query < T:
        raise InputError(f"{T} queries, no query {query}", fix="they are counted from 0")
    query %= T
    group = head // (H // kv.key.shape[1])  # query heads may share keys
    asked, keys, values = q[:1, head, query], kv.key[0, group], kv.value[0, group]
    dense = mask.dense(T, S, q.device)
    allowed = torch.ones(S, dtype=torch.bool)
    if dense is not None:
        allowed = dense[0, head if dense.shape[1] > 1 else 0, query if dense.shape[2] > 1 else 0].cpu()
    added = None if bias is None else bias[0, head if bias.shape[1] > 1 else 0, query].double().cpu()
    scale, cap = attention.heads.scale, attention.heads.softcap
    weights = attention.heads.weights(q, kv, mask, bias, heads=[head], queries=[query])[0, 0, 0].cpu()
    products = (keys.double() @ asked[0].double()).cpu()
    scores = products * scale if cap is None else soft_capped(products * scale, cap)
    scores = scores if added is None else scores + added
    masked = scores.masked_fill(~allowed, -torch.inf)
    exact = masked.softmax(-1) if bool(allowed.any()) else torch.zeros(S, dtype=torch.float64)
    found = weights.to(values.device) @ values
    gate = None
    if tap.gate is not None:
        gate = tap.gate[0, query].unflatten(-1, (H, -1))[head]
    E = values.shape[-1]
    alone = torch.zeros(H * E, device=values.device, dtype=values.dtype)
    alone[head * E : (head + 1) * E] = found if gate is None else found * gate
    share = attention.out(alone[None])[0] - attention.out(torch.zeros_like(alone)[None])[0]
    return Walk(
        x=_listed(tap.x[0, query]),
        q=_listed(asked[0]),
        k=keys.float().tolist(),
        v=values.float().tolist(),
        products=_listed(products),
        scale=float(scale),
        softcap=cap,
        bias=None if added is None else _listed(added),
        allowed=[bool(each) for each in allowed],
        scores=[float(score) if ok else None for score, ok in zip(scores, allowed, strict=True)],
        weights=_listed(weights),
        found=_listed(found),
        gate=None if gate is None else _listed(gate),
        share=_listed(share),
        out=_listed(tap.out[0, query]),
        difference=float((exact - weights.double()).abs().max()),
        heads=H,
    )


def walk_through(served: Served, given: str, options: object, *, layer: str, head: int, query: int) -> dict[str, Any]:
    """The numbers of one head and query of a layer, named as by `verbs.look.weights_of`, with the tokens of its queries
    and keys. Raises InputError for a layer that is no `Attention`."""
    row = row_of_model(served)
    if row.inside.attention is None:
        raise blind(row, "task.json")
    every = served.model.named_modules()
    found = [own for name, own in every if name == layer or name.endswith(f".{layer}")]
    if len(found) != 1 or not isinstance(found[0], Attention):
        layers = ", ".join(name for name, own in served.model.named_modules() if isinstance(own, Attention)) or "none"
        raise InputError(f"{layer!r} is no attention of queries, keys and values", fix=f"this model's are: {layers}")
    attention = found[0]
    with tapped(attention) as tap:
        named = row.inside.attention()(served, given, options)
    labels = next((own.labels for name, own in named.items() if name == layer), {})
    queries, keys = [*labels.get("query", ())], [*labels.get("key", ())]
    if queries and not 0 <= query < len(queries):
        raise InputError(f"{len(queries)} queries, no query {query}", fix="they are counted from 0")
    made = walk(attention, tap, head=head, query=query - len(queries) if queries else query)
    return {"layer": layer, "head": head, "query": query, "queries": queries, "keys": keys, **made}


def _listed(values: Tensor) -> list[float]:
    return [float(value) for value in values.double().cpu()]
