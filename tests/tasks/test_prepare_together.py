"""Data that several processes prepare together: whoever does what, in whichever order, and whatever is killed, the
folder has the bytes that one process alone makes."""

import json
import random
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commands import heed
from disks import Faulty, Killed
from heedful.errors import InputError, StorageError
from heedful.run.prepared import LOCK, WORK, WorkPart, read_part
from heedful.store import files
from heedful.store.lock import held_alone, with_others
from heedful.tasks.shared.preparing import pairs as preparing
from heedful.tasks.shared.preparing import partitions
from heedful.verbs.data import prepare_data
from made import TRANSFORMER, backwards, made_recipe

PATIENCE = 60
SETTINGS = [f"data.{key}={value}" for key, value in TRANSFORMER["data"].items()]


@pytest.fixture(scope="module", autouse=True)
def small() -> Any:
    """Several partitions, and several parts of a file."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(preparing, "PARTITION", 700)
        patched.setattr(partitions, "AT_ONCE", 25)
        patched.setattr(partitions, "ENCODED", 20)
        patched.setattr(files, "disk", Faulty())  # which flushes nothing
        yield


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three files, with copies of a pair in several of them."""
    made, draw, folder = backwards(90, 1), random.Random(1), tmp_path_factory.mktemp("pairs")
    rows = [f"{source}\t{target}\n" for source, target in zip(made.source, made.target, strict=True)]
    rows += [*draw.choices(rows, k=30), "ba de\t\n"]
    draw.shuffle(rows)
    paths = [folder / f"{name}.tsv" for name in "abc"]
    for number, path in enumerate(paths):
        path.write_text("".join(["source\ttarget\n", *rows[number::3]]))
    return paths


def prepare(pairs: list[Path], out: Path, part: WorkPart | None = None) -> dict[str, Any]:
    return prepare_data(made_recipe(TRANSFORMER), out, {"data.path": tuple(map(str, pairs))}, {}, part=part)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def alone(pairs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    out = tmp_path_factory.mktemp("alone") / "data"
    prepare(pairs, out)
    assert len([*out.glob("*.ids")]) > 4
    return contents(out)


@pytest.mark.parametrize("of", [1, 2, 3, 4])
def test_parts_in_every_order_make_the_bytes_of_one_process(
    of: int, pairs: list[Path], alone: dict[str, bytes], tmp_path: Path
) -> None:
    for order in permutations(range(1, of + 1)):
        out = tmp_path / "".join(map(str, order))
        for at, number in enumerate(order, 1):
            answer = prepare(pairs, out, WorkPart(number, of))
            if at < of:
                assert answer == {"part": [number, of], "missing": sorted(order[at:])}
        assert answer["counts"]["pairs"]
        assert contents(out) == alone


def test_more_parts_than_partitions(pairs: list[Path], alone: dict[str, bytes], tmp_path: Path) -> None:
    order = [*range(1, 31)]
    random.Random(2).shuffle(order)
    for number in order:
        prepare(pairs, tmp_path / "data", WorkPart(number, 30))
    assert contents(tmp_path / "data") == alone


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 4), st.randoms(use_true_random=False))
def test_parts_that_are_killed_and_run_again(
    pairs: list[Path], alone: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory, of: int, draw: random.Random
) -> None:
    """At any file operation, also in another order, by another number of parts, or without parts."""
    out = tmp_path_factory.mktemp("killed") / "data"
    with pytest.MonkeyPatch.context() as patched:
        for _ in range(draw.randint(1, 6)):
            part = WorkPart(draw.randint(1, of), of) if draw.random() < 0.9 else None
            kind, at = draw.choice(["kill", "ENOSPC", "torn"]), draw.randint(1, 400)
            patched.setattr(files, "disk", Faulty(kind, at, for_good=True))
            with suppress(StorageError, Killed):
                prepare(pairs, out, part)
    last = draw.choice([of, of + 1])
    for number in draw.sample(range(1, last + 1), last):
        prepare(pairs, out, WorkPart(number, last))
    assert contents(out) == alone
    shutil.rmtree(out)


def test_the_command_without_a_part_ends_what_parts_have_begun(
    pairs: list[Path], alone: dict[str, bytes], tmp_path: Path
) -> None:
    out = tmp_path / "data"
    assert prepare(pairs, out, WorkPart(2, 3))["missing"] == [1, 3]
    prepare(pairs, out)
    assert contents(out) == alone
    prepare(pairs, out, WorkPart(1, 3))  # which finds all done
    assert contents(out) == alone


@pytest.mark.parametrize("numbers", [(1, 2, 3), (1, 1, 2, 2), (2, 2, 2, 1)])
def test_parts_at_once_and_the_same_part_twice(
    numbers: tuple[int, ...], pairs: list[Path], alone: dict[str, bytes], tmp_path: Path
) -> None:
    of, gate = max(numbers), threading.Barrier(len(numbers))

    def work(number: int) -> dict[str, Any]:
        gate.wait(PATIENCE)
        return prepare(pairs, tmp_path / "data", WorkPart(number, of))

    with ThreadPoolExecutor(len(numbers)) as pool:
        answers = [*pool.map(work, numbers)]
    assert any("counts" in answer for answer in answers)
    assert contents(tmp_path / "data") == alone


