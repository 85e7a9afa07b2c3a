"""Counts the operations of code while it runs."""

from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count


def counter() -> FlopCounterMode:
    """Counts the multiplications and additions of all matrix products and convolutions inside a `with` block, including
    those in the fused attention kernel on a CPU, which torch's own counter does not know."""
    fused = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    return FlopCounterMode(display=False, custom_mapping={fused: _attention})


def _attention(query: torch.Size, key: torch.Size, value: torch.Size, *others: Any, **more: Any) -> int:
    return int(sdpa_flop_count(query, key, value))
