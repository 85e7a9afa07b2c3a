"""Does pieces of work on the workers of a Dask cluster (`pip install heedful[cluster]`), which runs already: its
scheduler says who does what, and repeats what a worker that has died was doing. All workers see the same files."""

import asyncio
import re
import socket
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from functools import partial
from importlib import metadata
from typing import TYPE_CHECKING, Any

from heedful.errors import HeedError, InputError, MissingError, pip_install
from heedful.run.task import Each

if TYPE_CHECKING:
    from distributed import Client

SECONDS = 10  # that a scheduler has to answer


@contextmanager
def on_cluster(address: str) -> Iterator[Each]:
    """What calls a function with each number of some, on the workers of the scheduler at `address`, in any order. At
    the end, whatever that is, nothing is left to do. Raises InputError or MissingError where the cluster cannot do
    it."""
    if not re.fullmatch(r"((tcp|tls|ws|wss)://)?(\[[0-9a-fA-F:.]+\]|[^\s/:\[\]]+):[0-9]{1,5}", address):
        fix = "give that of its scheduler, as --cluster tcp://10.0.0.1:8786"
        raise InputError("not the address of a cluster", where=f"--cluster {address}", fix=fix)
    try:
        from distributed import Client
    except ImportError as error:
        what = "preparing on a cluster needs the package distributed"
        raise MissingError(what, fix=pip_install("'heedful[cluster]'")) from error
    if not _workers(address):
        raise MissingError("no worker has joined", where=address, fix=f"dask worker {address}")
    with Client(address, timeout=SECONDS, set_as_default=False) as client:
        version = _version()
        for worker, there in client.run(metadata.version, "heedful", on_error="return").items():
            _need_same(there, version, where=f"worker {worker}")
        pieces: list[Any] = []
        try:
            yield partial(_each, client, version, pieces)
        finally:
            if client.status == "running":  # and has not lost the scheduler
                client.cancel(pieces)


def _version() -> str:
    return metadata.version("heedful")


def _workers(address: str) -> int:
    """How many workers there are. Raises MissingError where no scheduler answers in time."""
    from distributed import rpc

    async def asked() -> dict[str, Any]:
        async with rpc(address) as scheduler:
            return await asyncio.wait_for(scheduler.identity(), SECONDS)

    try:
        return len(asyncio.run(asked())["workers"])
    except (Exception, asyncio.CancelledError) as error:  # whatever answers there, it is no scheduler
        what = f"no scheduler of Dask answered within {SECONDS} seconds"
        raise MissingError(what, where=address, fix="dask scheduler, or check the address and the network") from error


def _need_same(there: object, version: str, *, where: str) -> None:
    if there != version:
        what = f"heedful {there}, expected {version}" if isinstance(there, str) else "heedful is not installed"
        raise InputError(what, where=where, fix="install the same version on all machines, and restart the workers")


def _each(
    client: "Client", version: str, pieces: list[Any], function: Callable[[int], object], numbers: Iterable[int]
) -> Iterator[object]:
    """Submits `pieces`, which are no longer those from before."""
    from distributed import KilledWorker, as_completed
    from distributed.comm import CommClosedError

    pieces[:] = [client.submit(_piece, version, function, number, pure=False) for number in numbers]
    try:
        for piece in as_completed(pieces, loop=client.loop):
            yield piece.result()
    except KilledWorker as error:
        fix = "look into the logs of the workers: perhaps they need more memory"
        raise MissingError("several workers have died of the same piece of work", where="cluster", fix=fix) from error
    except (CancelledError, CommClosedError) as error:
        fix = "run the same command again, once it is there"
        raise MissingError("the scheduler is gone", where="cluster", fix=fix) from error


def _piece(version: str, function: Callable[[int], object], number: int) -> None:
    """Is called on a worker."""
    host = socket.gethostname()
    _need_same(_version(), version, where=f"worker on {host}")  # it may have joined late
    try:
        function(number)
    except HeedError as error:
        raise type(error)(error.what, where=f"worker on {host}: {error.where}", fix=error.fix) from None
