"""Several processes that train one model together, as `torchrun` starts them: rank 0 is the first.

Each rank computes its rows of every batch, and the gradients are summed, so that the number of ranks only changes which
process computes what. The first rank's decisions are shared as JSON: nothing is unpickled.
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from jaxtyping import Float
from torch import Tensor

from heedful.errors import RankError

TIMEOUT = "HEEDFUL_RANK_TIMEOUT"  # seconds that a rank waits for the others, which may be measuring; 1800 unless set


@dataclass(frozen=True)
class Ranks:
    rank: int = 0
    size: int = 1
    together: int = 1  # on one machine

    @property
    def first(self) -> bool:
        return self.rank == 0

    def share(self, value: object = None) -> Any:
        """The first rank's `value` (anything that JSON can hold), on every rank."""
        return self.collect(value if self.first else None)[0]

    def collect(self, value: object) -> list[Any]:
        """Every rank's `value` (anything that JSON can hold), by rank."""
        if self.size == 1:
            return [value]
        data = json.dumps(value).encode()
        lengths = [int(length) for (length,) in self.gather([float(len(data))])]
        padded = torch.frombuffer(bytearray(data.ljust(max(lengths))), dtype=torch.uint8)
        everyone = [torch.empty_like(padded) for _ in range(self.size)]
        with lost_ranks():
            dist.all_gather(everyone, padded)
        return [json.loads(each.numpy().tobytes()) for each in everyone]

    def gather(self, values: Sequence[float]) -> list[list[float]]:
        """Every rank's `values`, by rank; all must have equally many."""
        if self.size == 1:
            return [list(values)]
        own = torch.tensor(values, dtype=torch.float64)
        everyone = [torch.empty_like(own) for _ in range(self.size)]
        with lost_ranks():
            dist.all_gather(everyone, own)
        return [each.tolist() for each in everyone]

    def sum(self, tensors: Sequence[Tensor]) -> None:
        """Replaces each tensor by its sum over all ranks."""
        if self.size == 1 or not tensors:
            return
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        with lost_ranks():
            dist.all_reduce(flat)
        for tensor, part in zip(tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True):
            tensor.copy_(part.view_as(tensor))

    def sum_pieces(self, flat: Float[Tensor, "N"], sizes: Sequence[int]) -> Float[Tensor, "n"]:
        """This rank's piece of the sum of `flat` over all ranks, in the order of `TreeSum`. `sizes`: elements of each
        rank's piece."""
        if self.size == 1:
            return flat
        received = flat.new_empty(self.size, sizes[self.rank])
        with lost_ranks():
            dist.all_to_all_single(received.view(-1), flat, [sizes[self.rank]] * self.size, list(sizes))
        total = TreeSum()
        for piece in received:
            total.add(piece)
        return total.result()

    def broadcast(self, tensors: Sequence[Tensor], source: int) -> None:
        """Replaces each tensor, all of one type, by that of rank `source`."""
        flat = torch.cat([tensor.flatten() for tensor in tensors]) if tensors else torch.empty(0)
        if self.size == 1 or not len(flat):
            return
        with lost_ranks():
            dist.broadcast(flat.view(torch.uint8), source)
        for tensor, part in zip(tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True):
            tensor.copy_(part.view_as(tensor))

    def send(self, tensor: Tensor, target: int) -> None:
        """Sends a tensor to a rank that waits for it in `receive`."""
        with lost_ranks():
            dist.send(tensor.contiguous(), target)

    def receive(self, tensor: Tensor, source: int) -> None:
        """Replaces a contiguous tensor by what that rank sends."""
        with lost_ranks():
            dist.recv(tensor, source)


class TreeSum:
    """A sum in a fixed order: of neighbours, then of neighbouring sums. So some consecutive tensors, as many as a power
    of two, may be summed elsewhere, and the result is the same to the last bit."""

    def __init__(self) -> None:
        self._sums: list[tuple[int, Tensor]] = []  # of 2**level consecutive tensors, the level falling

    def add(self, tensor: Tensor) -> None:
        """Adds a tensor, which is changed by what follows."""
        level = 0
        while self._sums and self._sums[-1][0] == level:
            tensor = self._sums.pop()[1].add_(tensor)
            level += 1
        self._sums.append((level, tensor))

    def result(self) -> Tensor:
        while len(self._sums) > 1:
            _, last = self._sums.pop()
            self._sums[-1][1].add_(last)
        return self._sums[0][1]


@contextmanager
def join_ranks() -> Iterator[Ranks]:
    """The ranks that `torchrun` started, as seen from this one; a single one without `torchrun`."""
    if not dist.is_torchelastic_launched():
        yield Ranks()
        return
    cuda = torch.cuda.is_available()
    if cuda:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    wait = timedelta(seconds=float(os.environ.get(TIMEOUT, "1800")))
    dist.init_process_group("cpu:gloo,cuda:nccl" if cuda else "gloo", timeout=wait)
    try:
        size = dist.get_world_size()
        yield Ranks(dist.get_rank(), size, int(os.environ.get("LOCAL_WORLD_SIZE", size)))
    finally:
        dist.destroy_process_group()


@contextmanager
def lost_ranks(*, within: bool = False) -> Iterator[None]:
    """Raises RankError where other ranks are gone; `within` this block other things are computed too, whose errors are
    raised as they are."""
    try:
        yield
    except RuntimeError as error:
        if within and not isinstance(error, dist.DistError) and "gloo" not in str(error):
            raise
        what = (
            f"another of the processes that train together is gone or does not answer ({str(error).split(chr(10))[0]})"
        )
        raise RankError(what, fix="run the same command again: it continues from the last checkpoint") from error
