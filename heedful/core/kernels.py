"""Which way to the same numbers suits a device. Only this module looks at the device."""

import torch
from torch import Tensor

# Float32 is float32 on every device: by default torch lets cuDNN round the factors of convolutions and recurrent layers
# to ten bits (TF32), but not those of matrix products.
torch.backends.cudnn.allow_tf32 = False


def explicit_attention(q: Tensor, *, plain: bool) -> bool:
    """Whether explicit attention is faster than torch's fused kernel: on a CPU with gradients, where the fused kernel's
    backward pass takes up to three times as long. But in float32 the fused kernel takes four fifths of the time if the
    attention is `plain`: without bias and dropout, and with values as wide as keys."""
    return q.device.type == "cpu" and torch.is_grad_enabled() and not (plain and q.dtype == torch.float32)


# The share of all pairs of queries and keys up to which tiles that hold the visible ones are faster than a whole mask.
WORTH_TILING = 0.6


def least_tiled(device: torch.device) -> int:
    """From how many pairs of queries and keys on tiles may be faster: an accelerator waits for the host, which launches
    each of them."""
    return 1 << 12 if device.type == "cpu" else 1 << 26


def adds_masks(device: torch.device) -> bool:
    """Whether adding a mask to the scores is faster than filling it in. It saves passes over all weights; but on an
    accelerator, checking whether each query has a visible key makes the host wait."""
    return device.type == "cpu"


def knows_blind_queries(device: torch.device) -> bool:
    """Whether torch's fused kernel may get a query without a visible key: it should return zeros, and no gradient.
    cuDNN's kernel, which torch uses for bf16 on recent GPUs, returns other numbers, and NaN as the gradient."""
    return device.type == "cpu"


def runs_ahead(device: torch.device) -> bool:
    """Whether the host continues while the device computes, so that every wait costs time."""
    return device.type != "cpu"


def shares_products(device: torch.device) -> bool:
    """Whether the threads of this process share each matrix product, and wait for each other at its end."""
    return device.type == "cpu"


def keeps_numbers(device: torch.device) -> bool:
    """Whether what all blocks of a pass ask for is worth keeping between them. A graph that is compiled, or captured on
    an accelerator, must have its own."""
    return device.type == "cpu" and not torch.compiler.is_compiling()


def records_launches(device: torch.device) -> bool:
    """Whether kernel launches can be captured in a graph, and replayed as one."""
    return device.type == "cuda"


def batch_scale(device: torch.device) -> int:
    """The factor for batch sizes, compared with a CPU: small batches leave a GPU waiting for the host. One for each 8
    GiB of its memory."""
    return max(1, torch.cuda.get_device_properties(device).total_memory >> 33) if device.type == "cuda" else 1


def slow_random_numbers(x: Tensor) -> bool:
    """Whether random numbers are drawn one by one, so that using all bits of each pays."""
    return x.device.type == "cpu"


def seed_numbers(seed: int, device: torch.device) -> None:
    """Seeds torch's generators of this device and of the CPU. On a CPU it avoids `torch.manual_seed`, which spends a
    third of a millisecond on absent devices."""
    if device.type == "cpu":
        torch.default_generator.manual_seed(seed)
    else:
        torch.manual_seed(seed)


def sums_in_own_dtype(table: Tensor) -> bool:
    """Whether torch sums the gradient of an embedding in the table's own dtype, and this is too coarse."""
    return table.device.type == "cpu" and table.dtype in (torch.bfloat16, torch.float16)


def onednn_knows(dtype: torch.dtype) -> bool:
    """Whether oneDNN, torch's alternative to MKL for matrix products, is available and supports this dtype on this
    CPU."""
    if not torch.backends.mkldnn.is_available():
        return False
    return dtype == torch.float32 or (dtype == torch.bfloat16 and torch.ops.mkldnn._is_mkldnn_bf16_supported())
