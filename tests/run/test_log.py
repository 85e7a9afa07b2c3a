"""What a training tells: its rows, also as TensorBoard gets them."""

import json
import sys
from itertools import accumulate, chain, repeat
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from heedful.data.text.corpus import Corpus
from heedful.errors import MissingError
from heedful.run import curve, log
from heedful.run.events import Trained
from heedful.verbs.train import train
from made import made_recipe


class Board:
    """Keeps what TensorBoard would be told."""

    made: list["Board"] = []  # noqa: RUF012

    def __init__(self, folder: str, purge_step: int) -> None:
        self.folder, self.first = folder, purge_step
        self.rows: list[tuple[str, float, int]] = []
        Board.made.append(self)

    def add_scalar(self, name: str, value: float, step: int) -> None:
        self.rows.append((name, value, step))

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True


def test_tensorboard_gets_every_row_once(tmp_path: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = ModuleType("torch.utils.tensorboard")
    module.SummaryWriter = Board
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    monkeypatch.setattr(log, "find_spec", lambda name: True)
    monkeypatch.setattr("heedful.run.train.LOG_EVERY", 2)
    recipe, out = made_recipe(tensorboard=True), tmp_path / "run"
    for event in train(recipe, out, corpus=corpus):
        if isinstance(event, Trained) and event.step.step == 9:  # after the save at step 8
            break
    for _ in train(recipe, out, corpus=corpus):
        pass
    first, second = Board.made
    assert (first.folder, first.first, second.first) == (str(out / "tensorboard"), 1, 9)
    assert first.closed
    assert second.closed
    told = [row for row in first.rows if row[2] < second.first] + second.rows
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    kept = [(name, value, row["step"]) for row in rows for name, value in row.items() if name not in log.WHEN]
    assert sorted(told) == sorted(kept)


def test_what_is_not_installed_is_said_first(tmp_path: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "find_spec", lambda name: None)
    with pytest.raises(MissingError, match="TensorBoard is not installed"):
        next(train(made_recipe(tensorboard=True), tmp_path / "run", corpus=corpus))
    assert not (tmp_path / "run").exists()


def test_of_how_many_checkpoints_a_mean_is_is_no_score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"step": 2, "valid_loss": 3.0, "bleu": 1.0}, {"step": 2, "valid_loss": 2.9, "bleu": 1.1, "averaged": 5}]
    (tmp_path / "metrics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    drawn: list[list[str]] = []
    monkeypatch.setattr(curve, "curves", lambda rows, *, scores, title: drawn.append(scores))
    monkeypatch.setattr(curve, "to_bytes", lambda figure, kind: b"")
    assert curve.training_curve(tmp_path) == b""
    assert drawn == [["bleu"]]


def test_the_speed_of_steps_that_take_unlike_times_is_of_all_of_them(
    tmp_path: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where answers are made before some steps: the mean of each step's speed would be many times as high."""
    ticks = accumulate(chain.from_iterable(repeat([0.001] * 15 + [10.0])))
    monkeypatch.setattr("heedful.training.loop.time", SimpleNamespace(perf_counter=lambda: next(ticks)))
    events = train(made_recipe(steps=12), tmp_path / "run", corpus=corpus)
    steps = [event for event in events if isinstance(event, Trained)]
    last = steps[-1]
    assert last.rate == pytest.approx(sum(one.step.count for one in steps) / last.step.seconds)


def test_names_in_any_encoding_are_logged(tmp_path: Path) -> None:
    log.Log(tmp_path, step=0, tensorboard=False).note("a\udcff.tsv: 3 pairs\nand more")
    assert (tmp_path / log.NOTES).read_text().splitlines() == ["a\\udcff.tsv: 3 pairs", "and more"]
