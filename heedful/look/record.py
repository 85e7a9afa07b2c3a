"""Records attention weights on demand: recomputes them beside the fused kernel, from the same arguments.

    with record(model, "decoder.*.cross_attention") as recording:
        model(source, target)
    recording.weights("decoder.blocks.0.cross_attention")  # (B, H, T, S)

The model needs no flag for it, and its output stays the same to the last bit. Only the calls of the thread that records
are recorded. Hooks do not run inside compiled graphs: pass the eager model.

B batch, T queries, S keys, H heads.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from threading import get_ident
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import pad

from heedful.errors import InputError


@runtime_checkable
class Watched(Protocol):
    """A layer that can recompute its attention weights from the arguments of its `forward`."""

    def asks(self, *arguments: Any) -> tuple[int, int]:
        """The numbers of heads and of queries of a call with these arguments."""

    def weights(
        self, *arguments: Any, heads: Sequence[int] | None, queries: Sequence[int] | None
    ) -> Float[Tensor, "B H T S"]:
        """The attention weights, only of the given heads and queries (None: all)."""


class Recording:
    """The attention weights of the watched layers, in the order of the calls."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = list(names)
        self._parts: dict[str, list[Tensor]] = {name: [] for name in names}

    def add(self, name: str, weights: Float[Tensor, "B H T S"]) -> None:
        self._parts[name].append(weights.detach().float().cpu())

    @property
    def called(self) -> list[str]:
        """Those of the names whose layers were called: a model may hold maps that a text does not need."""
        return [name for name in self.names if self._parts[name]]

    def weights(self, name: str) -> Float[Tensor, "B H T S"]:
        """The weights of one layer, in float32 on the CPU, before dropout.

        The queries of successive calls are concatenated along T, so that decoding step by step looks like one
        pass; keys that did not exist yet at a step have zeros. A row of a beam search holds whichever hypothesis was
        in it at that step. Raises InputError for a layer that was not watched or not called, and when the batch
        changed.
        """
        if name not in self._parts:
            raise InputError(f"layer {name!r} was not recorded", fix=f"choose one of: {', '.join(self.names)}")
        parts = self._parts[name]
        if not parts:
            raise InputError(f"layer {name!r} recorded nothing", fix="call the model inside the with block")
        sizes = sorted({len(part) for part in parts})
        if len(sizes) > 1:
            raise InputError(
                f"the batch of layer {name!r} changed between calls: {sizes} rows",
                fix="record one batch at a time, decoded greedily or given its target",
            )
        S = max(part.shape[-1] for part in parts)
        return torch.cat([pad(part, (0, S - part.shape[-1])) for part in parts], dim=2)


@contextmanager
def record(
    model: nn.Module,
    pattern: str | Sequence[str] = "*",
    *,
    heads: Sequence[int] | None = None,
    queries: Sequence[int] | None = None,
) -> Iterator[Recording]:
    """Records the layers whose names match `pattern` (a pattern as for file names, or several) inside the `with`
    block.

    `heads` and `queries` are selected before anything is computed, so a large map never exists as a whole. Queries
    are counted over all calls: in decoding step by step, query 3 is the fourth step. Raises InputError for a
    pattern that no layer matches and for a head that a layer does not have.
    """
    layers = {
        name.removesuffix(".heads"): module for name, module in model.named_modules() if isinstance(module, Watched)
    }
    chosen: dict[str, nn.Module] = {}
    for one in [pattern] if isinstance(pattern, str) else pattern:
        found = {name: module for name, module in layers.items() if fnmatchcase(name, one)}
        if not found:
            known = ", ".join(layers) or "none"
            raise InputError(f"no attention layer matches {one!r}", fix=f"the model's attention layers are: {known}")
        chosen |= found

    recording = Recording([name for name in layers if name in chosen])
    handles = [module.register_forward_hook(_watch(recording, name, heads, queries)) for name, module in chosen.items()]
    try:
        yield recording
    finally:
        for handle in handles:
            handle.remove()


def _watch(
    recording: Recording, name: str, heads: Sequence[int] | None, queries: Sequence[int] | None
) -> Callable[[nn.Module, tuple[Any, ...], Any], None]:
    seen, thread = 0, get_ident()  # queries of earlier calls; other threads may use the model meanwhile

    @torch.no_grad()
    def hook(module: Any, arguments: tuple[Any, ...], output: Any) -> None:
        nonlocal seen
        if get_ident() != thread:
            return
        n_heads, T = module.asks(*arguments)
        if heads is not None and not all(0 <= head < n_heads for head in heads):
            raise InputError(f"layer {name!r} has heads 0 to {n_heads - 1}, not {list(heads)}", fix="choose among them")
        rows = None if queries is None else [query - seen for query in queries if 0 <= query - seen < T]
        seen += T
        if rows != []:
            recording.add(name, module.weights(*arguments, heads=heads, queries=rows))

    return hook
