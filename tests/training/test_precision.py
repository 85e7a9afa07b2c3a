"""The number format of a training follows from a measurement, and one that is only emulated does not cost seconds."""

from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from accelerator import accelerator
from heedful.training import precision
from heedful.training.precision import choose_precision

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("fp32", "few", "many", "chosen"),
    [(400, 300, 800, "bf16"), (400, 300, 500, "fp32"), (400, 41, 600, "bf16"), (150, 1, None, "fp32")],
)
def test_the_faster_one_by_far(
    fp32: float, few: float, many: float | None, chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured(rows: int, name: str, device: torch.device, **how: Any) -> float:
        if name == "fp32":
            return fp32
        found = few if rows < 100 else many
        assert found is not None, "large products of an emulated format take seconds"
        return found

    monkeypatch.setattr(precision, "gigaflops", measured)
    choice = choose_precision(CPU)
    assert choice.precision == chosen
    ratio = (many or few) / fp32
    assert (f"{ratio:.1f} times as fast" if ratio >= 1 else "no fast bf16") in choice.why


@pytest.mark.parametrize("ahead", [False, True])
def test_waiting_is_not_measured_where_the_host_runs_ahead(ahead: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = 0.0

    def passes(seconds: float) -> None:
        nonlocal clock
        clock += seconds

    class Slow(TorchDispatchMode):
        """An accelerator whose products take 10 ms, and waiting for it a second."""

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            passes({"aten.mm.default": 0.01, "aten._local_scalar_dense.default": 1.0}.get(str(func), 0.0))
            return func(*args, **(kwargs or {}))

    monkeypatch.setattr(precision.time, "perf_counter", lambda: clock)
    monkeypatch.setattr(precision.kernels, "runs_ahead", lambda device: ahead)
    with Slow():
        found = precision.gigaflops.__wrapped__(8, "fp32", CPU)
    alone = 2 * 8 * 512 * 1024 / 0.01 / 1e9
    assert found == pytest.approx(alone * (200 * 0.01 / 3.0 if ahead else 0.01 / 1.01))


def test_on_this_machine() -> None:
    assert choose_precision(CPU).precision in ("fp32", "bf16")
    assert precision.gigaflops(64, "fp32", CPU) > 0


def test_on_an_accelerator() -> None:
    with accelerator() as device:
        assert precision.gigaflops.__wrapped__(64, "fp32", torch.device(device)) > 0
