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
from torch import Tensor

from heedful.errors import RankError

TIMEOUT = "HEEDFUL_RANK_TIMEOUT"  # seconds that a rank waits for the others, which may be measuring; 1800 unless set


@dataclass(frozen=True)
class Ranks:
    rank: int = 0
    size: int = 1

    @property
    def first(self) -> bool:
        return self.rank == 0

    def share(self, value: object = None) -> Any:
        """The first rank's `value` (anything that JSON can hold), on every rank."""
        if self.size == 1:
            return value
        data = json.dumps(value).encode() if self.first else b""
        with _lost_ranks():
            length = torch.tensor([len(data)])
            dist.broadcast(length, 0)
            content = torch.empty(int(length), dtype=torch.uint8)
            if data:
                content.copy_(torch.frombuffer(bytearray(data), dtype=torch.uint8))
            dist.broadcast(content, 0)
        return json.loads(content.numpy().tobytes())

    def gather(self, values: Sequence[float]) -> list[list[float]]:
        """Every rank's `values`, by rank; all must have equally many."""
        if self.size == 1:
            return [list(values)]
        own = torch.tensor(values, dtype=torch.float64)
        everyone = [torch.empty_like(own) for _ in range(self.size)]
        with _lost_ranks():
            dist.all_gather(everyone, own)
        return [each.tolist() for each in everyone]

    def sum(self, tensors: Sequence[Tensor]) -> None:
        """Replaces each tensor by its sum over all ranks."""
        if self.size == 1 or not tensors:
            return
        flat = torch.cat([tensor.flatten() for tensor in tensors])
        with _lost_ranks():
            dist.all_reduce(flat)
        for tensor, part in zip(tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True):
            tensor.copy_(part.view_as(tensor))


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
        yield Ranks(dist.get_rank(), dist.get_world_size())
    finally:
        dist.destroy_process_group()


@contextmanager
def _lost_ranks() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        what = (
            f"another of the processes that train together is gone or does not answer ({str(error).split(chr(10))[0]})"
        )
        raise RankError(what, fix="run the same command again: it continues from the last checkpoint") from error
