"""Gradient checkpointing: blocks keep only their input, and are computed again for their gradients (Chen et al. 2016,
"Training deep nets with sublinear memory cost"): less memory for more time. Gradients are the same to the last bit, as
dropout draws the same numbers again. The model does not change: names, weights and saved files stay as they are."""

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from heedful.core.block import Block
from heedful.core.dropout import drawn_again


def checkpoint_blocks(model: nn.Module) -> None:
    """Checkpoints each block, in place; without gradients, or with a cache, blocks work as before."""
    for module in model.modules():
        if isinstance(module, Block):
            module.forward = partial(_twice, module.forward)  # type: ignore[method-assign]


def _twice(forward: Callable[..., Any], x: torch.Tensor, context: Any, cache: Any = None) -> Any:
    if cache is not None or not torch.is_grad_enabled():
        return forward(x, context, cache)
    return checkpoint(forward, x, context, use_reentrant=False, context_fn=lambda: (nullcontext(), drawn_again()))
