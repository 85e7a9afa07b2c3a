"""Checkpoints under failing disks, kills, power cuts and damage.

Each sweep takes its volume as a parameter and prints `faults=N survived=N`.
"""

import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from disks import FAULTS, Faulty, Killed, damages, power_cuts, same
from heedful.errors import InputError, MissingError, StorageError
from heedful.store import checkpoint, files
from heedful.store.checkpoint import clean, load_newest, rotate, save_checkpoint, verify
from waiting import becomes

Tally = Callable[[str, int], None]
ROOT = Path(__file__).parents[2]


@cache
def contents(step: int, salt: int = 0) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(1000 * step + salt)
    weights = {"weight": torch.randn(5, 7, generator=generator), "bias": torch.zeros(3, dtype=torch.bfloat16)}
    moments = {"weight.first": torch.randn(5, 7, generator=generator), "step": torch.tensor(step)}
    return {
        "model.safetensors": weights,
        "optimizer.safetensors": moments,
        "state.json": {"step": step, "salt": salt, "rate": 0.1},
    }


def save(run: Path, step: int, salt: int = 0, *, finite: bool = True) -> Path:
    return save_checkpoint(run, step, contents(step, salt), finite=finite, facts={"tokens": 10 * step})


def newest(run: Path, *, finite: bool = False) -> tuple[int, int, list[str]]:
    """The step and salt of the checkpoint that loads, all its content compared, and the warnings."""
    warnings: list[str] = []
    found = load_newest(run, warnings.append, finite=finite)
    assert found is not None
    state = found.json("state.json")
    expected = contents(found.step, state["salt"])
    assert state == expected["state.json"]
    for name in ("model.safetensors", "optimizer.safetensors"):
        assert same(found.tensors(name), expected[name])
    return found.step, state["salt"], warnings


# --- what is saved comes back ---


def test_a_checkpoint_comes_back_whole(tmp_path: Path) -> None:
    assert load_newest(tmp_path, print) is None
    path = save(tmp_path, 3)
    assert path == tmp_path / "checkpoints/step-3"
    assert newest(tmp_path) == (3, 0, [])
    assert sorted(os.listdir(path)) == [
        "manifest.json",
        "model.safetensors",
        "optimizer.safetensors",
        "state.json",
    ]
    manifest = files.read_json(path / "manifest.json")
    assert manifest["step"] == 3
    assert manifest["finite"] is True
    assert manifest["facts"] == {"world_size": 1, "tokens": 30}
    assert set(manifest["versions"]) == {"heedful", "torch", "python"}
    found = load_newest(tmp_path, print)
    assert found is not None
    assert found.data("state.json") == (path / "state.json").read_bytes()
    with pytest.raises(MissingError, match=r"step-3/more\.json: not in this checkpoint"):
        found.json("more.json")


def test_each_kind_of_tensor_comes_back_bit_for_bit(tmp_path: Path) -> None:
    base = torch.randn(6, 4)
    dtypes = [torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8, torch.bool]
    tensors = {str(dtype).replace("torch.", ""): (base * 9).to(dtype) for dtype in dtypes}
    tensors |= {
        "tied.one": base,
        "tied.two": base,
        "turned": base.T,
        "slice": base[1:3],
        "overlap": base[2:5],
        "expanded": torch.ones(1).expand(3),
        "scalar": torch.tensor(2.5),
        "empty": torch.zeros(0, 3),
        "empty.too": torch.zeros(0, 3),
        "special": torch.tensor([float("nan"), float("inf"), -0.0]),
        "parameter": torch.nn.Parameter(torch.ones(2)),
    }
    save_checkpoint(tmp_path, 1, {"a.safetensors": tensors, "b.safetensors": {}}, finite=True, facts={})
    found = load_newest(tmp_path, print)
    assert found is not None
    back = found.tensors("a.safetensors")
    assert back.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert back[name].dtype == tensor.dtype
        assert back[name].shape == tensor.shape
        left, right = back[name].contiguous().view(-1), tensor.detach().contiguous().view(-1)
        assert torch.equal(left.view(torch.uint8), right.view(torch.uint8)), name
    assert back["tied.one"] is back["tied.two"]
    assert found.tensors("b.safetensors") == {}
    assert "tied.two" not in safetensors.torch.load_file(found.path / "a.safetensors")


