"""Several processes that act together as ranks, forked from a test."""

import json
import os
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from heedful.training.ranks import Ranks


def on_ranks(folder: Path, size: int, work: Callable[[Ranks], Any], *, together: int = 0) -> list[Any]:
    """What `work` returns, which JSON can hold, in each of so many processes, `together` of them on a machine; for one
    that a signal ended, its number."""
    if size == 1:
        return [work(Ranks())]
    store, pids = folder / "store", []
    store.unlink(missing_ok=True)
    for rank in range(size):
        pid = os.fork()
        if not pid:
            said = folder / f"{rank}.json"
            try:
                torch.set_num_threads(1)
                dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=size)
                said.write_text(json.dumps(work(Ranks(rank, size, together or size))))
                os._exit(0)
            except BaseException:
                said.write_text(traceback.format_exc())
            finally:
                os._exit(1)
        pids.append(pid)
    ended = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    told = [(folder / f"{rank}.json").read_text() if code >= 0 else str(-code) for rank, code in enumerate(ended)]
    assert max(ended) == 0, "\n".join(told)
    return [*map(json.loads, told)]
