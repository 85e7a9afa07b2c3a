"""The number format of a training follows from a measurement, and one that is only emulated does not cost seconds."""

from typing import Any

import pytest
import torch

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

    monkeypatch.setattr(precision, "_gigaflops", measured)
    choice = choose_precision(CPU)
    assert choice.precision == chosen
    ratio = (many or few) / fp32
    assert (f"{ratio:.1f} times as fast" if ratio >= 1 else "no fast bf16") in choice.why


def test_on_this_machine() -> None:
    assert choose_precision(CPU).precision in ("fp32", "bf16")
    assert precision._gigaflops(64, "fp32", CPU) > 0
