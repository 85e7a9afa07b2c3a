"""A budget of minutes bounds what measuring costs: how much of the validation data, and how often."""

from dataclasses import dataclass, field, replace
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


ROOM = SHARE * 60 / TIMES  # seconds of a measurement in a training of a minute


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
    found = affordable_share(job, nn.Identity(), ROOM)
    assert job.valid == 1.0
    assert fixed + whole * found.share <= ROOM + 1e-9
    assert found.spent == job.now <= 2 * ROOM
    assert (found.share == 1) == (fixed + whole <= ROOM)
    assert found.cost >= fixed + whole * found.share - 1e-9


def test_the_smallest_share_is_measured_even_where_it_costs_too_much(monkeypatch):
    job = Clock(0, 1e6)
    monkeypatch.setattr(measuring.time, "perf_counter", lambda: job.now)
    found = affordable_share(job, nn.Identity(), ROOM)
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


def scored_pairs(run):
    """How many pairs the card says that a run was scored on."""
    (row,) = [line for line in (run / "README.md").read_text().splitlines() if line.startswith("| valid |")]
    return int(row.split("|")[2])


def test_a_training_for_minutes_measures_on_a_share_and_keeps_it_when_it_is_continued(monkeypatch, tmp_path, corpus):
    events, sizes = events_of(monkeypatch, tmp_path, corpus, 1e9, eval_every="null")
    assert sizes == [25]  # the last alone: any before it would have cost too much
    assert [event.step for event in events if isinstance(event, Checkpointed)] == list(range(2, 11))
    told = [event.text for event in events if isinstance(event, Note)]
    assert any(
        "5 minutes, and at most a fifth more to measure, on 50 % of the validation data" in text for text in told
    )
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


def test_a_training_for_steps_measures_on_a_share_too(monkeypatch, tmp_path, corpus):
    """Of a length that is known at the first measurement; the share is told, kept, and scored on at the end where there
    is no test set. A training whose whole validation data is quickly measured measures on all of it, whenever it is
    due, and says nothing."""
    rooms, sizes, measure = [], [], TranslateJob.measure

    def share(job, model, room):
        rooms.append(room)
        return Affordable(chosen, 0.0, 0.0)

    def run(name, steps, **plan):
        events = []
        for event in train(
            made_recipe(steps=steps, eval_sentences=50, eval_every="null", **plan), tmp_path / name, corpus=own
        ):
            events.append(event)
        return events

    monkeypatch.setattr("heedful.run.measuring.affordable_share", share)
    monkeypatch.setattr("heedful.run.train.QUICK", 0.0)
    monkeypatch.setattr(measuring, "time", SimpleNamespace(perf_counter=lambda: 0.0))  # to measure takes no time
    monkeypatch.setattr(TranslateJob, "measure", lambda job, model: sizes.append(len(job.valid)) or measure(job, model))
    own, chosen = replace(corpus, tests={}), 0.5
    for name, plan in (("steps", {"steps": 10}), ("epochs", {"steps": "null", "epochs": 1})):
        events = run(name, **plan)
        steps = [event.step for event in events if isinstance(event, Measured)]
        assert sizes == [25] * len(steps)
        assert len(steps) >= 4
        (told,) = [
            n for n, event in enumerate(events) if isinstance(event, Note) and "on 50 % of the val" in event.text
        ]
        assert isinstance(events[told + 1], Measured)
        assert scored_pairs(tmp_path / name) == 30  # of 60
        sizes.clear()
    first, second = (event.step for event in events if isinstance(event, Trained) and event.step.step < 3)
    assert second.progress >= 0.1  # when it is first measured
    assert len(rooms) == 2
    assert rooms[1] == pytest.approx(SHARE * first.seconds / second.progress / measuring.TEN_TIMES)
    assert any("on 50 % of the validation data" in event.text for event in run("steps", 11) if isinstance(event, Note))
    assert (len(rooms), sizes) == (2, [25])
    own, chosen = corpus, 1.0
    sizes.clear()
    events = run("all", 10)
    assert sizes == [50] * 9
    assert not any("of the validation data" in event.text for event in events if isinstance(event, Note))


def test_what_costs_too_much_is_measured_once_and_at_the_end(monkeypatch, tmp_path, corpus):
    """Even on the smallest share."""
    monkeypatch.setattr("heedful.run.measuring.affordable_share", lambda *_: Affordable(SMALLEST, 1e9, 1e9))
    monkeypatch.setattr("heedful.run.train.QUICK", 0.0)
    recipe = made_recipe(steps=10, eval_every="null")
    measured = [event.step for event in train(recipe, tmp_path / "run", corpus=corpus) if isinstance(event, Measured)]
    assert measured == [2, 10]


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
