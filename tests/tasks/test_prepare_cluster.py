"""Data that the workers of a Dask cluster prepare: the bytes that one process makes, also where a worker is killed."""

import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from commands import heed
from heedful.errors import InputError, MissingError, StorageError
from heedful.tasks.shared.preparing import pairs as preparing
from heedful.tasks.shared.preparing import partitions
from heedful.tasks.shared.preparing.filling import Filling
from heedful.verbs import cluster as clusters
from heedful.verbs.data import prepare_data
from made import TRANSFORMER, backwards, made_recipe

distributed = pytest.importorskip("distributed")
# What the library leaves to the garbage collector where its processes end, or are killed.
pytestmark = [pytest.mark.filterwarnings(f"ignore::{name}") for name in ("ResourceWarning", "DeprecationWarning")]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Two workers in this process."""
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=False,
        host="127.0.0.1",
        protocol="tcp",
        dashboard_address="127.0.0.1:0",
    ) as cluster:
        yield cluster.scheduler_address


@pytest.fixture(scope="module", autouse=True)
def small() -> Iterator[None]:
    """Several partitions, and several parts of a file."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(preparing, "PARTITION", 700)
        patched.setattr(partitions, "AT_ONCE", 25)
        yield


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    made, folder = backwards(90, 1), tmp_path_factory.mktemp("pairs")
    rows = [f"{source}\t{target}\n" for source, target in zip(made.source, made.target, strict=True)]
    paths = [folder / f"{name}.tsv" for name in "abc"]
    for number, path in enumerate(paths):
        path.write_text("".join(["source\ttarget\n", *rows[number::3], rows[0]]))
    return [*map(str, paths)]