def test_facts_of_any_json_kind_verify(tmp_path: Path) -> None:
    facts = {"by rank": {10: 1, 9: 2}, "pair": (1, 2), "small": 1e-17, "text": "ü\u2028😀"}
    path = save_checkpoint(tmp_path, 1, {}, finite=True, facts=facts)
    assert verify(path) == []
    with pytest.raises(StorageError, match="cannot be written as JSON"):
        save_checkpoint(tmp_path, 2, {}, finite=True, facts={"loss": float("nan")})
    assert os.listdir(tmp_path / "checkpoints") == ["step-1"]


@pytest.mark.parametrize("name", ["../a.json", "a/b.json", "", ".hidden", "manifest.json", "a.pt", "x" * 101])
def test_odd_names_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="is not a name for a file here"):
        save_checkpoint(tmp_path, 1, {name: b""}, finite=True, facts={})


def test_the_same_again_changes_nothing_and_another_content_replaces(tmp_path: Path) -> None:
    path = save(tmp_path, 1)
    before = path.stat().st_ino
    assert save(tmp_path, 1) == path
    assert path.stat().st_ino == before
    save(tmp_path, 1, 5)
    assert newest(tmp_path) == (1, 5, [])
    (path / "state.json").write_bytes(b"{}")
    save(tmp_path, 1, 5)
    assert newest(tmp_path) == (1, 5, [])
    assert os.listdir(tmp_path / "checkpoints") == ["step-1"]


def test_a_full_disk_is_told_how_much_is_needed(tmp_path: Path, disk: Callable[[files.Disk], None]) -> None:
    save(tmp_path, 1)
    disk(Faulty("ENOSPC", 6, for_good=True))
    big = {"a.safetensors": {"a": torch.zeros(1_000_000)}, "b.safetensors": {"b": torch.zeros(500_000)}}
    with pytest.raises(StorageError) as caught:
        save_checkpoint(tmp_path, 2, big, finite=True, facts={})
    assert caught.value.what == "disk full: No space left on device"
    assert caught.value.fix == "free 6 MB and run the same command again"


# --- choosing and rotating ---


def test_finite_ones_can_be_asked_for(tmp_path: Path) -> None:
    for step in (1, 2):
        save(tmp_path, step, finite=step == 1)
    assert newest(tmp_path)[0] == 2
    assert newest(tmp_path, finite=True)[0] == 1


def test_rotation_keeps_the_newest_the_protected_and_the_last_good(tmp_path: Path) -> None:
    def steps() -> list[int]:
        return sorted(int(name.removeprefix("step-")) for name in os.listdir(tmp_path / "checkpoints"))

    for step in range(8, 13):
        save(tmp_path, step)
    assert rotate(tmp_path, 5) == []
    assert rotate(tmp_path, 2, protect={9}) == [8, 10]
    assert steps() == [9, 11, 12]
    for step in (13, 14, 15):
        save(tmp_path, step, finite=False)
        rotate(tmp_path, 1)
    assert steps() == [12, 15]
    save(tmp_path, 16)
    (tmp_path / "checkpoints/step-16/state.json").unlink()  # finite by its manifest, but not whole
    rotate(tmp_path, 1)
    assert steps() == [12, 16]
    (tmp_path / "checkpoints/step-12/state.json").unlink()
    save(tmp_path, 17, finite=False)
    assert rotate(tmp_path, 1) == []  # nothing good is left: nothing goes
    with pytest.raises(ValueError, match="at least one"):
        rotate(tmp_path, 0)


def test_leftovers_are_put_away(tmp_path: Path) -> None:
    save(tmp_path, 1)
    folder = tmp_path / "checkpoints"
    (folder / ".tmp-step-2").mkdir()
    (folder / ".tmp-step-2/model.safetensors").write_bytes(b"half")
    (tmp_path / ".tmp-77-config.json").write_bytes(b"half")
    shutil.copytree(folder / "step-1", folder / ".old-step-1")
    (folder / "step-5").mkdir()
    save(tmp_path, 4)
    (folder / "step-4").rename(folder / ".old-step-4")  # as a crash between the two renames leaves it
    clean(tmp_path)
    assert sorted(os.listdir(folder)) == ["step-1", "step-4", "step-5"]
    assert os.listdir(tmp_path) == ["checkpoints"]
    assert newest(tmp_path)[0] == 4
    clean(tmp_path / "not there")


# --- failing disks, kills, power cuts ---


def prepare_none(run: Path) -> None:
    run.mkdir()


def act_first(run: Path) -> None:
    save(run, 1)


def prepare_one(run: Path) -> None:
    save(run, 1)


def act_save(run: Path) -> None:
    save(run, 2)


def prepare_two(run: Path) -> None:
    save(run, 1)
    save(run, 2, 7)


