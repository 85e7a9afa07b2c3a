"""Which number format to train in, by a short measurement."""

import functools
import statistics
import time
from typing import Literal, NamedTuple

import torch

from heedful.core import kernels

Precision = Literal["fp32", "bf16"]
FASTER = 1.4  # the speedup from which bf16 is worth its rounding
WARM = 3  # products before those that are timed
IN_A_ROW = 200  # products that an accelerator computes before it is waited for
DTYPES: dict[str, torch.dtype] = {"fp32": torch.float32, "bf16": torch.bfloat16}


class PrecisionChoice(NamedTuple):
    precision: Precision
    why: str


def choose_precision(device: torch.device) -> PrecisionChoice:
    """bf16 where this machine multiplies matrices at least FASTER times as fast in bf16 as in fp32, else fp32."""
    speed = {"fp32": gigaflops(2048, "fp32", device), "bf16": gigaflops(64, "bf16", device, quickest=True)}
    if speed["bf16"] >= speed["fp32"] / 10:  # otherwise bf16 is emulated, and a large product would take seconds
        speed["bf16"] = gigaflops(2048, "bf16", device)
    ratio = speed["bf16"] / speed["fp32"]
    if ratio >= FASTER:
        return PrecisionChoice("bf16", f"this machine multiplies {ratio:.1f} times as fast in bf16 as in fp32")
    why = "has no fast bf16" if ratio < 1 else f"multiplies only {ratio:.1f} times as fast in bf16"
    return PrecisionChoice("fp32", f"this machine {why}")


@functools.cache  # a machine is measured once a process
def gigaflops(rows: int, precision: Precision, device: torch.device, *, quickest: bool = False) -> float:
    """The median speed of a few products (rows x 512) @ (512 x 1024), the size of a small model's MLP; or the quickest.
    On an accelerator many products are timed together: otherwise waiting for them would be all that is measured."""
    dtype, row = DTYPES[precision], IN_A_ROW if kernels.runs_ahead(device) else 1
    a, b = torch.ones(rows, 512, dtype=dtype, device=device), torch.ones(512, 1024, dtype=dtype, device=device)
    seconds = []
    for _ in range(WARM + 5):
        begin = time.perf_counter()
        for _ in range(row):
            product = a @ b
        product[0, 0].item()  # waits for an accelerator
        seconds.append(time.perf_counter() - begin)
    spent = min(seconds) if quickest else statistics.median(seconds[WARM:])
    return 2 * rows * 512 * 1024 * row / spent / 1e9
