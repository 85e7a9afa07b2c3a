"""Blocks that are computed a second time for their gradients, and keep nothing but what came in (Chen et al. 2016,
"Training deep nets with sublinear memory cost"): less memory for more time. Gradients are the same to the last bit, as
dropout draws the same again. A model knows nothing of it: names, weights and what is saved stay as they are."""

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
    """Each block by itself, where it stands; used without gradients, or with a cache, it is as before."""
    for module in model.modules():
        if isinstance(module, Block):
            module.forward = partial(_twice, module.forward)  # type: ignore[method-assign]


def _twice(forward: Callable[..., Any], x: torch.Tensor, context: Any, cache: Any = None) -> Any:
    if cache is not None or not torch.is_grad_enabled():
        return forward(x, context, cache)
    return checkpoint(forward, x, context, use_reentrant=False, context_fn=lambda: (nullcontext(), drawn_again()))
