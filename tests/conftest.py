"""Shared by all tests: annotations are checked at run time, seeds are set, and the network is out of reach."""

import fcntl
import functools
import gc
import ipaddress
import json
import os
import random
import socket
import ssl
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from hypothesis import settings

import shapes

settings.register_profile("heedful", deadline=None)  # a machine may be busy
settings.load_profile("heedful")
shapes.install()  # before the first import of heedful
os.environ.update(HF_HUB_OFFLINE="1", MPLBACKEND="agg")  # for child processes too
torch.set_num_threads(1)  # tests are small: a second thread costs more than it gives
gc.set_threshold(50_000, 20, 50)  # scanning all imported objects for garbage would take a tenth of the time


# These start first, so that all processes end at about the same time.
LONGEST = {"test_types.py", "test_accelerator.py", "learn", "faults"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="the long runs too, and the others at full volume")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not LONGEST & {item.path.name, item.path.parent.name})
    if not config.getoption("--full"):
        long = [item for item in items if item.get_closest_marker("full")]
        items[:] = [item for item in items if item not in long]
        config.hook.pytest_deselected(items=long)


def pytest_collection_finish() -> None:
    gc.freeze()  # what is imported by now stays


@pytest.fixture
def full(pytestconfig: pytest.Config) -> bool:
    """Whether to run at full volume."""
    return bool(pytestconfig.getoption("--full"))


FAULTS = pytest.StashKey[Counter[str]]()


@pytest.fixture
def tally(pytestconfig: pytest.Config) -> Callable[[str, int], None]:
    """`tally(kind, n)`: n faults of this kind were injected, and the test has checked that each was survived."""

    def add(kind: str, count: int) -> None:
        pytestconfig.stash.setdefault(FAULTS, Counter())[kind] += count

    return add


def pytest_sessionfinish(session: pytest.Session) -> None:
    if "PYTEST_XDIST_WORKER" in os.environ:  # one of several processes that share the tests
        session.config.workeroutput["faults"] = dict(session.config.stash.get(FAULTS, Counter()))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    if error is None:
        node.config.stash.setdefault(FAULTS, Counter()).update(node.workeroutput["faults"])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    counts = config.stash.get(FAULTS, Counter())
    if counts:
        terminalreporter.section("faults injected")
        for kind, count in sorted(counts.items()):
            terminalreporter.write_line(f"{kind}: faults={count} survived={count}")
        terminalreporter.write_line(f"all: faults={counts.total()} survived={counts.total()}")
    skipped: dict[str, Counter[str]] = {}
    for report in terminalreporter.stats.get("skipped", []):
        why = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        skipped.setdefault(why.removeprefix("Skipped: "), Counter())[report.nodeid.partition("[")[0]] += 1
    if skipped:
        terminalreporter.section("not run on this machine")
    for why, names in sorted(skipped.items()):
        terminalreporter.write_line(f"{why}:")
        for name, count in sorted(names.items()):
            terminalreporter.write_line(f"  {name}{f' ({count} cases)' if count > 1 else ''}")


@pytest.fixture(scope="session", autouse=True)
def little_to_show() -> Iterator[None]:
    """Avoids the output of trainings, which takes most of the time of a small one: no plot is drawn, and samples are
    short. Writes are not flushed to disk either, because no test cuts the power."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("heedful.run.train.curves", lambda rows, scores, title: None)
        patch.setattr("heedful.run.train.panels", lambda rows, keys: None)
        patch.setattr("heedful.run.train.to_bytes", lambda figure, kind: b"not drawn")
        patch.setattr("heedful.tasks.generate.train.SHOWN", 3)
        patch.setattr("heedful.tasks.paint.train.SHOWN", 1)
        patch.setattr("heedful.store.files.Disk.fsync", lambda disk, descriptor: None)
        # Each HTTP client reads all certificates when it is made, and no test needs any.
        patch.setattr("ssl.create_default_context", functools.cache(ssl.create_default_context))
        yield


@pytest.fixture(scope="session")
def run_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """`run_of(name)`: the folder of a run of that case. It is trained once, by the process that asks first, and must
    not be changed: copy it first. NAME.json beside it has the result of `learnt`."""
    from cases import CASES, learnt

    root = tmp_path_factory.getbasetemp()
    folder = (root.parent if "PYTEST_XDIST_WORKER" in os.environ else root) / "cases"
    folder.mkdir(exist_ok=True)

    def trained(name: str) -> Path:
        with (folder / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (folder / f"{name}.json").is_file():
                told = learnt(CASES[name], folder / name)
                (folder / f"{name}.json").write_text(json.dumps(told))
        return folder / name

    return trained


@pytest.fixture
def root() -> Path:
    """The project's folder."""
    return Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def seeded() -> None:
    random.seed(0)
    numpy.random.seed(0)
    torch.default_generator.manual_seed(0)
    if torch.cuda.is_available():  # without a GPU `torch.manual_seed` records the whole stack, for later
        torch.cuda.manual_seed_all(0)


@pytest.fixture(autouse=True)
def loopback_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def guarded(real: Callable[..., Any]) -> Callable[..., Any]:
        def connect(self: socket.socket, address: Any) -> Any:
            if self.family != socket.AF_UNIX and not is_loopback(address[0]):
                pytest.fail(f"a test may not reach the network: {address}")
            return real(self, address)

        return connect

    def look_up(host: Any, *rest: Any, **options: Any) -> Any:
        if not is_loopback(host):
            pytest.fail(f"a test may not look up a name: {host}")
        return getaddrinfo(host, *rest, **options)

    getaddrinfo = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, guarded(getattr(socket.socket, name)))


def is_loopback(host: Any) -> bool:
    """Whether `host`, a name or an address as passed to sockets, is this machine."""
    name = host.decode() if isinstance(host, bytes) else host
    try:
        return name in (None, "", "localhost") or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
