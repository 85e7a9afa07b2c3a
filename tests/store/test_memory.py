"""The memory that a process may have: the machine's, or what a container or `ulimit` leaves of it."""

import os
import resource
from pathlib import Path

import pytest

from heedful.store import memory

MACHINE = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
GB = 1_000_000_000


@pytest.fixture
def limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[int, int]:
    """The process's own limits, none at first; and no control groups but those in `tmp_path`."""
    own: dict[int, int] = {}
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (own.get(kind, resource.RLIM_INFINITY), 0))
    monkeypatch.setattr(memory, "PROCESS", tmp_path)
    monkeypatch.setattr(memory, "GROUPS", tmp_path / "groups")
    return own


def test_without_a_limit_it_is_the_machine(limits: dict[int, int], tmp_path: Path) -> None:
    assert memory.memory_size() == MACHINE
    assert memory.memory_limit() == MACHINE // 2
    (tmp_path / "cgroup").write_text("0::/\n")
    assert memory.memory_size() == MACHINE


@pytest.mark.parametrize(
    ("groups", "files", "size"),
    [
        ("0::/", {"memory.max": "max"}, MACHINE),
        ("0::/", {"memory.max": f"{GB}"}, GB),  # in a container that sees its own group alone
        ("0::/user/job", {"user/job/memory.max": "max", "user/memory.max": f"{GB}"}, GB),
        ("0::/user/job", {"user/job/memory.max": f"{GB}", "user/memory.max": f"{2 * GB}"}, GB),
        ("4:memory:/a/b", {"memory/a/b/memory.limit_in_bytes": f"{GB}"}, GB),
        ("4:memory:/host/c", {"memory/memory.limit_in_bytes": f"{GB}"}, GB),  # its path is the host's
        ("4:memory:/", {"memory/memory.limit_in_bytes": "9223372036854771712"}, MACHINE),  # none, in version 1
        ("3:cpu,cpuacct:/\n4:memory:/\n0::/", {"memory/memory.limit_in_bytes": f"{GB}"}, GB),
        ("1:name=systemd:/a:b\n0::/a:b", {"a:b/memory.max": f"{GB}"}, GB),
    ],
)
def test_in_a_container_it_is_what_that_may_have(
    groups: str, files: dict[str, str], size: int, limits: dict[int, int], tmp_path: Path
) -> None:
    (tmp_path / "cgroup").write_text(groups + "\n")
    for name, text in files.items():
        path = tmp_path / "groups" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    assert memory.memory_size() == size


@pytest.mark.parametrize("kind", [resource.RLIMIT_AS, resource.RLIMIT_DATA])
def test_under_ulimit_it_is_what_is_left(kind: int, limits: dict[int, int], tmp_path: Path) -> None:
    (tmp_path / "statm").write_text("100 7 7 1 0 100 0\n")
    limits[kind] = GB
    assert memory.memory_size() == GB - 100 * memory.PAGE
    limits[kind] = 1
    assert memory.memory_size() == 0
