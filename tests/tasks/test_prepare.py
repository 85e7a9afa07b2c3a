"""Prepared pairs: the same batches as of the pairs in memory, the same held-out pairs as `read_parallel`, and the same
folder whatever ended the preparation before."""

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from disks import Faulty, Killed, power_cuts, same_folder_whatever_stops
from heedful.data import stored
from heedful.data.stored import StoredPairs
from heedful.data.text.corpus import read_parallel
from heedful.errors import InputError, StorageError
from heedful.run import begin
from heedful.run.events import Note, Trained
from heedful.run.prepared import is_prepared, read_manifest
from heedful.run.recipe import override
from heedful.store import files
from heedful.tasks.recipes import saved_recipe
from heedful.tasks.shared.preparing import filling, partitions
from heedful.tasks.shared.preparing import pairs as preparing
from heedful.tasks.shared.preparing.opened import open_pairs
from heedful.tasks.translate.train import TranslateJob
from heedful.tasks.translate.training.epochs import TranslationTask
from heedful.verbs.data import prepare_data
from heedful.verbs.train import train
from made import DECODER, RECURRENT, TRANSFORMER, backwards, finished, goes_on_alike, made_recipe

COUNT = 300


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with copies, pairs without a side, several translations of a sentence, and one in other capitals."""
    made, draw = backwards(COUNT, 1), random.Random(1)
    rows = [f"{one}\t{other}" for one, other in zip(made.source, made.target, strict=True)]
    rows += [*draw.choices(rows, k=40), "ba de\t", "\tBA", *(f"{made.source[i].upper()}\tX {i}" for i in range(5))]
    draw.shuffle(rows)
    path = tmp_path_factory.mktemp("pairs") / "pairs.tsv"
    path.write_text("\n".join(["source\ttarget", *rows, ""]))
    return path


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several partitions and several parts of a file, of a few pairs."""
    monkeypatch.setattr(preparing, "PARTITION", 4000)
    monkeypatch.setattr(partitions, "AT_ONCE", 100)
    monkeypatch.setattr(partitions, "ENCODED", 50)


def prepared(pairs: Path, out: Path, base: dict[str, Any] = TRANSFORMER, *settings: str) -> Path:
    prepare_data(override(made_recipe(base), settings), out, {"data.path": str(pairs)}, {})
    return out


def recipe_for(folder: Path, base: dict[str, Any] = TRANSFORMER, *settings: str) -> Any:
    return override(made_recipe(base), [f"data.path={folder}", *settings])


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_what_is_held_out_is_what_a_training_in_memory_holds_out(pairs: Path, tmp_path: Path) -> None:
    corpus, found = read_parallel(pairs), open_pairs(prepared(pairs, tmp_path / "data"))
    assert found.held_out == corpus.held_out
    assert (found.source, found.target, found.other_way) == (corpus.source, corpus.target, corpus.other_way)
    assert found.prepared is not None
    source, target = found.prepared.tokenizers
    texts = {(source.decode(one), target.decode(other)) for one, other in found.prepared.stored}
    assert texts == {*zip(corpus.train.source, corpus.train.target, strict=True)}
    assert len(found.prepared.stored) == len(texts)
    assert any("copies" in note for note in found.notes)
    assert any("2 of 347 pairs dropped, a side is empty" in note for note in found.notes)
    assert len([*(tmp_path / "data").glob("*.ids")]) > 2


@pytest.mark.parametrize("base", [TRANSFORMER, DECODER, RECURRENT])
@pytest.mark.parametrize("setting", ["data.longest=200", "data.longest=8", "data.cut=true"])
def test_batches_are_those_of_the_same_pairs_in_memory(
    base: dict[str, Any], setting: str, pairs: Path, tmp_path: Path
) -> None:
    settings = [setting, *(["data.longest=8"] if "cut" in setting else [])]
    folder = prepared(pairs, tmp_path / "data", base)
    job = TranslateJob(recipe_for(folder, base, *settings))
    assert isinstance(job.pairs, StoredPairs)
    task, in_memory = (
        TranslationTask(own, job.recipe.train, packs=base is not RECURRENT, ends=job.ends)
        for own in (job.pairs, [*job.pairs])
    )
    assert [len(job.pairs[i][0]) for i in range(len(job.pairs))] == job.pairs.lengths[:, 0].tolist()
    for epoch in (0, 1):
        found, wanted = task.batches(epoch, None), in_memory.batches(epoch, None)
        assert len(found) == len(wanted) > 0
        for one, other in zip(found, wanted, strict=True):
            assert all(torch.equal(*both) for both in zip(one, other, strict=True))
    assert job.chance() > 0


