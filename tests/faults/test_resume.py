"""Continuing is bit for bit, whatever the model, the precision, the point of an epoch; ranks may change (R5, R6,
R9)."""

import itertools
import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cases import METHODS
from trainer import Trainer, ends, told, wait_until

Tally = Callable[[str, int], None]
PLACES = (1, 7, 11)  # epochs of 5 batches: the first step, the midst of the second epoch, the first of the third
EACH = ("train.eval_every=100", "train.eval_sentences=4", "train.save_every=100", "train.steps=15", "train.tokens=192")
OTHERS = ("chat", "reward", *METHODS)
MATRIX = list(itertools.product(("TRANSFORMER", "RECURRENT"), (1, 2), ("fp32", "bf16")))


def leave(trainer: Trainer, out: Path, *settings: str, after: int, ranks: int = 1, **what: Any) -> None:
    """Trains as far as step `after` of what this training is to be, and then leaves as if asked to."""
    stopped = trainer.run(out, *settings, ranks=ranks, leave=after, **what)
    assert stopped == [128 + signal.SIGTERM] * ranks, told(out)


@pytest.mark.parametrize(
    ("model", "accumulate", "precision", "ranks"),
    [(*row, 1) for row in MATRIX]
    + [pytest.param(*row, 2, marks=[] if row[1] == 1 else pytest.mark.full) for row in MATRIX]
    + [(model, 1, "fp32", 1) for model in OTHERS]
    + [pytest.param(model, 2, "bf16", 1, marks=pytest.mark.full) for model in OTHERS],
)
def test_going_on_is_exact(
    model: str,
    accumulate: int,
    precision: str,
    ranks: int,
    tmp_path: Path,
    trainer: Trainer,
    begun: Path,
    tally: Tally,
    full: bool,
) -> None:
    """A training is left at each of the places in turn; at full volume, one for each of them too."""
    what: dict[str, Any] = {"model": model, "begun": begun}
    settings = (*EACH, f"train.accumulate={accumulate}", f"train.precision={precision}")
    straight = tmp_path / "straight"
    assert trainer.run(straight, *settings, ranks=ranks, **what) == [0] * ranks, told(straight)
    together = PLACES if ranks == 1 or full else PLACES[1:2]
    for places in (together, *((place,) for place in PLACES if full)):
        broken = tmp_path / f"broken-{len(places)}-{places[0]}"
        for place in places:
            leave(trainer, broken, *settings, after=place, ranks=ranks, **what)
        assert trainer.run(broken, *settings, ranks=ranks, **what) == [0] * ranks, told(broken)
        assert ends(broken) == ends(straight)
        tally("R5 continuing, bit for bit", len(places))


def seen(out: Path, ranks: int) -> dict[int, Counter[str]]:
    """How often each sentence was trained on, by epoch, over all ranks."""
    found: dict[int, Counter[str]] = {}
    for rank in range(ranks):
        for words in told(out, rank):
            if words[0] == "seen":
                found.setdefault(words[1], Counter()).update(words[2])
    return found


@pytest.mark.parametrize(
    ("ranks", "stops"),
    [
        ((2, 1, 2), (3, 8)),
        pytest.param((1, 2, 1), (3, 8), marks=pytest.mark.full),
        pytest.param((2, 1, 2), (1, 2), marks=pytest.mark.full),
        pytest.param((1, 2, 1), (4, 6), marks=pytest.mark.full),
        pytest.param((3, 2, 1), (5, 8), marks=pytest.mark.full),
        pytest.param((1, 3, 2), (4, 9), marks=pytest.mark.full),
    ],
)
def test_ranks_may_change(
    ranks: tuple[int, ...], stops: tuple[int, ...], tmp_path: Path, trainer: Trainer, tally: Tally
) -> None:
    settings = (*EACH, "train.precision=fp32", "train.epochs=2", "train.steps=1000")
    alone, out = tmp_path / "alone", tmp_path / "changing"
    assert trainer.run(alone, *settings) == [0]
    for count, stop in zip(ranks, stops, strict=False):
        leave(trainer, out, *settings, after=stop, ranks=count)
    assert trainer.run(out, *settings, ranks=ranks[-1]) == [0] * ranks[-1]
    assert seen(out, max(ranks)) == seen(alone, 1)
    assert set(seen(out, max(ranks))) == {0, 1}
    assert ends(out)["steps"] == ends(alone)["steps"]
    tally("R6 ranks that come and go", 1)


def lost_rank(trainer: Trainer, out: Path, *settings: str, lost: tuple[int, int, int]) -> list[int]:
    """The process ids of a training of two ranks, of which one is `lost`, and which the other waits for."""
    patience = 8 if lost[2] == signal.SIGSTOP else 120  # a rank that has died is missed at once
    for _ in range(5):
        pids = trainer.start(out, *settings, ranks=2, patience=patience, lost=lost)
        wait_until(lambda: ["lost"] in told(out, lost[0]), pids[lost[0]])
        if ["lost"] in told(out, lost[0]):
            return pids
        trainer.wait(pids)  # the machine was stalled for longer than a rank waits
    raise AssertionError(told(out))


@pytest.mark.parametrize("count", [4, pytest.param(30, marks=pytest.mark.full)])
def test_a_rank_that_is_lost_ends_the_others(count: int, tmp_path: Path, trainer: Trainer, tally: Tally) -> None:
    """The rank itself dies or hangs, so that it does so in whatever time the machine takes to come there."""
    settings = (*EACH, "train.save_every=5", "train.steps=40")
    straight = tmp_path / "straight"
    assert trainer.run(straight, *settings, ranks=2) == [0, 0]
    for numbers in zip(range(0, count, 2), range(1, count, 2), strict=True):  # two at a time, as the others wait long
        outs, begun = [tmp_path / f"lost-{number}" for number in numbers], []
        how = (signal.SIGKILL, signal.SIGSTOP)[numbers[0] // 2 % 2]
        for victim, (number, out) in enumerate(zip(numbers, outs, strict=True)):
            begun.append(lost_rank(trainer, out, *settings, lost=(victim, 7 + number % 7, how)))
        for victim, (out, pids) in enumerate(zip(outs, begun, strict=True)):
            (code,) = trainer.wait([pids[1 - victim]])
            assert code == 1
            assert told(out, 1 - victim)[-1][0] == "error"
            assert "another of the processes that train together" in told(out, 1 - victim)[-1][1]
            if how == signal.SIGSTOP:
                os.kill(pids[victim], signal.SIGKILL)
            assert trainer.wait([pids[victim]]) == [-signal.SIGKILL]
            assert trainer.run(out, *settings, ranks=2) == [0, 0], told(out)
            assert ends(out) == ends(straight)
    tally("R9 a process that dies or hangs", count)
