"""What this machine can do at most, with the threads in use: products of matrices, and reading memory.

python -m benchmarks.limits
"""

import statistics
import time
from collections.abc import Callable

import torch

from benchmarks.turns import BF16, DEVICE, finish, machine
from heedful.core.kernels import onednn_knows

SIDE = 2048  # of the square matrices
READ = 1 << 28  # bytes: past all caches


def best_of(work: Callable[[], object], rounds: int = 7) -> float:
    """The median seconds of a call, after one that warms up."""
    work()
    finish()
    spent = []
    for _ in range(rounds):
        begin = time.perf_counter()
        work()
        finish()
        spent.append(time.perf_counter() - begin)
    return statistics.median(spent)


def products(dtype: torch.dtype, side: int = SIDE) -> float:
    """GFLOP/s of a product of two square matrices, by the faster of torch's own choice and oneDNN."""
    a, b = (torch.randn(side, side, device=DEVICE).to(dtype) for _ in range(2))
    ways: list[Callable[[], object]] = [lambda: a @ b]
    if DEVICE.type == "cpu" and onednn_knows(dtype):
        ways.append(lambda: torch.ops.mkldnn._linear_pointwise(a, b, None, "none", [], ""))
    return 2 * side**3 / min(map(best_of, ways)) / 1e9


def reading(size: int = READ) -> float:
    """GB/s of summing numbers that no cache holds."""
    numbers = torch.ones(size // 4, device=DEVICE)
    return size / best_of(numbers.sum) / 1e9


def main() -> None:
    print(machine(torch.get_num_threads()))
    for dtype in (torch.float32, torch.bfloat16):
        if dtype == torch.float32 or BF16:
            print(f"{str(dtype).removeprefix('torch.'):10} {products(dtype):8,.0f} GFLOP/s, {SIDE} x {SIDE} matrices")
    print(f"{'memory':10} {reading():8,.1f} GB/s read")


if __name__ == "__main__":
    main()
