"""Which number format to train in, told from a short measurement and never guessed."""

import statistics
import time
from typing import Literal, NamedTuple

import torch

Precision = Literal["fp32", "bf16"]
DTYPES: dict[str, torch.dtype] = {"fp32": torch.float32, "bf16": torch.bfloat16}


class Choice(NamedTuple):
    precision: Precision
    why: str


def choose_precision(device: torch.device) -> Choice:
    """bf16 where this machine multiplies matrices at least 1.4 times as fast in it as in fp32, else fp32."""
    speed = {name: _gigaflops(dtype, device) for name, dtype in DTYPES.items()}
    ratio = speed["bf16"] / speed["fp32"]
    precision: Precision = "bf16" if ratio >= 1.4 else "fp32"
    return Choice(precision, f"bf16 multiplies {ratio:.1f}x as fast as fp32 here ({speed['bf16']:.0f} GFLOP/s)")


def _gigaflops(dtype: torch.dtype, device: torch.device) -> float:
    """The median of a few products (2048 x 512) @ (512 x 1024), the size of a small model's MLP."""
    a, b = torch.ones(2048, 512, dtype=dtype, device=device), torch.ones(512, 1024, dtype=dtype, device=device)
    seconds = []
    for _ in range(8):
        begin = time.perf_counter()
        product = a @ b
        product[0, 0].item()  # waits for an accelerator
        seconds.append(time.perf_counter() - begin)
    return 2 * 2048 * 512 * 1024 / statistics.median(seconds[3:]) / 1e9
