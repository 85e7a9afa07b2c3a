"""Trainings whose state the ranks hold in pieces: continued on other numbers of ranks, killed, and damaged (R6, R9)."""

import json
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from heedful.store.checkpoint import load_newest, verify
from trainer import Trainer, ends, told

Tally = Callable[[str, int], None]
EACH = ("train.eval_every=6", "train.eval_sentences=4", "train.save_every=3", "train.steps=12", "train.tokens=192")
SHARDS = ("none", "optimizer", "model")


def losses(out: Path) -> list[float]:
    return [row["valid_loss"] for row in json.loads(ends(out)["metrics"]) if "valid_loss" in row]


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
    settings = [*EACH, "train.precision=fp32", f"train.shard={shard}", "train.save_every=1", "train.steps=40"]
    straight = tmp_path / "straight"
    assert trainer.run(straight, *settings, ranks=2) == [0, 0], told(straight)
    chance, done, out = random.Random(kills), 0, tmp_path / "killed"
    while True:
        pids = trainer.start(out, *settings, ranks=2, patience=60)
        if done < kills:
            time.sleep(chance.uniform(0.4, 1.2))
            os.kill(pids[done % 2], signal.SIGKILL)
            done += 1
        ended = trainer.wait(pids)
        warnings: list[str] = []
        newest = load_newest(out, warnings.append)
        assert warnings == []
        assert (newest.step if newest else 0) >= max(
            (words[1] for words in told(out) if words[0] == "saved"), default=0
        )
        if ended == [0, 0]:
            break
    assert [words for words in told(out) if words[0] == "bug"] == []
    assert ends(out) == ends(straight)
    tally("R1 kill -9 while ranks save together", done)


def test_a_changed_byte_in_any_part_is_noticed(tmp_path: Path, trainer: Trainer, tally: Tally) -> None:
    """The training continues from the checkpoint before, and comes to the same end."""
    settings = [*EACH, "train.precision=fp32", "train.shard=optimizer"]
    straight, out = tmp_path / "straight", tmp_path / "out"
    assert trainer.run(straight, *settings, ranks=2) == [0, 0]
    trainer.run(out, *settings, ranks=2, leave=8)
    newest = out / "checkpoints" / "step-8"
    chance, files = random.Random(1), sorted(newest.iterdir())
    assert len(files) == 2 * 3 + 2
    for path in files:
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
    tally("R3 changed bytes in parts", len(files))
