"""Trainings whose state the ranks hold in pieces: continued on other numbers of ranks, killed, and damaged (R6, R9)."""

import errno
import json
import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch

from heedful.errors import RankError, StorageError
from heedful.store import files
from heedful.store.checkpoint import Part, clean, load_newest, save_checkpoint, verify
from heedful.training.ranks import Ranks
from together import on_ranks
from trainer import Trainer, ends, told, wait_until

Tally = Callable[[str, int], None]
EACH = ("train.eval_every=6", "train.eval_sentences=4", "train.save_every=3", "train.steps=12", "train.tokens=192")
SHARDS = ("none", "optimizer", "model")


def losses(out: Path) -> list[float]:
    return [row["valid_loss"] for row in json.loads(ends(out)["metrics"]) if "valid_loss" in row]


def saved(out: Path) -> int:
    """The last step of which a rank has said that it is saved."""
    return max((words[1] for words in told(out) if words[0] == "saved"), default=0)


def parts(out: Path) -> set[str]:
    """The files of the weights in all checkpoints."""
    return {path.name for path in (out / "checkpoints").glob("step-*/weights*")}


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("shard", SHARDS)
def test_begun_on_four_continued_on_two_and_on_one(
    shard: str, precision: str, tmp_path: Path, trainer: Trainer, tally: Tally
) -> None:
    """As if it had never been left: to the last bit, or with the weights in pieces within what rounding does."""
    settings = [*EACH, f"train.precision={precision}", "train.accumulate=2"]
    exact = [] if shard == "model" else ["train.exact=true"]
    straight, out = tmp_path / "straight", tmp_path / "out"
    assert trainer.run(straight, *settings, *exact) == [0], told(straight)
    for ranks, leave in ((4, 4), (2, 8)):
        stopped = trainer.run(out, *settings, *exact, f"train.shard={shard}", ranks=ranks, leave=leave)
        assert stopped == [128 + signal.SIGTERM] * ranks, told(out)
        name = "weights.safetensors" if shard == "none" else f"weights-{ranks}-of-{ranks}.safetensors"
        assert name in parts(out)
    assert trainer.run(out, *settings, *exact, f"train.shard={shard}") == [0], told(out)
    if shard == "model":
        assert losses(out) == pytest.approx(losses(straight), rel=1e-5 if precision == "fp32" else 1e-2)
        assert len(losses(out)) == 2
    else:
        assert ends(out) == ends(straight)
    tally("R6 ranks that come and go", 1)


def test_a_training_on_one_may_continue_in_pieces(tmp_path: Path, trainer: Trainer) -> None:
    """Also one that was begun before there were any: its checkpoint says nothing of shares."""
    straight, out = tmp_path / "straight", tmp_path / "out"
    settings = [*EACH, "train.precision=fp32"]
    assert trainer.run(straight, *settings) == [0]
    trainer.run(out, *settings, leave=5)
    assert trainer.run(out, *settings, "train.shard=optimizer", ranks=2) == [0, 0], told(out)
    assert losses(out) == pytest.approx(losses(straight), rel=1e-5)


@pytest.mark.parametrize(
    ("shard", "kills"),
    [("optimizer", 10), ("model", 6), *(pytest.param(each, 100, marks=pytest.mark.full) for each in SHARDS[1:])],
)
def test_killed_while_all_ranks_save(shard: str, kills: int, tmp_path: Path, trainer: Trainer, tally: Tally) -> None:
    """Whichever rank dies, whenever: what was saved is whole, and the end is what it would have been."""
    settings = [*EACH, "train.precision=fp32", f"train.shard={shard}", "train.save_every=1", "train.steps=60"]
    straight = tmp_path / "straight"
    assert trainer.run(straight, *settings, ranks=2) == [0, 0], told(straight)
    chance, done, out = random.Random(kills), 0, tmp_path / "killed"
    while True:
        pids = trainer.start(out, *settings, ranks=2, patience=60)
        if done < kills:
            before = saved(out)
            wait_until(lambda before=before: saved(out) > before, pids[0])  # it is training, and saves at each step
            time.sleep(chance.uniform(0.0, 0.1))
            os.kill(pids[done % 2], signal.SIGKILL)
            done += 1
        ended = trainer.wait(pids)
        warnings: list[str] = []
        newest = load_newest(out, warnings.append)
        assert warnings == []
        assert (newest.step if newest else 0) >= saved(out)
        if ended == [0, 0]:
            break
    assert [words for words in told(out) if words[0] == "bug"] == []
    assert ends(out) == ends(straight)
    tally("R1 kill -9 while ranks save together", done)


class Struck(files.Disk):
    """At operation number `at` of a rank, it strikes."""

    def __init__(self, at: int, strike: Callable[[], None]) -> None:
        self.at, self.strike, self.done = at, strike, 0
        for name in (name for name in vars(files.Disk) if not name.startswith("_")):
            setattr(self, name, partial(self._carry_out, getattr(self, name)))

    def _carry_out(self, operation: Callable[..., Any], *arguments: Any) -> Any:
        self.done += 1
        if self.done == self.at:
            self.strike()
        return operation(*arguments)


