"""Numbers that are not finite, disks that are full or fail: caught in time, and nothing good is lost (R2, R3, R7)."""

import errno
import math
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from cases import METHODS
from disks import Faulty, Killed
from heedful.data.text.corpus import Corpus
from heedful.errors import NonFiniteError, StorageError
from heedful.run.events import Checkpointed, Finished, Note, Trained
from heedful.store import files
from heedful.store.checkpoint import load_newest
from heedful.training.loop import CachingTask
from heedful.training.loss import Loss
from heedful.training.optim import Optimizer
from heedful.verbs.train import train
from made import made_corpus, made_recipe
from trainer import ends, training

Tally = Callable[[str, int], None]
STEPS = {"steps": 12, "save_every": 3, "eval_every": 12, "eval_sentences": 4, "tokens": 192, "precision": "fp32"}


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return made_corpus(150, 4)


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory, corpus: Corpus) -> Path:
    out = tmp_path_factory.mktemp("straight") / "run"
    assert [*train(made_recipe(**STEPS), out, corpus=corpus)]
    return out


def never(line: str) -> None:
    raise AssertionError(line)


def newest(out: Path) -> int:
    """The step of the newest checkpoint, which must be whole and finite, as all later ones."""
    found, good = load_newest(out, never), load_newest(out, never, finite=True)
    assert found == good
    return found.step if found else 0


def last_saved(events: list[Any]) -> int:
    return max((event.step for event in events if isinstance(event, Checkpointed)), default=0)


def follow(out: Path, corpus: Any, seen: list[Any], recipe: Any = None, **changes: object) -> list[Any]:
    """Trains, and puts each event into `seen` as it comes."""
    for event in train(recipe or made_recipe(**(STEPS | changes)), out, corpus=corpus):
        seen.append(event)
    return seen


def poison(monkeypatch: pytest.MonkeyPatch, kind: str, bad: float, at: int) -> None:
    """Makes step `at` go wrong: a weight before it, its loss, or a gradient in the midst of going back."""
    plain, calls = CachingTask.loss, iter(range(1, 1000))

    def loss(task: CachingTask, model: Any, batch: Any) -> Loss:
        if next(calls) != at:
            return plain(task, model, batch)
        if kind == "weight":
            with torch.no_grad():
                [own for own in model.parameters() if own.dim() > 1][-1][-1, -1] = bad
        made = plain(task, model, batch)
        if kind == "loss":
            return Loss(made.total * bad, made.count)
        if kind == "gradient":
            made.total.register_hook(lambda gradient: gradient * bad)
        return made

    monkeypatch.setattr(CachingTask, "loss", loss)


KINDS = [(kind, bad) for kind in ("weight", "loss", "gradient") for bad in (math.nan, math.inf)]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, begun: Path) -> Callable[[str], tuple[Path, Any, Any]]:
    """A training to its end, its recipe and its data, by the name of the training."""
    folder = tmp_path_factory.mktemp("undisturbed")

    @cache
    def made(name: str) -> tuple[Path, Any, Any]:
        recipe, corpus = training(name, begun, *(f"train.{key}={value}" for key, value in STEPS.items()))
        assert [*train(recipe, folder / name, corpus=corpus)]
        return folder / name, recipe, corpus

    return made


@pytest.mark.parametrize(
    ("name", "at", "kind", "bad"),
    [("TRANSFORMER", at, *row) for at in (2, 5, 7, 12) for row in KINDS]
    + [(name, 5, kind, math.nan) for name in ("chat", "reward", *METHODS) for kind in ("weight", "loss", "gradient")],
)
def test_it_is_caught_in_its_step(
    name: str,
    at: int,
    kind: str,
    bad: float,
    tmp_path: Path,
    undisturbed: Callable[[str], tuple[Path, Any, Any]],
    monkeypatch: pytest.MonkeyPatch,
    tally: Tally,
) -> None:
    out, (straight, recipe, corpus) = tmp_path / "run", undisturbed(name)
    with monkeypatch.context() as patch:
        poison(patch, kind, bad, at)
        events: list[Any] = []
        with pytest.raises(NonFiniteError, match=f"^step {at}: ") as caught:
            follow(out, corpus, events, recipe)
    assert caught.value.exit_code == 5
    assert [event.step.step for event in events if isinstance(event, Trained)] == list(range(1, at))
    assert newest(out) == (at - 1) // 3 * 3
    assert [*train(recipe, out, corpus=corpus)]
    assert ends(out) == ends(straight)
    tally("R7 NaN and infinity", 1)


