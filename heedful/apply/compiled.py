"""Blocks through `torch.compile`. A model knows nothing of it: names, weights and what is saved stay as they are."""

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from heedful.core.block import Block
from heedful.core.kernels import records_launches
from heedful.errors import InputError

Backend = str | Callable[..., Any]
BACKEND: Backend = "inductor"


def compile_blocks(model: nn.Module, *, recorded: bool = True) -> None:
    """Compiles each block by itself, where it stands: blocks of the same shape share what is compiled, so that it takes
    as long for many as for one. Raises InputError where this machine cannot compile.

    Where a device can record what it is told to launch (CUDA graphs), passes with gradients are recorded once and then
    launched whole, which spares a small model most of its time. Without `recorded` they are not: the memory of their
    gradients is that of the next pass too, so that the gradients of several passes cannot be added up in it.
    """
    device = next(model.parameters()).device
    try:
        torch.compile(torch.neg, backend=BACKEND)(torch.ones(1, device=device))
    except Exception as error:  # whatever is missing: a compiler of C++, its headers, Triton
        why = " ".join(str(error).split("\n")[:2])
        what = f"torch.compile does not work here ({why})"
        raise InputError(what, fix="install a C++ compiler, or leave out train.compile") from error
    backend = BACKEND
    if recorded and records_launches(device):
        backend = recording
        # It is said of all that is called several times before its backward passes, as what blocks share is.
        warnings.filterwarnings("ignore", message="Unable to hit fast path of CUDAGraphs")
    for module in model.modules():
        if isinstance(module, Block):
            module.compile(backend=backend)


def recording(graph: Any, inputs: Any) -> Any:
    """Inductor, as a backend that records passes with gradients whose shapes stay the same."""
    from torch._inductor.compile_fx import compile_fx

    learns = torch.is_grad_enabled()  # a growing text's passes would each be recorded for one use
    return compile_fx(
        graph,
        inputs,
        config_patches={"triton.cudagraphs": learns, "triton.cudagraph_skip_dynamic_graphs": True},
    )
