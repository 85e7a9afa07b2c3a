"""Prepared conversations: what is held out, and the batches, are those of the same conversations in memory, and the
folder is the same whoever prepared it and whatever ended that before."""

import gzip
import json
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from disks import same_folder_whatever_stops
from heedful.data import large, stored
from heedful.data.stored import StoredAnswers
from heedful.errors import InputError
from heedful.models import make_model
from heedful.run import begin
from heedful.run.events import Note
from heedful.run.prepared import WorkPart, is_prepared
from heedful.run.recipe import override
from heedful.store import files
from heedful.tasks import TASKS
from heedful.tasks.chat import prepared as preparing
from heedful.tasks.chat.train import ChatJob
from heedful.tasks.recipes import build
from heedful.tasks.shared.preparing.opened import open_texts
from heedful.verbs.data import prepare_data
from heedful.verbs.train import train
from made import finished, goes_on_alike

SMALL = {"d_model": 32, "n_heads": 2, "kv_heads": 2, "n_layers": 1, "d_ff": 64, "context_length": 40}
WORDS = ["red", "blue", "green", "black", "white", "brown", "pink", "grey"]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several shards, written in several parts."""
    monkeypatch.setattr(preparing, "SHARD", 20)
    monkeypatch.setattr(preparing, "AT_ONCE", 7)
    monkeypatch.setattr(preparing, "SAMPLED", 900)
    monkeypatch.setattr(large, "LARGE", 1)


def rows() -> list[dict[str, Any]]:
    """Questions of which some come again, conversations of several turns, and some that are too long or left out."""
    draw = random.Random(3)
    made: list[dict[str, Any]] = []
    for number in range(90):
        turns = []
        for turn in range(draw.choice([1, 1, 2, 3])):
            asked = f"say {draw.choice(WORDS)} {turn or number % 70}"
            turns += [{"role": "user", "content": asked}, {"role": "assistant", "content": draw.choice(WORDS)}]
        made.append({"messages": turns})
    made[5]["messages"][1]["content"] = "a long answer " * 20
    made[9]["messages"] = made[9]["messages"][:1]
    made[11]["messages"].insert(0, {"role": "system", "content": "Be kind."})
    return made


def written(name: str, folder: Path) -> Path:
    path, lines = folder / name, [json.dumps(row) for row in rows()]
    match name:
        case "talks.jsonl":
            path.write_text("\n".join(lines))
        case "talks.jsonl.gz":
            path.write_bytes(gzip.compress("\n".join(lines).encode()))
        case "talks.json":
            path.write_text(json.dumps(rows()))
        case "talks.tsv":
            path.write_text("".join(f"say {word} {n}\t{word}\n" for word in WORDS for n in range(9)))
        case "parts":
            path.mkdir()
            (path / "train.jsonl").write_text("\n".join(lines[:60]))
            (path / "valid.jsonl").write_text("\n".join(lines[60:75]))
            (path / "test.jsonl").write_text("\n".join(lines[75:]))
    return path


LAYOUTS = ["talks.jsonl", "talks.jsonl.gz", "talks.json", "talks.tsv", "parts"]


def recipe_for(path: object, *settings: str) -> Any:
    plan = {"steps": 12, "save_every": 4, "eval_every": 6, "tokens": 200}
    base = {"task": "chat", "data": {"path": str(path), "vocab_size": 300}, "train": plan}
    return override(build(base | {"preset": "llama-nano", "model": SMALL}, where="test"), settings)


def prepared(path: Path, out: Path, *settings: str, **how: Any) -> Path:
    prepare_data(recipe_for(path, *settings), out, {}, {}, **how)
    return out


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_it_is_what_is_read_into_memory(layout: str, tmp_path: Path) -> None:
    path = written(layout, tmp_path)
    job, other = (ChatJob(recipe_for(each)) for each in (prepared(path, tmp_path / "data"), path))
    assert isinstance(job.texts, StoredAnswers)
    assert [*job.texts] == other.texts
    assert job.corpus.valid == other.corpus.valid
    assert job.corpus.tests == other.corpus.tests
    assert sorted(job.notes) == sorted(other.notes)
    assert job.tokenizer_hash == other.tokenizer_hash
    assert job.describe() == other.describe()
    assert job.chance() == pytest.approx(other.chance())
    model: Any = make_model(job.config)
    for epoch in (0, 1):
        found, wanted = job.task(model).batches(epoch, None), other.task(model).batches(epoch, None)
        assert len(found) == len(wanted) > 0
        for one, two in zip(found, wanted, strict=True):
            assert all(torch.equal(*both) for both in zip(one, two, strict=True))


def test_a_training_goes_the_same_way_again(tmp_path: Path) -> None:
    recipe = recipe_for(prepared(written("talks.jsonl", tmp_path), tmp_path / "data"))
    finished(train(recipe, tmp_path / "run"))
    wanted = ChatJob(recipe_for(tmp_path / "talks.jsonl"))
    facts = json.loads((tmp_path / "run" / "data.json").read_text())
    assert facts["conversations"] == {"train": len(wanted.texts), "valid": len(wanted.corpus.valid)}
    assert facts["tokens"] == wanted.own_facts()["tokens"]
    goes_on_alike(recipe, None, tmp_path, after=5)


def test_a_training_prepares_large_data_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(begin, "LARGE", 1000)
    path, run = written("talks.jsonl", tmp_path), tmp_path / "run"
    events = [*train(recipe_for(path), run)]
    notes = [event.text for event in events if isinstance(event, Note)]
    assert notes[0].startswith(f"0 MB of text: prepared once, in {run / 'data'}")
    assert contents(run / "data") == contents(prepared(path, tmp_path / "data"))
    finished(train(recipe_for(path, "train.steps=14"), run))


def test_parts_and_others_make_the_same_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written("talks.jsonl", tmp_path)
    alone = contents(prepared(path, tmp_path / "alone"))
    missing = prepare_data(recipe_for(path), tmp_path / "data", {}, {}, part=WorkPart(2, 2))["missing"]
    assert missing == [1]
    assert not is_prepared(tmp_path / "data")
    prepared(path, tmp_path / "data", part=WorkPart(1, 2))
    assert contents(tmp_path / "data") == alone

    def each(work: Callable[[int], object], numbers: Any) -> Any:
        for number in numbers:
            pickle.loads(pickle.dumps(work))(number)
            yield number

    task = preparing.preparation(recipe_for(path))
    assert not task.into(tmp_path / "others", each=each)
    assert contents(tmp_path / "others") == alone


@pytest.mark.parametrize(
    ("kind", "every"),
    [("kill", 9), ("ENOSPC", 21)] + [pytest.param(kind, 1, marks=pytest.mark.full) for kind in ("kill", "torn")],
)
def test_whatever_stops_it_the_same_command_ends_it(
    kind: str, every: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tally: Any
) -> None:
    path = written("parts", tmp_path)
    count = same_folder_whatever_stops(
        lambda out: prepared(path, out),
        lambda out: preparing.prepared_conversations(str(out), None),
        tmp_path,
        lambda disk: monkeypatch.setattr(files, "disk", disk),
        kind,
        every=every,
    )
    tally("R1 preparing data", count)


def test_an_epoch_of_several_turns_has_each_conversation_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "TEXT_TURN", 400)
    job = ChatJob(recipe_for(prepared(written("talks.jsonl", tmp_path), tmp_path / "data")))
    assert isinstance(job.texts, StoredAnswers)
    assert job.turns > 2
    turns = [job.texts.turn(1, turn) for turn in range(2 * job.turns)]
    for epoch in (turns[: job.turns], turns[job.turns :]):
        assert sorted(text for turn in epoch for text in turn) == sorted(job.texts)
    assert turns[0] != turns[job.turns]


def test_what_fits_no_prepared_conversations_is_refused(tmp_path: Path) -> None:
    path = written("talks.jsonl", tmp_path)
    folder = prepared(path, tmp_path / "data")
    for setting, what in {
        "data.vocab_size=310": "prepared with data.vocab_size = 300, not 310",
        "model.context_length=50": "prepared for a context of 40 tokens, not 50",
    }.items():
        with pytest.raises(InputError, match=what):
            ChatJob(recipe_for(folder, setting))
    with pytest.raises(InputError, match="it holds prepared conversations, and text is needed"):
        open_texts(folder)
    (tmp_path / "one.jsonl").write_text(json.dumps(rows()[0]))
    with pytest.raises(InputError, match="one example alone"):
        prepared(tmp_path / "one.jsonl", tmp_path / "one")


def test_tasks_that_prepare_are_those_that_read_pairs_text_or_conversations() -> None:
    """A row that is made of another row's does not take its preparation along."""
    able = {name for name, row in TASKS.items() if row.prepares is not None}
    assert able == {"translate", "summarise", "generate", "chat", "fill", "denoise"}
