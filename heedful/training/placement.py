"""Which rank holds which rows of each trained parameter, where no rank holds all."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn

from heedful.training.ranks import Ranks


class Rows(NamedTuple):
    """The rows of a parameter that a rank holds; all of one without dimensions."""

    rank: int
    begin: int
    end: int

    def of(self, tensor: Tensor) -> Tensor:
        return tensor[self.begin : self.end] if tensor.ndim else tensor


class Placement:
    """Which rank holds which rows of each trained parameter. `twin`: the first rank that holds the same as this one,
    where several do."""

    def __init__(self, rows: Mapping[str, Sequence[Rows]], ranks: Ranks, *, twin: int | None = None) -> None:
        self.rows, self.ranks = rows, ranks
        twin = ranks.rank if twin is None else twin
        self.writes = twin == ranks.rank  # whether this rank's part of a checkpoint is needed
        self.here = {name: piece for name, held in rows.items() for piece in held if piece.rank == twin}

    def wanted(self, model: nn.Module) -> dict[str, tuple[int, int | None]]:
        """The rows of each parameter that this rank reads from a checkpoint: its own, and all of those that are
        frozen."""
        frozen = (name for name, parameter in model.named_parameters() if not parameter.requires_grad)
        return {name: (0, None) for name in frozen if name not in self.rows} | {
            name: (piece.begin, piece.end) for name, piece in self.here.items()
        }

    @contextmanager
    def gathered(self, model: nn.Module, pieces: Mapping[str, Tensor]) -> Iterator[nn.Module]:
        """Inside this block the first rank has the weights in `model`, whose pieces the ranks hold; outside of it they
        take no memory. All ranks enter it."""
        ranks, parameters = self.ranks, dict(model.named_parameters())
        try:
            for name, held in self.rows.items():
                weight = parameters[name]
                if ranks.first:
                    weight.data = torch.empty(weight.shape, device=weight.device)
                for piece in held:
                    if ranks.first and piece.rank == 0:
                        piece.of(weight).copy_(pieces[name])
                    elif ranks.first:
                        ranks.receive(piece.of(weight), piece.rank)
                    elif piece.rank == ranks.rank:
                        ranks.send(pieces[name].detach(), 0)
            yield model
        finally:
            give_up(parameters[name] for name in self.rows)


def give_up(weights: Iterable[Tensor]) -> None:
    """Frees the memory of float32 tensors, which keep their shapes."""
    for weight in weights:
        weight.data = torch.empty((), device=weight.device).expand(weight.shape)
