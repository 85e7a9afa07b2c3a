"""Blocks through `torch.compile`. A model knows nothing of it: names, weights and what is saved stay as they are."""

import torch
from torch import nn

from heedful.core.block import Block
from heedful.errors import InputError

BACKEND = "inductor"


def compile_blocks(model: nn.Module) -> None:
    """Compiles each block by itself, where it stands: blocks of the same shape share what is compiled, so that it takes
    as long for many as for one. Raises InputError where this machine cannot compile."""
    device = next(model.parameters()).device
    try:
        torch.compile(torch.neg, backend=BACKEND)(torch.ones(1, device=device))
    except Exception as error:  # whatever is missing: a compiler of C++, its headers, Triton
        why = " ".join(str(error).split("\n")[:2])
        what = f"torch.compile does not work here ({why})"
        raise InputError(what, fix="install a C++ compiler, or leave out train.compile") from error
    for module in model.modules():
        if isinstance(module, Block):
            module.compile(backend=BACKEND)
