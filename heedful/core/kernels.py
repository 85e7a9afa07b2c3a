"""Where kinds of processor want another way to the same numbers: the core asks here, and knows no device."""

import torch
from torch import Tensor

# Float32 is float32 on every device: by itself torch lets cuDNN round what convolutions and recurrent layers multiply
# to ten bits (TF32), which it does not do to products of matrices.
torch.backends.cudnn.allow_tf32 = False


def explicit_attention(q: Tensor, *, plain: bool) -> bool:
    """Whether weights are better made one by one than by torch's fused kernel: on a CPU, where gradients are wanted, as
    the fused kernel's backward pass takes up to three times as long there. But in float32 it takes four fifths of the
    time, where it is `plain`: without bias and dropout, and values as wide as keys, which is all that it knows."""
    return q.device.type == "cpu" and torch.is_grad_enabled() and not (plain and q.dtype == torch.float32)


def adds_masks(device: torch.device) -> bool:
    """Whether a mask is better added to scores than filled in. It spares passes over all weights; but away from a CPU,
    looking whether each query has a visible key makes the host wait."""
    return device.type == "cpu"


def knows_blind_queries(device: torch.device) -> bool:
    """Whether torch's fused kernel may be given a query that sees no key: it finds zeros, and gives no gradient. That
    of cuDNN, which torch takes for bf16 on recent graphics processors, finds something, and has NaN as its gradient."""
    return device.type == "cpu"


def runs_ahead(device: torch.device) -> bool:
    """Whether the host continues while the device computes, so that waiting takes longer than the arithmetic."""
    return device.type != "cpu"


def shares_products(device: torch.device) -> bool:
    """Whether threads of this process share each product of matrices, and wait for each other at its end."""
    return device.type == "cpu"


def records_launches(device: torch.device) -> bool:
    """Whether what the host tells the device to do can be recorded, and then launched whole."""
    return device.type == "cuda"


def batch_scale(device: torch.device) -> int:
    """How many times as much as on a CPU is read or searched for at once: a card waits for the host where it has
    little to do. Once for each 8 GiB of its memory."""
    return max(1, torch.cuda.get_device_properties(device).total_memory >> 33) if device.type == "cuda" else 1


def slow_random_numbers(x: Tensor) -> bool:
    """Whether random numbers are drawn one after another, so that it pays to use all bits of each."""
    return x.device.type == "cpu"


def seed_numbers(seed: int, device: torch.device) -> None:
    """Seeds what torch draws from on this device and on the CPU. For a CPU not by `torch.manual_seed`, which needs a
    third of a millisecond for devices that are not there."""
    if device.type == "cpu":
        torch.default_generator.manual_seed(seed)
    else:
        torch.manual_seed(seed)


def sums_in_own_dtype(table: Tensor) -> bool:
    """Whether the gradient of an embedding is summed up in the table's own dtype, which is then too coarse for it."""
    return table.device.type == "cpu" and table.dtype in (torch.bfloat16, torch.float16)


def onednn_knows(dtype: torch.dtype) -> bool:
    """Whether oneDNN, by which torch multiplies matrices where MKL is not the faster one, is there and knows such
    numbers on this CPU."""
    if not torch.backends.mkldnn.is_available():
        return False
    return dtype == torch.float32 or (dtype == torch.bfloat16 and torch.ops.mkldnn._is_mkldnn_bf16_supported())
