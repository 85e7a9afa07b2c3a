"""How much memory this process may have: on a machine, in a container, under `ulimit`."""

import os
import resource
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")
PROCESS, GROUPS = Path("/proc/self"), Path("/sys/fs/cgroup")
# Limits of a process, and the column of /proc/self/statm with the pages that count against each.
LIMITS = {resource.RLIMIT_AS: 0, resource.RLIMIT_DATA: 5}


def memory_limit() -> int:
    """The largest size of a file, in bytes, that fits twice into the memory that this process may have."""
    return memory_size() // 2


def memory_size() -> int:
    """The memory that this process may have, in bytes: the machine's, or less where a container or `ulimit` sets a
    limit."""
    machine = os.sysconf("SC_PHYS_PAGES") * PAGE
    return min([machine, *_left_by_ulimit(), *_allowed_by_containers()])


def _left_by_ulimit() -> Iterator[int]:
    pages = _text_of(PROCESS / "statm").split()
    for kind, column in LIMITS.items():
        limit, _ = resource.getrlimit(kind)
        if limit != resource.RLIM_INFINITY:
            yield max(0, limit - (int(pages[column]) * PAGE if pages else 0))


def _allowed_by_containers() -> Iterator[int]:
    """The limits of the process's control groups and of all groups above them; of version 2 (no controllers are named)
    and of version 1."""
    for line in _text_of(PROCESS / "cgroup").splitlines():
        _, controllers, group = line.split(":", 2)
        if controllers not in ("", "memory"):
            continue
        root, name = (GROUPS / "memory", "memory.limit_in_bytes") if controllers else (GROUPS, "memory.max")
        folder = root / group.lstrip("/")
        for place in (folder, *folder.parents):
            if place.is_relative_to(root) and (limit := _text_of(place / name).strip()).isdecimal():  # or "max"
                yield int(limit)


def _text_of(path: Path) -> str:
    with suppress(OSError):
        return path.read_text()
    return ""
