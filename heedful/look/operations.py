"""How many operations something takes, counted as it runs."""

import torch
from torch.utils.flop_counter import FlopCounterMode, sdpa_flop


def counter() -> FlopCounterMode:
    """Counts, within a `with` block, the multiplications and additions of all products of matrices and convolutions:
    those inside of the kernel that fuses attention on a CPU too, which torch's own counter does not know."""
    return FlopCounterMode(
        display=False, custom_mapping={torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: sdpa_flop}
    )
