"""Blocks through `torch.compile`. A model knows nothing of it: names, weights and what is saved stay as they are."""

import warnings
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.core.block import Block, Context
from heedful.core.cache import BlockCache
from heedful.core.kernels import records_launches
from heedful.errors import InputError

Backend = str | Callable[..., Any]
BACKEND: Backend = "inductor"
VARIANTS = 64  # of what is compiled: by kinds of block, sizes, and with gradients or not. More of them are not compiled


def compile_blocks(model: nn.Module, *, recorded: bool = True) -> None:
    """Compiles each block by itself, where it stands: blocks of the same shape share what is compiled, so that it takes
    as long for many as for one. Raises InputError where this machine cannot compile.

    Where a device can record what it is told to launch (CUDA graphs), passes with gradients that have the sizes of the
    first one are recorded once and then launched whole, which spares a small model most of its time. Without `recorded`
    they are not: the memory of their gradients is that of the next pass too, so that the gradients of several passes
    cannot be added up in it.
    """
    device = next(model.parameters()).device
    try:
        torch.compile(torch.neg, backend=BACKEND)(torch.ones(1, device=device))
    except Exception as error:  # whatever is missing: a compiler of C++, its headers, Triton
        why = " ".join(str(error).split("\n")[:2])
        what = f"torch.compile does not work here ({why})"
        raise InputError(what, fix="install a C++ compiler, or leave out train.compile") from error
    config = torch._dynamo.config
    config.recompile_limit = max(config.recompile_limit, VARIANTS)
    records = recorded and records_launches(device)
    if records:
        # It is said of all that is called several times before its backward passes, as what blocks share is.
        warnings.filterwarnings("ignore", message="Unable to hit fast path of CUDAGraphs")
    for module in model.modules():
        if isinstance(module, Block):
            if records:
                module._compiled_call_impl = Recorded(module)
            else:
                module.compile(backend=BACKEND)


class Recorded:
    """A compiled block's passes with gradients, launched whole where they have the sizes of its first one, as all have
    but the last of an epoch. One compiled function for all sizes would stay with what it compiled last, which takes any
    size and cannot be recorded."""

    def __init__(self, block: Block) -> None:
        self.whole, self.any = (torch.compile(block._call_impl, backend=backend) for backend in (recording, BACKEND))
        self.sizes: tuple[torch.Size, ...] = ()

    def __call__(
        self, x: Float[Tensor, "B T C"], context: Context, cache: BlockCache | None = None
    ) -> tuple[Float[Tensor, "B T C"], BlockCache | None]:
        if not torch.is_grad_enabled():
            return self.any(x, context, cache)
        sizes = (x.shape,) if context.memory is None else (x.shape, context.memory.shape)
        self.sizes = self.sizes or sizes
        return (self.whole if sizes == self.sizes else self.any)(x, context, cache)


def recording(graph: Any, inputs: Any) -> Any:
    """Inductor, as a backend that records."""
    from torch._inductor.compile_fx import compile_fx

    return compile_fx(graph, inputs, config_patches={"triton.cudagraphs": True})