def act_rotate(run: Path) -> None:
    clean(run)
    save(run, 3)
    rotate(run, 1)


def prepare_damaged(run: Path) -> None:
    prepare_two(run)
    (run / "checkpoints/step-2/state.json").write_bytes(b"{}")


SCENES: dict[str, tuple[Callable[[Path], None], Callable[[Path], None], set[Any], tuple[int, int]]] = {
    "the first step": (prepare_none, act_first, {None}, (1, 0)),
    "the next step": (prepare_one, act_save, {(1, 0)}, (2, 0)),
    "the same step with another content": (prepare_two, act_save, {(1, 0), (2, 7)}, (2, 0)),
    "over a damaged one": (prepare_damaged, act_save, {(1, 0)}, (2, 0)),
    "save and rotate": (prepare_two, act_rotate, {(2, 7)}, (3, 0)),
}


def survives(run: Path, before: set[Any], after: tuple[int, int], *, done: bool) -> None:
    """Old or new loads without a doubt, the new one if it was said to be saved; and the run goes on."""
    clean(run)
    found = newest(run)[:2] if None not in before or (run / "checkpoints/step-1").exists() else None
    assert found == after or (not done and found in before)
    clean(run)
    save(run, 9)
    assert newest(run) == (9, 0, [])
    assert not [name for name in os.listdir(run / "checkpoints") if not name.startswith("step-")]


@pytest.mark.parametrize("every", [6, pytest.param(1, marks=pytest.mark.full)])
@pytest.mark.parametrize("scene", SCENES)
def test_whichever_operation_fails_a_checkpoint_loads(
    scene: str, every: int, tmp_path: Path, disk: Callable[[files.Disk], None], tally: Tally
) -> None:
    prepare, act, before, after = SCENES[scene]
    disk(Faulty())
    prepare(tmp_path / "template")

    def attempt(run: Path, trial: Faulty) -> bool:
        shutil.copytree(tmp_path / "template", run)
        disk(trial)
        try:
            act(run)
        except (StorageError, Killed):
            return False
        return True

    counting = Faulty()
    assert attempt(tmp_path / "counting", counting)
    faults = saved = 0
    for first, (kind, for_good) in enumerate(FAULTS):
        for at in range(1 + first % every, counting.count + 1, every):
            run = tmp_path / f"{kind}-{for_good}-{at}"
            trial = Faulty(kind, at, for_good=for_good)
            done = attempt(run, trial)
            assert trial.count >= at
            disk(Faulty())
            for path in (run / "checkpoints").glob("step-*"):
                assert not verify(path) or (scene == "over a damaged one" and path.name == "step-2")
            survives(run, before, after, done=done)
            shutil.rmtree(run)
            faults += 1
            saved += done
    tally("R2 the N-th file operation fails, checkpoints", faults)
    assert 0 < saved < faults


@pytest.mark.parametrize("names_survive", [False, True])
@pytest.mark.parametrize("every", [2, pytest.param(1, marks=pytest.mark.full)])
@pytest.mark.parametrize("scene", SCENES)
def test_whenever_the_power_goes_a_checkpoint_loads(
    scene: str, every: int, names_survive: bool, tmp_path: Path, disk: Callable[[files.Disk], None]
) -> None:
    prepare, act, before, after = SCENES[scene]
    disk(Faulty())
    prepare(tmp_path / "template")
    first = int(names_survive) + every
    cuts = power_cuts(act, tmp_path / "template", disk, names_survive=names_survive, first=first, every=every)
    for at, left, done in cuts:
        survives(left, before, after, done=done)
        assert at < 500
    assert at > 20


SAVER = """
import os, random, sys
from pathlib import Path
from heedful.store.checkpoint import clean, load_newest, rotate
from heedful.store.lock import run_lock
sys.path[:0] = [sys.argv[2], os.path.dirname(sys.argv[2])]
from test_checkpoint import contents, newest, save
run = Path(sys.argv[1])
def saving():
    with run_lock(run):
        clean(run)
        step = 0 if load_newest(run, print) is None else newest(run)[0]
        while True:
            step += 1
            save(run, step)
            with open(run / "saved", "a") as file:
                print(step, file=file)
            rotate(run, 2)
for line in sys.stdin:
    child = os.fork()
    if not child:
        try:
            saving()
        finally:
            os._exit(1)
    print(child, flush=True)
    print(os.waitpid(child, 0)[1], flush=True)
"""


