"""Sentences of random tokens as rows of a batch: padded, or packed into one row. The padding is random, so that
attention to it would show."""

import torch
from torch import Tensor

V = 23  # the size of the vocabulary


def sentences(*lengths: int) -> list[Tensor]:
    return [torch.randint(4, V, (length,)) for length in lengths]


def padded(parts: list[Tensor], places: int) -> tuple[Tensor, Tensor]:
    """Tokens and segments."""
    tokens, segments = torch.randint(0, V, (len(parts), places)), torch.zeros(len(parts), places, dtype=torch.long)
    for row, part in enumerate(parts):
        tokens[row, : len(part)], segments[row, : len(part)] = part, 1
    return tokens, segments


def packed(parts: list[Tensor], places: int) -> tuple[Tensor, Tensor]:
    tokens, segments = torch.randint(0, V, (1, places)), torch.zeros(1, places, dtype=torch.long)
    start = 0
    for number, part in enumerate(parts, 1):
        tokens[0, start : start + len(part)], segments[0, start : start + len(part)] = part, number
        start += len(part)
    return tokens, segments