def save_part(run: Path, step: int, ranks: Ranks) -> None:
    rows = torch.full((2, 3), float(10 * step + ranks.rank))
    part = Part({"a.weight": rows, "a.weight/step": torch.tensor(float(step))}, {"a.weight": 2 * ranks.rank})
    contents: dict[str, Any] = {f"weights-{ranks.rank + 1}-of-{ranks.size}.safetensors": part}
    contents |= {"state.json": {"step": step}} if ranks.first else {}
    save_checkpoint(run, step, contents, finite=True, facts={"world_size": ranks.size}, writers=ranks)


def need_whole(run: Path, steps: set[int]) -> int:
    """The step of the newest checkpoint, of which all parts are of this step."""
    warnings: list[str] = []
    found = load_newest(run, warnings.append)
    assert warnings == []
    assert found is not None
    assert found.step in steps
    weight = found.tensors("weights.safetensors")["a.weight"]
    assert weight[:, 0].tolist() == [10.0 * found.step + rank for rank in (0, 0, 1, 1)]
    return found.step


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fail() -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("victim", [0, 1])
@pytest.mark.parametrize("strike", [kill, fail])
def test_each_operation_of_a_save_in_parts(
    strike: Callable[[], None], victim: int, tmp_path: Path, tally: Tally, full: bool
) -> None:
    """A rank dies, or its disk is full, at each operation in turn: the checkpoint before or this one is there, and the
    next save works."""
    on_ranks(tmp_path, 2, lambda ranks: save_part(tmp_path / "run", 1, ranks))
    assert need_whole(tmp_path / "run", {1}) == 1
    for at in count(1, 1 if full else 3):
        run = tmp_path / str(at)
        shutil.copytree(tmp_path / "run", run)

        def work(ranks: Ranks, at: int = at, run: Path = run) -> str:
            files.disk = disk = Struck(at if ranks.rank == victim else 0, strike)
            try:
                save_part(run, 2, ranks)
            except StorageError as error:
                return error.what
            except RankError:
                return "lost"
            return "reached" if disk.done >= at else "saved"

        said = on_ranks(tmp_path, 2, work)
        if said[victim] == "saved":
            break
        if strike is fail and said[victim] != "reached":  # closing a file that is written, or cleaning up, may fail
            assert "disk full" in said[0]
            assert said[0] == said[1]
        need_whole(run, {1, 2})
        clean(run)
        assert {path.name for path in (run / "checkpoints").iterdir()} <= {"step-1", "step-2"}
        on_ranks(tmp_path, 2, lambda ranks, run=run: save_part(run, 3, ranks))
        assert need_whole(run, {3}) == 3
    assert at > 6
    tally("R1 each operation of a save in parts", at // (1 if full else 3))


def test_a_changed_byte_in_any_part_is_noticed(tmp_path: Path, trainer: Trainer, tally: Tally) -> None:
    """The training continues from the checkpoint before, and comes to the same end."""
    settings = [*EACH, "train.precision=fp32", "train.shard=optimizer"]
    straight, out = tmp_path / "straight", tmp_path / "out"
    assert trainer.run(straight, *settings, ranks=2) == [0, 0]
    trainer.run(out, *settings, ranks=2, leave=8)
    newest = out / "checkpoints" / "step-8"
    chance, written = random.Random(1), sorted(newest.iterdir())
    assert len(written) == 2 * 3 + 2
    for path in written:
        before = path.read_bytes()
        at = chance.randrange(len(before))
        path.write_bytes(before[:at] + bytes([before[at] ^ 1]) + before[at + 1 :])
        assert len(verify(newest)) == 1, path
        path.write_bytes(before)
    assert not verify(newest)
    (newest / "optimizer-2-of-2.safetensors").write_bytes(b"")
    assert trainer.run(out, *settings, ranks=2) == [0, 0], told(out)
    assert any("damaged, left out (optimizer-2-of-2" in words[1] for words in told(out) if words[0] == "note")
    assert ends(out) == ends(straight)
    tally("R3 changed bytes in parts", len(written))


@pytest.mark.full
def test_more_than_a_rank_may_take(tmp_path: Path, trainer: Trainer) -> None:
    """Four ranks train, save and continue with a model that one rank has too little memory for (RLIMIT_AS)."""
    settings = [*EACH[1:], "train.eval_every=100", "train.save_every=100", "train.row=16", "train.tokens=64"]
    settings += ["train.precision=fp32"]
    limited: dict[str, Any] = {"model": "DEEP", "memory": 750}
    assert trainer.run(tmp_path / "alone", *settings, **limited) == [99]
    assert "can't allocate memory" in told(tmp_path / "alone")[-1][1]
    out = tmp_path / "out"
    for leave in (2, 4):
        stopped = trainer.run(out, *settings, "train.shard=model", ranks=4, leave=leave, **limited)
        assert stopped == [128 + signal.SIGTERM] * 4, told(out)
    assert ["note", "continuing from step 2"] in told(out)
    assert not verify(out / "checkpoints" / "step-4")