def test_a_training_goes_the_same_way_again(pairs: Path, tmp_path: Path) -> None:
    recipe = recipe_for(prepared(pairs, tmp_path / "data"))
    scores = finished(train(recipe, tmp_path / "run")).scores
    assert "test" in scores
    facts = json.loads((tmp_path / "run" / "data.json").read_text())
    assert facts["pairs"]["train"] == read_manifest(tmp_path / "data")["counts"]["pairs"]
    assert facts["files"][0]["path"] == str(pairs)
    assert facts["files"][0]["learnt"]
    goes_on_alike(recipe, None, tmp_path, after=5)


def test_what_fits_no_prepared_data_is_refused(pairs: Path, tmp_path: Path) -> None:
    folder = prepared(pairs, tmp_path / "data")
    for setting, what in {
        "data.vocab_size=310": "prepared with data.vocab_size = 300, not 310",
        "data.valid=['x.tsv']": "prepared with data.valid = []",
        "noise.typos=0.1": "noise needs the texts",
        "data.mix=['x.tsv:0.1']": "data.mix needs the texts",
    }.items():
        with pytest.raises(InputError, match=what.replace("[", "\\[")):
            TranslateJob(recipe_for(folder, TRANSFORMER, setting))
    with pytest.raises(InputError, match="holds other data"):
        prepared(pairs, folder, TRANSFORMER, "data.vocab_size=310")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    with pytest.raises(InputError, match="not empty"):
        prepared(pairs, tmp_path / "other")
    (tmp_path / "few.tsv").write_text("a\tb\nc\td\n")
    with pytest.raises(InputError, match="2 different source sentences, expected at least 3"):
        prepared(tmp_path / "few.tsv", tmp_path / "few")


def test_a_changed_byte_in_any_file_is_told(pairs: Path, tmp_path: Path) -> None:
    folder = prepared(pairs, tmp_path / "data")
    for path in sorted(folder.iterdir()):
        data = path.read_bytes()
        if path.name == "manifest.json":
            continue
        path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        with pytest.raises(StorageError, match="changed since it was prepared"):
            open_pairs(folder)
        path.write_bytes(data)
    open_pairs(folder)