@pytest.mark.parametrize("kills", [10, pytest.param(400, marks=pytest.mark.full)])
def test_no_saved_checkpoint_is_lost_by_a_kill(kills: int, tmp_path: Path, tally: Tally) -> None:
    command = [sys.executable, "-c", SAVER, str(tmp_path), str(Path(__file__).parent)]
    chance = random.Random(0)
    last = 0

    def told() -> list[str]:
        return (tmp_path / "saved").read_text().split("\n")[:-1] if (tmp_path / "saved").exists() else []

    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        for _ in range(kills):
            print("go", file=parent.stdin, flush=True)
            child = int(parent.stdout.readline())
            assert last or becomes(lambda: bool(told()))  # the first child is killed when it has saved
            time.sleep(chance.uniform(0.03, 0.25))
            os.kill(child, 9)
            assert parent.stdout.readline() == "9\n"  # it died of the kill, not of an error of its own
            saved = int(told()[-1])
            step, _, warnings = newest(tmp_path)
            assert step in (saved, saved + 1)
            assert warnings == []
            assert saved >= last
            last = saved
        parent.stdin.close()
    assert last > 0
    tally("R1 kill -9 while saving", kills)


# --- damage ---


@pytest.mark.parametrize("flips", [10, pytest.param(200, marks=pytest.mark.full)])
def test_every_damage_is_seen_named_and_stepped_over(
    flips: int, tmp_path: Path, disk: Callable[[files.Disk], None], tally: Tally
) -> None:
    disk(Faulty())
    save(tmp_path, 1)
    save(tmp_path, 2)
    older, folder, whole = tmp_path / "checkpoints/step-1", tmp_path / "checkpoints/step-2", tmp_path / "whole"
    shutil.copytree(folder, whole)
    faults = 0
    for what, do in list(damages(folder, older, flips)):
        do()
        step, _, warnings = newest(tmp_path)
        assert step == 1, what
        assert len(warnings) == 1
        assert f"step-2: damaged, left out ({what.split()[0]}: " in warnings[0], what
        assert "\n" not in warnings[0]
        assert verify(folder), what
        faults += 1
        shutil.rmtree(folder)
        shutil.copytree(whole, folder)
    assert newest(tmp_path) == (2, 0, [])
    for source in (older, tmp_path / "nothing"):  # a folder in another's place, an empty one
        shutil.rmtree(folder)
        shutil.copytree(source, folder) if source.is_dir() else folder.mkdir()
        step, _, warnings = newest(tmp_path)
        assert step == 1
        assert "manifest.json" in warnings[0]
        faults += 1
    tally("R4 damaged checkpoints", faults)


def test_when_all_are_damaged_nothing_is_started_anew(tmp_path: Path) -> None:
    for step in (1, 2):
        (save(tmp_path, step) / "state.json").unlink()
    warnings: list[str] = []
    with pytest.raises(StorageError, match="none of the 2 checkpoints can be used"):
        load_newest(tmp_path, warnings.append)
    assert [warning.split(": ")[0][-6:] for warning in warnings] == ["step-2", "step-1"]


def test_what_changes_after_it_was_verified_is_not_used(tmp_path: Path) -> None:
    path = save(tmp_path, 1)
    found = load_newest(tmp_path, print)
    assert found is not None
    (path / "state.json").write_bytes((path / "state.json").read_bytes().replace(b"0.1", b"0.2"))
    with pytest.raises(StorageError, match="changed since it was verified"):
        found.json("state.json")


def reseal(path: Path, **changes: Any) -> None:
    manifest = files.read_json(path / "manifest.json") | changes
    del manifest["sha256"]
    sealed = manifest | {"sha256": checkpoint._seal(manifest)}
    (path / "manifest.json").write_bytes(files.json_bytes(sealed, where=path))


def test_another_schema_is_refused_and_not_stepped_over(tmp_path: Path) -> None:
    save(tmp_path, 1)
    reseal(save(tmp_path, 2), schema=2)
    with pytest.raises(InputError, match="written in schema 2") as caught:
        load_newest(tmp_path, print)
    assert caught.value.fix == "pip install -U heedful"


@pytest.mark.parametrize(
    "changes",
    [
        {"files": {"../../secret": {"size": 6, "sha256": "0"}}},
        {"files": []},
        {"files": {"a.json": 1}},
        {"files": {"a.json": {"size": 1}}},
        {"files": {"state.json": {"size": "1", "sha256": None}}},
        {"finite": None},
        {"step": [1]},
    ],
)
def test_a_manifest_made_up_by_somebody_is_refused(changes: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    path = save(tmp_path, 1)
    reseal(path, **changes)
    assert len(verify(path)) == 1
