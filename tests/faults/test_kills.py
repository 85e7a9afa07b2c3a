"""kill -9 at random times: nothing that was called saved is lost, and the end is what it would have been (R1, R8)."""

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cases import METHODS
from heedful.store.checkpoint import load_newest, verify
from trainer import Trainer, ends, state_of, told, wait_until

OFTEN = ("train.save_every=5", "train.eval_every=20", "train.eval_sentences=4", "train.tokens=128", "train.steps=60")
OTHERS = ("chat", "reward", *METHODS)
MODELS = ("TRANSFORMER", *OTHERS)
Tally = Callable[[str, int], None]


def newest(out: Path) -> int:
    """The step of the newest checkpoint, of which none may be damaged."""
    warnings: list[str] = []
    found = load_newest(out, warnings.append)
    assert warnings == []
    return found.step if found is not None else 0


def steps_told(out: Path) -> int:
    return sum(words[0] == "step" for words in told(out))


@pytest.mark.parametrize(
    ("model", "kills"),
    [("TRANSFORMER", 40), *((name, 4) for name in OTHERS)]
    + [pytest.param(name, 400 if name == "TRANSFORMER" else 40, marks=pytest.mark.full) for name in MODELS],
)
def test_killed_again_and_again(
    model: str, kills: int, tmp_path: Path, trainer: Trainer, begun: Path, tally: Tally
) -> None:
    undisturbed = tmp_path / "undisturbed"
    assert trainer.run(undisturbed, *OFTEN, model=model, begun=begun) == [0]
    chance = random.Random(kills)
    done = finished = 0
    while done < kills:
        out = tmp_path / f"killed-{finished}"
        while True:
            pids = trainer.start(out, *OFTEN, model=model, begun=begun)
            if done < kills:
                time.sleep(chance.uniform(0.03, 0.25))
                os.kill(pids[0], signal.SIGKILL)
            if trainer.wait(pids) != [-signal.SIGKILL]:
                break
            done += 1
            saved = [words[1] for words in told(out) if words[0] == "saved"]
            assert newest(out) >= max(saved, default=0)
        assert [words for words in told(out) if words[0] in ("bug", "error")] == []
        assert ends(out) == ends(undisturbed)
        finished += 1
    tally("R1 kill -9 while training", done)


@pytest.mark.parametrize("count", [9, pytest.param(54, marks=pytest.mark.full)])
def test_a_signal_saves_and_leaves(count: int, tmp_path: Path, trainer: Trainer, tally: Tally) -> None:
    settings = (*OFTEN[1:], "train.save_every=1000")
    undisturbed = tmp_path / "undisturbed"
    assert trainer.run(undisturbed, *settings) == [0]
    chance = random.Random(count)
    done = finished = 0
    while done < count:
        out = tmp_path / f"asked-{finished}"
        code = -1
        while code:
            number = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)[done % 3]
            before = steps_told(out)
            pids = trainer.start(out, *settings)
            wait_until(lambda before=before, out=out: steps_told(out) > before, pids[0])
            time.sleep(chance.uniform(0.0, 0.2))
            os.kill(pids[0], signal.SIGSTOP)
            wait_until(lambda pid=pids[0]: state_of(pid) == "T", pids[0])
            made = steps_told(out)
            os.kill(pids[0], number)
            os.kill(pids[0], signal.SIGCONT)
            (code,) = trainer.wait(pids)
            if code == 0:
                break
            assert code == 128 + number, told(out)[-1]
            assert steps_told(out) <= made + 2  # the one that it is at is not told yet
            last = [words[1] for words in told(out) if words[0] == "step"][-1]
            assert newest(out) == last
            assert not verify(out / "checkpoints" / f"step-{last}")
            assert told(out)[-1][0] == "error"
            assert f"{signal.Signals(number).name}: saved at step {last}" in told(out)[-1][1]
            done += 1
        assert [words for words in told(out) if words[0] == "bug"] == []
        assert ends(out) == ends(undisturbed)
        finished += 1
    tally("R8 signals", done)