@pytest.mark.parametrize("policy", ["skip", "rollback"])
@pytest.mark.parametrize("kind", ["loss", "gradient", "weight"])
def test_a_step_can_be_left_out(
    policy: str, kind: str, tmp_path: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch, tally: Tally
) -> None:
    poison(monkeypatch, kind, math.nan, 8)
    events: list[Any] = []
    if (policy, kind) == ("skip", "weight"):  # a broken weight stays broken, whichever batch is left out
        with pytest.raises(NonFiniteError, match="step 8"):
            follow(tmp_path / "run", corpus, events, non_finite=policy)
        return
    follow(tmp_path / "run", corpus, events, non_finite=policy)
    notes = [event.text for event in events if isinstance(event, Note) and event.text.startswith("step 8: ")]
    assert len(notes) == 1
    assert notes[0].endswith("left out")
    steps = [event.step.step for event in events if isinstance(event, Trained)]
    assert steps == [*range(1, 8), *range(7 if policy == "rollback" else 8, 13)]
    found = load_newest(tmp_path / "run", never)
    assert found is not None
    assert found.step == 12
    assert found.manifest["finite"]
    assert isinstance(events[-1], Finished)
    tally("R7 NaN and infinity", 1)


def test_a_checkpoint_of_broken_weights_is_never_gone_on_from(
    tmp_path: Path, corpus: Corpus, straight: Path, monkeypatch: pytest.MonkeyPatch, tally: Tally
) -> None:
    """The weights break in the optimizer's step itself, right before a save; the next step sees it."""
    out = tmp_path / "run"
    plain, calls = Optimizer.step, iter(range(1, 100))

    def step(optimizer: Optimizer, share: float, norm: float, count: int) -> None:
        plain(optimizer, share, norm, count)
        if next(calls) == 6:
            with torch.no_grad():
                for tensor in (optimizer.masters[0], optimizer.params[0]):
                    tensor.flatten()[0] = math.nan

    with monkeypatch.context() as patch:
        patch.setattr(Optimizer, "step", step)
        with pytest.raises(NonFiniteError, match=r"^step 7: "):
            follow(out, corpus, [])
    newest, good = load_newest(out, never), load_newest(out, never, finite=True)
    assert newest is not None
    assert good is not None
    assert (newest.step, newest.manifest["finite"], good.step) == (6, False, 3)
    notes = [event.text for event in train(made_recipe(**STEPS), out, corpus=corpus) if isinstance(event, Note)]
    assert any("step-6: weights that are not finite, left out" in note for note in notes)
    assert "continuing from step 3" in notes
    assert ends(out) == ends(straight)
    tally("R7 NaN and infinity", 1)


class Small(files.Disk):
    """A disk of `capacity` bytes, all of which the folder `root` may take."""

    def __init__(self, root: Path, capacity: int) -> None:
        self.root, self.capacity = root, capacity

    def write(self, descriptor: int, data: files.Bytes) -> int:
        held = sum(path.stat().st_size for path in self.root.rglob("*") if path.is_file())
        room = self.capacity - held
        if room <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(descriptor, data[:room])


@pytest.mark.parametrize("share", [n / 12 for n in range(12)])
def test_a_full_disk_stops_it_and_room_lets_it_go_on(
    share: float, tmp_path: Path, corpus: Corpus, straight: Path, monkeypatch: pytest.MonkeyPatch, tally: Tally
) -> None:
    whole = sum(path.stat().st_size for path in straight.rglob("*") if path.is_file())
    out = tmp_path / "run"
    events: list[Any] = []
    with monkeypatch.context() as patch:
        patch.setattr(files, "disk", Small(tmp_path, int(share * whole)))
        with pytest.raises(StorageError, match="disk full") as caught:
            follow(out, corpus, events)
    assert caught.value.exit_code == 4
    assert "free " in caught.value.fix
    assert newest(out) >= last_saved(events)
    assert [*train(made_recipe(**STEPS), out, corpus=corpus)]
    assert ends(out) == ends(straight)
    tally("R3 full disks", 1)


def test_a_disk_too_small_is_refused_before_the_first_step(
    tmp_path: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=1_000_000))
    with pytest.raises(StorageError, match=r"MB will be needed here, 1 MB are free"):
        next(train(made_recipe(**STEPS), tmp_path / "run", corpus=corpus))


def places(count: int, every: int) -> Iterator[tuple[str, bool, int]]:
    for first, kind in enumerate(("ENOSPC", "EIO", "EACCES", "torn", "kill")):
        for at in range(1 + (7 * first) % every, count + 1, every):
            yield kind, at % 2 == 0, at


@pytest.mark.parametrize("every", [60, pytest.param(5, marks=pytest.mark.full)])
def test_whichever_operation_fails_the_training_goes_on(
    every: int, tmp_path: Path, corpus: Corpus, straight: Path, monkeypatch: pytest.MonkeyPatch, tally: Tally
) -> None:
    def attempt(out: Path, disk: Faulty) -> list[Any]:
        events: list[Any] = []
        with monkeypatch.context() as patch, suppress(StorageError, Killed):
            patch.setattr(files, "disk", disk)
            follow(out, corpus, events)
        return events

    counting = Faulty()
    attempt(tmp_path / "counting", counting)
    faults = 0
    for kind, for_good, at in places(counting.count, every):
        out = tmp_path / f"{kind}-{at}"
        events = attempt(out, Faulty(kind, at, for_good=for_good))
        assert newest(out) >= last_saved(events)
        assert [*train(made_recipe(**STEPS), out, corpus=corpus)]
        assert ends(out) == ends(straight)
        shutil.rmtree(out)
        faults += 1
    tally("R2 the N-th file operation fails, while training", faults)