def test_nobody_else_is_at_work_while_the_folder_is_cleaned(
    pairs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, removed, remove = tmp_path / "data", list[str](), files.remove_tree

    def watched(path: Path) -> None:
        if path.parent == out:
            with pytest.raises(InputError, match="another command is writing here"), held_alone(out / LOCK):
                pass
            removed.append(path.name)
        remove(path)

    monkeypatch.setattr(files, "remove_tree", watched)
    prepare(pairs, out)
    assert {WORK, LOCK} <= {*removed}


def test_each_piece_is_done_once(
    pairs: list[Path], alone: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three readers read a file each, and the vocabulary is learnt by one part."""
    rows, trained = list[int](), list[int]()
    append, tokenizers = partitions.Partitions._append, preparing.as_json_lines

    def counting(self: Any, reader: int, some: Any, *rest: Any) -> Any:
        rows.append(len(some))
        return append(self, reader, some, *rest)

    def sampled(pairs: Any) -> bytes:
        trained.append(len(pairs))
        return tokenizers(pairs)

    monkeypatch.setattr(partitions.Partitions, "_append", counting)
    monkeypatch.setattr(preparing, "as_json_lines", sampled)
    gate = threading.Barrier(3)

    def work(number: int) -> None:
        gate.wait(PATIENCE)
        prepare(pairs, tmp_path / "data", WorkPart(number, 3))

    with ThreadPoolExecutor(3) as pool:
        [*pool.map(work, (3, 1, 2))]
    assert sum(rows) == 121
    assert len(trained) == 3  # the sample, and what is held out for validation and a test
    assert contents(tmp_path / "data") == alone


def test_processes_at_once_of_which_one_is_killed(pairs: list[Path], alone: dict[str, bytes], tmp_path: Path) -> None:
    code = f"""
import json, os, signal, sys
from pathlib import Path
from heedful.run.prepared import read_part
from heedful.store import files
from heedful.tasks.shared.preparing import pairs, partitions
from heedful.verbs.data import prepare_data
pairs.PARTITION, partitions.AT_ONCE, partitions.ENCODED = 700, 25, 20
class Killing(files.Disk):
    renamed = 0
    def fsync(self, descriptor): pass
    def rename(self, source, target):
        self.renamed += 1
        if self.renamed == int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)
        super().rename(source, target)
files.disk = Killing()
prepare_data("translate", Path(sys.argv[3]), {{"data.path": tuple(sys.argv[4:])}}, {{}}, settings={SETTINGS!r},
             part=read_part(sys.argv[1]))
"""
    out = tmp_path / "data"

    def begin(part: str, killed_at: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", code, part, str(killed_at), str(out), *map(str, pairs)])

    begun = [begin("1/3", 0), begin("2/3", 3), begin("3/3", 0)]
    assert [process.wait(PATIENCE) for process in begun] == [0, -9, 0]
    assert not (out / "manifest.json").exists()
    assert begin("2/3", 0).wait(PATIENCE) == 0
    assert contents(out) == alone


def test_locks_that_do_not_hold_are_seen(pairs: list[Path], tmp_path: Path) -> None:
    """What two machines have appended at once is not taken for the rows."""
    prepare(pairs, tmp_path / "data", WorkPart(2, 2))
    with next((tmp_path / "data" / WORK).glob("0000-*.jsonl")).open("ab") as file:
        file.write(b'["a", "b"]\n')
    with pytest.raises(StorageError, match="were written: perhaps locks do not hold") as caught:
        prepare(pairs, tmp_path / "data", WorkPart(1, 2))
    assert caught.value.fix == "remove the folder, and prepare the data again"


def test_a_command_without_a_part_does_not_disturb_parts(pairs: list[Path], tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    with (
        with_others(tmp_path / "data" / LOCK),
        pytest.raises(InputError, match="data: another command is writing here"),
    ):
        prepare(pairs, tmp_path / "data")


def test_other_data_are_refused_by_every_part(pairs: list[Path], tmp_path: Path) -> None:
    prepare(pairs, tmp_path / "data", WorkPart(1, 2))
    with pytest.raises(InputError, match="holds other data"):
        prepare(pairs[:2], tmp_path / "data", WorkPart(2, 2))


@pytest.mark.parametrize("text", ["0/4", "5/4", "a/b", "1", "", "1/0", "-1/4", "1/2/3", "1.0/2", " 1/2"])
def test_what_is_no_part_is_refused(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError) as caught:
        read_part(text)
    assert caught.value.fix.startswith(("they are --part 1/", "--part 2/8"))
    assert heed("data", "prepare", "none.tsv", "--out", str(tmp_path / "data"), f"--part={text}") == 2
    assert f"--part {text}" in capsys.readouterr().err
    assert not (tmp_path / "data").exists()


def test_part_of_a_check_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert heed("data", "check", "none.tsv", "--part", "1/2") == 2
    assert "is for heed data prepare" in capsys.readouterr().err


def test_the_command_says_which_parts_are_missing(
    pairs: list[Path], alone: dict[str, bytes], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "data")
    words = ["data", "prepare", *map(str, pairs), "--out", out, "--set", "data.vocab_size=300"]
    assert heed(*words, "--part", "2/3") == 0
    assert (
        f"{out}: part 2/3 is done, and these are not: 1, 3. The last to end makes the folder ready"
        in capsys.readouterr().err
    )
    assert heed(*words, "--part", "3/3", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"part": [3, 3], "missing": [1]}
    assert heed(*words, "--part", "1/3") == 0
    assert "ready for heed train translate" in capsys.readouterr().err
    made = contents(tmp_path / "data")
    assert {name: data for name, data in made.items() if name.endswith(".ids")} == {
        name: data for name, data in alone.items() if name.endswith(".ids")
    }
