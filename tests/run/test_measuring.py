"""A budget of minutes bounds what measuring costs: how much of the validation data, and how often."""

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from heedful.data.images.boxes import BoxedPart
from heedful.run import measuring
from heedful.run.events import Checkpointed, Measured, Note, Trained
from heedful.run.measuring import SHARE, SMALLEST, TIMES, Affordable, affordable_share
from heedful.store.checkpoint import load_newest
from heedful.tasks.shared.picture_job import PictureJob
from heedful.tasks.shared.text_job import TextJob
from heedful.tasks.translate.train import TranslateJob
from heedful.verbs.train import train
from made import backwards, made_corpus, made_recipe


@pytest.fixture(scope="module")
def corpus():
    return made_corpus(held_out=60)


@dataclass
class Clock:
    """A job whose measurements take so many seconds, and so many more for all of the data."""

    fixed: float
    whole: float
    now: float = 0.0
    valid: object = 1.0
    shares: list[float] = field(default_factory=list)

    def portion(self, valid, share):
        return valid * share

    def measure(self, model):
        self.shares.append(self.valid)
        self.now += self.fixed + self.whole * self.valid


@pytest.mark.parametrize(("fixed", "whole"), [(0, 0.1), (0, 100), (0.5, 60), (0, 2.5), (0.1, 3)])
def test_measurements_fit_in_a_fifth_of_the_time(monkeypatch, fixed, whole):
    job = Clock(fixed, whole)
    monkeypatch.setattr(measuring.time, "perf_counter", lambda: job.now)
    found = affordable_share(job, nn.Identity(), 1.0)
    assert job.valid == 1.0
    assert fixed + whole * found.share <= SHARE * 60 / TIMES + 1e-9
    assert found.spent == job.now <= 2 * SHARE * 60 / TIMES
    assert (found.share == 1) == (fixed + whole <= SHARE * 60 / TIMES)
    assert found.cost >= fixed + whole * found.share - 1e-9


def test_the_smallest_share_is_measured_even_where_it_costs_too_much(monkeypatch):
    job = Clock(0, 1e6)
    monkeypatch.setattr(measuring.time, "perf_counter", lambda: job.now)
    found = affordable_share(job, nn.Identity(), 1.0)
    assert found.share == SMALLEST
    assert job.shares == [SMALLEST]


def events_of(monkeypatch, tmp_path, corpus, cost, **plan):
    """Those of a training that finds half of its validation data affordable at this cost; and how much was measured."""
    sizes = []
    measure = TranslateJob.measure
    monkeypatch.setattr("heedful.run.measuring.affordable_share", lambda *_: Affordable(0.5, cost, 0.0))
    monkeypatch.setattr(TranslateJob, "measure", lambda job, model: sizes.append(len(job.valid)) or measure(job, model))
    recipe = made_recipe(steps=10, minutes=5, eval_sentences=50, save_every="null", **plan)
    return list(train(recipe, tmp_path / "run", corpus=corpus)), sizes


def test_a_training_for_minutes_measures_on_a_share_and_keeps_it_when_it_is_continued(monkeypatch, tmp_path, corpus):
    events, sizes = events_of(monkeypatch, tmp_path, corpus, 1e9, eval_every="null")
    assert sizes == [25]  # the last alone: any before it would have cost too much
    assert [event.step for event in events if isinstance(event, Checkpointed)] == list(range(2, 11))
    told = [event.text for event in events if isinstance(event, Note)]
    assert any("5 minutes of training; measuring on the way, on 50.0% of the validation data" in text for text in told)
    newest = load_newest(tmp_path / "run", lambda line: None)
    assert newest is not None
    assert newest.json("state.json")["progress"]["share"] == 0.5
    monkeypatch.setattr("heedful.run.measuring.affordable_share", None)  # is not asked again
    more = made_recipe(steps=11, minutes=5, eval_sentences=50, save_every="null", eval_every="null")
    assert [e.step for e in train(more, tmp_path / "run", corpus=corpus) if isinstance(e, Measured)] == [11]
    assert sizes == [25, 25]
    often = made_recipe(steps=12, minutes=5, eval_sentences=50, save_every="null", eval_every=1)
    assert [e.step for e in train(often, tmp_path / "run", corpus=corpus) if isinstance(e, Measured)] == [12]
    assert sizes == [25, 25, 25]  # of which the best is chosen


def test_who_says_how_often_to_measure_gets_all_of_it(monkeypatch, tmp_path, corpus):
    events, sizes = events_of(monkeypatch, tmp_path, corpus, 1e9, eval_every=5)
    assert sizes == [50, 50]
    assert sum(isinstance(event, Trained) for event in events) == 10


def test_portions_are_spread_over_the_data_and_keep_together_what_belongs_together():
    pairs = backwards(100, 1)
    some = TranslateJob.portion(None, pairs, 0.2)
    assert len(some) == 20
    assert set(zip(some.source, some.target, strict=True)) <= set(zip(pairs.source, pairs.target, strict=True))
    assert some.source[-1] in pairs.source[90:]
    pixels = torch.arange(40).view(40, 1, 1, 1)
    part = BoxedPart(pixels, [() for _ in range(40)], [f"{i}" for i in range(40)])
    picked = PictureJob.portion(None, part, 0.5)
    assert len(picked) == 20
    assert [int(picked.images[i]) for i in range(20)] == [*map(int, picked.names)] == [*range(0, 40, 2)]
    job = SimpleNamespace()
    assert TextJob.portion(job, ["x" * 50_000], 0.1) == ["x" * 5000]
    assert TextJob.portion(job, ["short", "texts"], 0.1) == ["short", "texts"]
    assert TextJob.portion(job, [f"{i}" for i in range(1000)], 0.1) == [f"{i}" for i in range(0, 1000, 10)]