def prepare(pairs: list[str], out: Path, cluster: str | None = None) -> dict[str, Any]:
    return prepare_data(made_recipe(TRANSFORMER), out, {"data.path": tuple(pairs)}, {}, cluster=cluster)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def alone(pairs: list[str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    out = tmp_path_factory.mktemp("alone") / "data"
    prepare(pairs, out)
    return contents(out)


def test_workers_make_the_bytes_of_one_process(
    address: str, pairs: list[str], alone: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From relative paths too, and each piece of the work on a worker."""
    monkeypatch.chdir(Path(pairs[0]).parent)
    threads = set[str]()
    encode = partitions.Encoder.encode

    def seen(self: partitions.Encoder, number: int) -> None:
        threads.add(distributed.get_worker().address)
        encode(self, number)

    monkeypatch.setattr(partitions.Encoder, "encode", seen)
    out = Path(os.path.relpath(tmp_path / "data"))
    prepare([Path(path).name for path in pairs], out, address)
    made = contents(out)
    assert len(threads) == 2
    assert {**made, "manifest.json": b""} == {**alone, "manifest.json": b""}  # which has the paths as they were given
    prepare(pairs, tmp_path / "whole", address)
    assert contents(tmp_path / "whole") == alone


def test_a_worker_that_is_killed(pairs: list[str], alone: dict[str, bytes], tmp_path: Path) -> None:
    """What it was doing is done by the other."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address="127.0.0.1:0"
    ) as cluster:
        address = cluster.scheduler_address
        with distributed.Client(address, set_as_default=False) as client:
            first, *_ = client.run(os.getpid).values()
        killed = threading.Event()
        out = tmp_path / "data"
        done = Filling.done

        def killing(self: Any, what: str, pieces: Any, count: int) -> None:
            if what == "encoding":
                pieces = iter(pieces)
                next(pieces)
                os.kill(first, signal.SIGKILL)
                killed.set()
            done(self, what, pieces, count)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Filling, "done", killing)
            prepare(pairs, out, address)
    assert killed.is_set()
    assert contents(out) == alone


def test_what_a_worker_cannot_do_is_told_in_a_line(
    address: str, pairs: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise StorageError("disk full", where="x.ids", fix="free 1 MB")

    monkeypatch.setattr(partitions.Encoder, "_encode", full)
    with pytest.raises(StorageError, match=f"worker on {socket.gethostname()}: x.ids: disk full") as caught:
        prepare(pairs, tmp_path / "data", address)
    assert caught.value.fix == "free 1 MB"
    monkeypatch.undo()
    with distributed.Client(address, set_as_default=False) as client:
        assert not client.who_has()  # nothing is left to do


def test_a_piece_of_which_workers_die_is_told_in_a_line(
    address: str, pairs: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(*_: Any) -> None:
        raise distributed.KilledWorker("piece", SimpleNamespace(address="tcp://10.0.0.2:1"), 3)

    monkeypatch.setattr(partitions.Encoder, "_encode", dies)
    with pytest.raises(MissingError, match="several workers have died of the same piece of work"):
        prepare(pairs, tmp_path / "data", address)


def test_ctrl_c_leaves_nothing_to_do(
    address: str, pairs: list[str], alone: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the same command continues."""
    gate, encode, encoded = threading.Event(), partitions.Encoder.encode, list[int]()

    def waits(self: partitions.Encoder, number: int) -> None:
        if encoded:
            assert gate.wait(60)
        encoded.append(number)
        encode(self, number)

    def interrupted(self: Any, what: str, pieces: Any, count: int) -> None:
        for _ in pieces:
            if what == "encoding":
                raise KeyboardInterrupt

    monkeypatch.setattr(partitions.Encoder, "encode", waits)
    monkeypatch.setattr(Filling, "done", interrupted)
    with pytest.raises(KeyboardInterrupt):
        prepare(pairs, tmp_path / "data", address)
    with distributed.Client(address, set_as_default=False) as client:
        left = client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))
    assert left == 0
    gate.set()
    monkeypatch.undo()
    prepare(pairs, tmp_path / "data", address)
    assert len(encoded) <= 4  # those that the two workers had begun
    assert contents(tmp_path / "data") == alone


def test_another_version_on_a_worker_is_named(
    address: str, pairs: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = clusters.metadata.version("heedful")
    monkeypatch.setattr(clusters, "_version", lambda: "9.9")
    with pytest.raises(InputError, match=rf"worker tcp://127\.0\.0\.1:\d+: heedful {there}, expected 9\.9"):
        prepare(pairs, tmp_path / "data", address)
    assert not (tmp_path / "data").exists()
    with pytest.raises(InputError, match=f"worker on {socket.gethostname()}: heedful 9.9, expected {there}"):
        clusters._piece(there, print, 1)  # one that has joined late


def test_workers_without_the_same_files_are_named(tmp_path: Path) -> None:
    elsewhere = partitions.Partitions(tmp_path / "none", 1, 1)
    with pytest.raises(MissingError, match=f"worker on {socket.gethostname()}: .*is not seen here"):
        clusters._piece(clusters._version(), elsewhere.encode, 0)


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", b"", None])
def test_what_is_no_scheduler_is_told_in_time(
    answer: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where something else answers, or accepts connections and is silent."""
    monkeypatch.setattr(clusters, "SECONDS", 1)
    kept = list[socket.socket]()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    kept.append(server.accept()[0])
                except OSError:
                    return
                if answer is not None:
                    kept[-1].sendall(answer)
                    kept[-1].close()

        threading.Thread(target=serve, daemon=True).start()
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        words = ["data", "prepare", "none.tsv", "--out", str(tmp_path / "data"), "--cluster", address]
        assert heed(*words) == 3
        server.shutdown(socket.SHUT_RDWR)
    for connection in kept:
        connection.close()
    said = capsys.readouterr().err
    assert f"{address}: no scheduler of Dask answered within 1 seconds" in said
    assert "Traceback" not in said
    assert not (tmp_path / "data").exists()


def test_a_cluster_without_workers(pairs: list[str], tmp_path: Path) -> None:
    with (
        distributed.LocalCluster(
            n_workers=0, processes=False, host="127.0.0.1", protocol="tcp", dashboard_address="127.0.0.1:0"
        ) as empty,
        pytest.raises(MissingError, match="no worker has joined") as caught,
    ):
        prepare(pairs, tmp_path / "data", empty.scheduler_address)
    assert caught.value.fix == f"dask worker {empty.scheduler_address}"


@pytest.mark.parametrize("text", ["local", "", "10.0.0.1", "tcp://:8786", "http://10.0.0.1:80", "tcp://a b:1", "a:b"])
def test_what_is_no_address_is_refused(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert heed("data", "prepare", "none.tsv", "--out", str(tmp_path / "data"), f"--cluster={text}") == 2
    said = capsys.readouterr().err
    assert "not the address of a cluster" in said
    assert "--cluster tcp://10.0.0.1:8786" in said


def test_a_part_of_a_cluster_is_refused(address: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["data", "prepare", "none.tsv", "--out", str(tmp_path / "data"), "--part", "1/2", "--cluster", address]
    assert heed(*words) == 2
    assert "--part and --cluster: a cluster shares out the work itself" in capsys.readouterr().err
    assert heed("data", "check", "none.tsv", "--cluster", address) == 2


def test_without_the_package_one_line_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    words = ["data", "prepare", "none.tsv", "--out", str(tmp_path / "data"), "--cluster", "127.0.0.1:1"]
    assert heed(*words) == 3
    assert "pip install 'heedful[cluster]'" in capsys.readouterr().err
