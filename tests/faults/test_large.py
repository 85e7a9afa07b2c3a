"""Counts, sizes and steps beyond what 24, 32 or 53 bits hold: a run is saved, left, continued and scored all the same
(R13)."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from heedful.core.config import from_json
from heedful.data.text.corpus import Corpus
from heedful.run.events import Trained
from heedful.run.resume import Progress
from heedful.store.checkpoint import load_newest, save_checkpoint
from heedful.tasks.translate.training.epochs import TranslationTask
from heedful.training.loss import Loss
from heedful.verbs.train import train
from made import made_corpus, made_recipe
from trainer import ends

Tally = Callable[[str, int], None]
PLAN = {"steps": 4, "save_every": 2, "eval_every": 4, "eval_sentences": 4, "precision": "fp32"}


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return made_corpus(120)


def steps(out: Path, corpus: Corpus, **changes: object) -> list[Trained]:
    events = train(made_recipe(**(PLAN | changes)), out, corpus=corpus)
    return [event for event in events if isinstance(event, Trained)]


def interrupted(out: Path, corpus: Corpus, after: int) -> None:
    for event in train(made_recipe(**PLAN), out, corpus=corpus):
        if isinstance(event, Trained) and event.step.step > after:
            return


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory, corpus: Corpus) -> Path:
    out = tmp_path_factory.mktemp("large") / "plain"
    steps(out, corpus)
    return out


@pytest.mark.parametrize("bits", [15, 24, 31, 40])
def test_steps_that_count_very_much(
    bits: int, tmp_path: Path, corpus: Corpus, plain: Path, monkeypatch: pytest.MonkeyPatch, tally: Tally
) -> None:
    """As of large pictures, or of very many tokens: a loss over 2^bits as many things, each of the same loss. All that
    depends on their number is exact in binary, so the weights are those of the plain run, though it is interrupted."""
    loss = TranslationTask.loss

    def many(task: TranslationTask, model: Any, batch: Any) -> Loss:
        made = loss(task, model, batch)
        return Loss(made.total * 2.0**bits, made.count * 2**bits)

    monkeypatch.setattr(TranslationTask, "loss", many)
    out = tmp_path / "run"
    interrupted(out, corpus, after=2)
    (last, *_) = reversed(steps(out, corpus))
    assert last.step.count > 2**bits
    assert {name: digest for name, digest in ends(out).items() if "optimizer" not in name} == {
        name: digest for name, digest in ends(plain).items() if "optimizer" not in name
    }
    tally("R13 large counts, data and steps", 1)


@pytest.mark.parametrize("first", [2**24 + 2, 2**31 + 2, 2**53 + 2])
def test_runs_of_very_many_steps_and_tokens(
    first: int, tmp_path: Path, corpus: Corpus, plain: Path, tally: Tally
) -> None:
    """The plain run's last checkpoint, as that of a training which has gone as far."""
    out, warnings = tmp_path / "run", list[str]()
    interrupted_at(out, corpus, first)
    found = load_newest(out, warnings.append)
    assert warnings == []
    assert found is not None
    assert found.step == first
    made = steps(out, corpus, steps=first + 2, warmup=2)
    assert [event.step.step for event in made] == [first + 1, first + 2]
    again = load_newest(out, warnings.append)
    assert again is not None
    assert again.json("state.json")["position"]["tokens"] > 2**60
    tally("R13 large counts, data and steps", 1)


def interrupted_at(out: Path, corpus: Corpus, step: int) -> None:
    """A run whose newest checkpoint says that it is of this step, after 2^60 tokens."""
    for event in train(made_recipe(**(PLAN | {"steps": step + 2, "warmup": 2})), out, corpus=corpus):
        if isinstance(event, Trained) and event.step.step > 2:
            break
    found = load_newest(out, lambda line: None)
    assert found is not None
    contents: dict[str, Any] = {
        name: found.tensors(name) if name.endswith(".safetensors") else found.json(name)
        for name in found.manifest["files"]
    }
    state = contents["state.json"]
    state["position"] |= {"step": step, "tokens": 2**60}
    state["progress"] |= {"saved": step, "count": 2**60}
    save_checkpoint(out, step, contents, finite=True, facts={})


@pytest.mark.parametrize("count", [2**24, 2**24 + 1, 2**31, 2**53 + 1, 2**62])
def test_what_was_counted_is_read_as_it_was_written(count: int, tally: Tally) -> None:
    progress = replace(Progress(), count=count, measured=count, saved=count)
    assert from_json(Progress, json.loads(json.dumps(vars(progress))), largest=None) == progress
    tally("R13 large counts, data and steps", 1)