def test_preparing_needs_no_torch(pairs: Path, tmp_path: Path) -> None:
    """Which takes as much memory as preparing does."""
    code = f"""
import sys
from pathlib import Path
from heedful.verbs.data import prepare_data
prepare_data("translate", Path({str(tmp_path / "data")!r}), {{"data.path": {str(pairs)!r}}}, {{}})
sys.exit("torch" in sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    assert is_prepared(tmp_path / "data")


def test_a_full_disk_is_told_before_anything_is_read(
    pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filling, "LEAST_SPACE", 1 << 60)
    with pytest.raises(StorageError, match="will be needed here"):
        prepared(pairs, tmp_path / "data")


def test_a_training_prepares_large_data_itself(pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(begin, "LARGE", 1000)
    recipe, run = recipe_for(pairs), tmp_path / "run"
    with monkeypatch.context() as stopped:
        stopped.setattr(files, "disk", Faulty("kill", 40))
        with pytest.raises(Killed):
            next(event for event in train(recipe, run) if isinstance(event, Trained))
    events = [*train(recipe, run)]
    notes = [event.text for event in events if isinstance(event, Note)]
    assert notes[0].endswith("MB of disk until it is done")
    assert notes[0].startswith(f"0 MB of text: prepared once, in {run / 'data'}, which takes about 1 minute")
    folder = prepared(pairs, tmp_path / "data")
    assert contents(run / "data") == contents(folder)
    assert finished(events).scores == finished(train(recipe_for(folder), tmp_path / "other")).scores
    assert saved_recipe(run).data.path == str(pairs)
    again = override(recipe, ["train.steps=14"])
    assert not any(isinstance(event, Note) and "prepared once" in event.text for event in train(again, run))
    pairs_now = pairs.read_text()
    pairs.write_text(pairs_now + "a\tb\n")
    with pytest.raises(InputError, match="changed since it was prepared"):
        [*train(override(recipe, ["train.steps=16"]), run)]
    pairs.write_text(pairs_now)


@pytest.mark.parametrize("setting", ["noise.typos=0.1", "data.bpe_dropout=0.1"])
def test_large_data_that_cannot_be_prepared_are_read_as_before(
    setting: str, pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(begin, "LARGE", 1000)
    finished(train(recipe_for(pairs, TRANSFORMER, setting, "train.steps=2"), tmp_path / "run"))
    assert not (tmp_path / "run" / "data").exists()


def test_an_epoch_of_several_turns_has_each_pair_once(
    pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "TURN", 64)
    monkeypatch.setattr(stored, "BLOCK", 8)
    folder = prepared(pairs, tmp_path / "data")
    job = TranslateJob(recipe_for(folder))
    assert isinstance(job.pairs, StoredPairs)
    turns = job.turns
    assert turns == -(-len(job.pairs) // 64) > 3
    epochs = [[job.pairs.turn(1, epoch * turns + turn) for turn in range(turns)] for epoch in range(3)]
    for epoch in epochs:
        assert sorted(i for turn in epoch for i in turn) == [*range(len(job.pairs))]
        assert max(map(len, epoch)) <= 64
    assert len({tuple(turn) for epoch in epochs for turn in epoch}) == 3 * turns
    assert {*epochs[0][0]} != {*epochs[1][0]}
    recipe = override(
        recipe_for(folder), ["train.steps=null", "train.epochs=2", "train.tokens=128", "train.eval_every=40"]
    )
    events = list(train(recipe, tmp_path / "run"))
    steps = [event.step for event in events if isinstance(event, Trained)]
    assert steps[-1].epoch == 2 * turns - 1
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert max(row["epoch"] for row in rows if "epoch" in row) == 1


@pytest.fixture
def few(pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Few enough for many preparations, in two partitions."""
    monkeypatch.setattr(preparing, "PARTITION", 1000)
    monkeypatch.setattr(partitions, "AT_ONCE", 25)
    path = tmp_path / "few.tsv"
    path.write_text("".join(pairs.read_text().splitlines(keepends=True)[:40]))
    return path


@pytest.mark.parametrize(
    ("kind", "for_good", "every"),
    [("kill", True, 5), ("ENOSPC", True, 12), ("EIO", False, 12), ("torn", True, 12)]
    + [pytest.param(kind, True, 1, marks=pytest.mark.full) for kind in ("kill", "ENOSPC", "EIO", "torn", "short")],
)
def test_whatever_stops_it_the_same_command_ends_it(
    kind: str, for_good: bool, every: int, few: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tally: Any
) -> None:
    count = same_folder_whatever_stops(
        lambda out: prepared(few, out),
        open_pairs,
        tmp_path,
        lambda disk: monkeypatch.setattr(files, "disk", disk),
        kind,
        for_good=for_good,
        every=every,
    )
    tally("R1 preparing data", count)


@pytest.mark.parametrize("names_survive", [True, False])
@pytest.mark.parametrize("every", [9, pytest.param(1, marks=pytest.mark.full)])
def test_power_cuts(
    names_survive: bool, every: int, few: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tally: Any
) -> None:
    pairs = few
    whole = contents(prepared(pairs, tmp_path / "whole"))
    (tmp_path / "template").mkdir()
    cuts = power_cuts(
        lambda folder: prepared(pairs, folder / "data"),
        tmp_path / "template",
        lambda disk: monkeypatch.setattr(files, "disk", disk),
        names_survive=names_survive,
        every=every,
    )
    count = 0
    for at, left, done in cuts:
        if done or (left / "data" / "manifest.json").is_file():
            open_pairs(left / "data")
        assert contents(prepared(pairs, left / "data")) == whole, at
        count += 1
    tally("R1 power cuts while data are prepared", count)
