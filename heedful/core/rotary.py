"""How fast rotary positions turn: as first published, or slowed down for texts longer than those that were learnt.

F frequencies, half a head's width.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.core.config import check_words
from heedful.errors import InputError


@dataclass(frozen=True, kw_only=True)
class RotaryScaling:
    """What was learnt on texts of `original_length` tokens is to read texts `factor` times as long.

    "linear": all frequencies are divided by the factor (Chen et al. 2023). "llama3": those that turn less than
    `low_turns` times within the original length are, those that turn more than `high_turns` times stay, and between
    them it fades (Llama Team 2024, their code). "yarn": the same by another fading, linear in the number of the
    frequency, and queries and keys are multiplied by `magnitude` (Peng et al. 2023, equations 19 to 22). `whole`: it
    begins and ends at whole numbers, as in the authors' code.
    """

    kind: Literal["linear", "llama3", "yarn"]
    factor: float
    original_length: int = 0  # tokens; not of "linear"
    low_turns: float = 1.0
    high_turns: float = 4.0
    magnitude: float = 1.0
    whole: bool = True

    def __post_init__(self) -> None:
        check_words(self)
        numbers = (self.factor, self.low_turns, self.high_turns, self.magnitude)
        sound = all(0 < number < math.inf for number in numbers)
        if not sound or (self.kind != "linear" and not (self.original_length and self.low_turns < self.high_turns)):
            raise InputError(f"{self} cannot be", fix="numbers above 0, an original_length, low_turns below high_turns")


def frequencies(
    head_dim: int, theta: float, scaling: RotaryScaling | None, device: torch.device | None = None
) -> Float[Tensor, "F"]:
    """By how much each pair of features turns from one position to the next, in radians, the fastest first."""
    plain = theta ** -(torch.arange(0, head_dim, 2, device=device) / head_dim)
    if scaling is None:
        return plain
    if scaling.kind == "linear":
        return plain / scaling.factor
    if scaling.kind == "llama3":
        turns = scaling.original_length * plain / (2 * math.pi)
        kept = ((turns - scaling.low_turns) / (scaling.high_turns - scaling.low_turns)).clamp(0, 1)
    else:
        first, last = (_number(turns, head_dim, theta, scaling) for turns in (scaling.high_turns, scaling.low_turns))
        if scaling.whole:
            first, last = math.floor(first), math.ceil(last)
        first, last = max(first, 0), min(last, head_dim - 1)
        width = last - first or 0.001
        kept = 1 - ((torch.arange(head_dim // 2, device=device) - first) / width).clamp(0, 1)
    return kept * plain + (1 - kept) * plain / scaling.factor


def _number(turns: float, head_dim: int, theta: float, scaling: RotaryScaling) -> float:
    """Which frequency turns so many times within the original length."""
    return head_dim * math.log(scaling.original_length / (turns * 2 * math.pi)) / (2 * math.log(theta))
