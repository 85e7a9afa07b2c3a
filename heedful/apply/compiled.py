"""Blocks compiled by `torch.compile`. The model does not change: names, weights and saved files stay as they are."""

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
    """Compiles each block, in place. Blocks of the same shape share the compiled code, so many take as long as one.
    Raises InputError where this machine cannot compile.

    On a device with CUDA graphs, passes with gradients that have the sizes of the first one are captured once and then
    launched as a whole, which saves a small model most of its time. Not without `recorded`: the memory of the gradients
    is reused by the next pass, so that the gradients of several passes cannot be summed in it.
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
    """A compiled block's passes with gradients, launched as a whole if they have the sizes of the first one, as all
    have but the last of an epoch. A single compiled function for all sizes would end up with dynamic sizes, which
    cannot be captured."""

    def __init__(self, block: Block) -> None:
        self.whole, self.any = (torch.compile(block._call_impl, backend=backend) for backend in (recording, BACKEND))
        self.sizes: tuple[torch.Size, ...] = ()

    def __call__(
        self, x: Float[Tensor, "B T C"], context: Context, cache: BlockCache | None = None
    ) -> tuple[Float[Tensor, "B T C"], BlockCache | None]:
        if not torch.is_grad_enabled():
            return self.any(x, context, cache)
        memory = None if context.memory is None else context.memory.x
        sizes = (x.shape,) if memory is None else (x.shape, memory.shape)
        self.sizes = self.sizes or sizes
        return (self.whole if sizes == self.sizes else self.any)(x, context, cache)


def recording(graph: Any, inputs: Any) -> Any:
    """Inductor, as a backend that captures CUDA graphs."""
    from torch._inductor.compile_fx import compile_fx

    return compile_fx(graph, inputs, config_patches={"triton.cudagraphs": True})
