"""Prepared running text: the documents, the held-out parts and the batches are those of the same text in memory, and
the folder is the same whoever prepared it and whatever ended that before."""

import gzip
import json
import pickle
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from disks import same_folder_whatever_stops
from heedful.data import large, lines, stored
from heedful.data.text import documents, streamed
from heedful.data.text.documents import Documents, read_documents
from heedful.errors import InputError, MissingError, StorageError
from heedful.models import make_model
from heedful.run import begin
from heedful.run.events import Note, Trained
from heedful.run.prepared import WorkPart, is_prepared
from heedful.run.recipe import override
from heedful.store import files
from heedful.tasks.denoise.noise import StoredPassages
from heedful.tasks.denoise.train import DenoiseJob
from heedful.tasks.fill.train import FillJob
from heedful.tasks.generate.train import GenerateJob
from heedful.tasks.recipes import build
from heedful.tasks.shared.preparing import filling, texts
from heedful.tasks.shared.preparing.opened import open_pairs, open_texts
from heedful.verbs.data import prepare_data
from heedful.verbs.train import train
from made import finished, goes_on_alike

SMALL = {"d_model": 32, "n_heads": 2, "n_layers": 1, "context_length": 32}
JOBS: dict[str, Any] = {"generate": GenerateJob, "fill": FillJob, "denoise": DenoiseJob}
PRESETS = {"generate": "gpt-nano", "fill": "modern-tiny", "denoise": "transformer-tiny"}
NARROW = {"d_model": 32, "n_heads": 2, "d_ff": 64, "encoder_layers": 1, "decoder_layers": 1}
WORDS = ["ba", "de", "fi", "go", "hu", "ja", "ke", "lu", "mo", "na", "pi", "ro", "su", "ta", "vu", "we", "xi", "yo"]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several shards, several parts of a document, several pieces of a file, and little that is held out."""
    monkeypatch.setattr(texts, "SHARD", 900)
    monkeypatch.setattr(texts, "SAMPLED", 500)
    for module in (lines, streamed, texts):
        monkeypatch.setattr(module, "PART", 128)
    for module in (documents, streamed):
        monkeypatch.setattr(module, "HELD_MOST", 300)
    monkeypatch.setattr(large, "LARGE", 1)
    monkeypatch.setattr(lines, "READ_AT_ONCE", 100)


def said(draw: random.Random, words: int) -> str:
    return " ".join(draw.choices(WORDS, k=words)).capitalize() + "."


def written(name: str, folder: Path) -> Path:
    """Text of each layout that `read_documents` reads."""
    draw = random.Random(name)
    rows = [said(draw, draw.randint(3, 90)) for _ in range(60)]
    as_rows = [json.dumps({"text": text}) for text in (*rows[:20], rows[3], "", *rows[20:], rows[1])]
    path = folder / name
    match name:
        case "one.txt":
            path.write_text("\n".join(rows) + "\n\n")
        case "ends.txt":  # a carriage return before each line end, and no line end at the end
            path.write_bytes("\r\n".join([f"{rows[0]} é ß 語", *rows]).encode())
        case "rows.jsonl":
            path.write_text("\n".join(as_rows))
        case "rows.jsonl.gz":
            path.write_bytes(gzip.compress("\n".join(as_rows).encode()))
        case "few.jsonl":
            path.write_text("\n".join(as_rows[:9]))
        case "last.jsonl":  # whose last document is longer than what is held out
            path.write_text("\n".join([*as_rows, json.dumps({"text": " ".join(rows[:9])})]))
        case "list.json":
            path.write_text(json.dumps([json.loads(row) for row in as_rows]))
        case "several":
            path.mkdir()
            for number in range(3):
                (path / f"{number}.txt").write_text("\n".join(rows[20 * number : 20 * number + 20]))
        case "many":
            path.mkdir()
            for number in range(25):
                (path / f"{number:02}.txt").write_text("\n".join(rows[number : number + 9]))
        case "parts":
            path.mkdir()
            (path / "train.txt").write_text("\n".join(rows[:50]))
            (path / "valid.txt").write_text("\n".join(rows[50:55]))
            (path / "test.jsonl").write_text("\n".join(as_rows[50:]))
        case "table.csv":
            path.write_text("\n".join(f"{number},{text}" for number, text in enumerate(rows)))
    return path


LAYOUTS = [
    *("one.txt", "ends.txt", "rows.jsonl", "rows.jsonl.gz", "few.jsonl", "last.jsonl", "list.json"),
    *("several", "many", "parts", "table.csv"),
]


def recipe_for(path: object, task: str = "generate", *settings: str) -> Any:
    base = {"task": task, "preset": PRESETS[task], "data": {"path": str(path), "vocab_size": 330}}
    base |= {"model": NARROW if task == "denoise" else SMALL}
    return override(
        build(base | {"train": {"steps": 12, "save_every": 4, "eval_every": 6, "tokens": 128}}, where="test"), settings
    )


def prepared(path: Path, out: Path, task: str = "generate", *settings: str, **how: Any) -> Path:
    prepare_data(recipe_for(path, task, *settings), out, {}, {}, **how)
    return out


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def in_memory(path: Path) -> Documents:
    return read_documents(path, most=300)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_it_is_the_text_that_is_read_into_memory(layout: str, tmp_path: Path) -> None:
    path = written(layout, tmp_path)
    wanted, found = in_memory(path), open_texts(prepared(path, tmp_path / "data"))
    assert found.valid == wanted.valid
    assert found.tests == wanted.tests
    assert found.notes == wanted.notes
    assert found.name == wanted.name
    assert found.prepared is not None
    tokenizer = found.prepared.tokenizers[0]
    assert [tokenizer.decode(ids) for ids in found.prepared.stored] == wanted.train
    assert [file["path"] for file in found.prepared.inputs] == [*map(str, sorted(wanted.files))]
    size = sum(map(len, wanted.train))
    assert 0 < sum(map(len, found.train)) <= size
    if size > 900:
        assert len({*(tmp_path / "data").iterdir()}) == 7 + len(found.tests)  # no piece is left


@pytest.mark.parametrize("task", JOBS)
@pytest.mark.parametrize("layout", ["one.txt", "rows.jsonl", "many"])
def test_batches_are_those_of_the_same_text_in_memory(layout: str, task: str, tmp_path: Path) -> None:
    path = written(layout, tmp_path)
    folder = prepared(path, tmp_path / "data", task)
    job, other = (
        JOBS[task](recipe_for(each, task), None if each is folder else in_memory(path)) for each in (folder, path)
    )
    assert job.tokenizer_hash == other.tokenizer_hash
    assert job.chance() == other.chance()
    assert job.describe() == other.describe()
    model: Any = make_model(job.config)
    one, two = job.task(model), other.task(model)
    for epoch in (0, 1):
        found, wanted = one.batches(epoch, None), two.batches(epoch, None)
        assert len(found) == len(wanted) > 0
        for both in zip(found, wanted, strict=True):
            for part, own in zip(*both, strict=True):
                assert part is own is None or torch.equal(part, own)


@pytest.mark.parametrize("task", JOBS)
def test_a_training_goes_the_same_way_again(task: str, tmp_path: Path) -> None:
    path = written("rows.jsonl", tmp_path)
    recipe = recipe_for(prepared(path, tmp_path / "data", task), task)
    finished(train(recipe, tmp_path / "run"))
    facts = json.loads((tmp_path / "run" / "data.json").read_text())
    wanted = in_memory(path)
    assert facts["documents"] == {"train": len(wanted.train), "valid": len(wanted.valid)}
    assert facts["files"][0]["path"] == str(path)
    assert facts["files"][0]["learnt"]
    goes_on_alike(recipe, None, tmp_path, after=5)


def test_parts_make_the_same_folder_in_any_order(tmp_path: Path) -> None:
    path = written("rows.jsonl", tmp_path)
    alone = contents(prepared(path, tmp_path / "alone"))
    missing = prepare_data(recipe_for(path), tmp_path / "data", {}, {}, part=WorkPart(3, 3))["missing"]
    assert missing == [1, 2]
    assert not is_prepared(tmp_path / "data")
    assert prepare_data(recipe_for(path), tmp_path / "data", {}, {}, part=WorkPart(1, 3))["missing"] == [2]
    prepared(path, tmp_path / "data", part=WorkPart(2, 3))
    assert contents(tmp_path / "data") == alone


def test_others_that_see_the_files_may_encode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written("several", tmp_path)
    alone = contents(prepared(path, tmp_path / "alone"))
    monkeypatch.chdir(tmp_path)
    sent = list[int]()

    def each(work: Callable[[int], object], numbers: Any) -> Any:
        for number in numbers:
            sent.append(number)
            monkeypatch.chdir("/")  # as a worker, which was started elsewhere
            pickle.loads(pickle.dumps(work))(number)
            yield number
        monkeypatch.chdir(tmp_path)

    task = texts.preparation(recipe_for("several"))
    assert not task.into(Path("data"), each=each)
    assert len(sent) > 3
    known = contents(tmp_path / "data")
    assert {name for name, data in known.items() if data != alone[name]} == {"manifest.json"}  # which names the files


@pytest.mark.parametrize(
    ("kind", "for_good", "every"),
    [("kill", True, 7), ("ENOSPC", True, 19), ("EIO", False, 19), ("torn", True, 19)]
    + [pytest.param(kind, True, 1, marks=pytest.mark.full) for kind in ("kill", "ENOSPC", "EIO", "torn", "short")],
)
def test_whatever_stops_it_the_same_command_ends_it(
    kind: str, for_good: bool, every: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tally: Any
) -> None:
    path = written("parts", tmp_path)
    count = same_folder_whatever_stops(
        lambda out: prepared(path, out),
        open_texts,
        tmp_path,
        lambda disk: monkeypatch.setattr(files, "disk", disk),
        kind,
        for_good=for_good,
        every=every,
    )
    tally("R1 preparing data", count)


def test_an_epoch_of_several_turns_has_each_token_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "TEXT_TURN", 700)
    monkeypatch.setattr(stored, "TEXT_PIECE", 40)
    job = FillJob(recipe_for(prepared(written("rows.jsonl", tmp_path), tmp_path / "data", "fill"), "fill"))
    turns, own = job.turns, job.documents
    assert turns == own.turns == -(-own.tokens // 700) > 2
    epochs = [[[*own.turn(1, epoch * turns + turn)] for turn in range(turns)] for epoch in range(2)]
    wanted = sorted(ids[at : at + 40] for ids in own for at in range(0, len(ids), 40))
    for epoch in epochs:
        assert sorted(piece for turn in epoch for piece in turn) == wanted
        assert max(sum(map(len, turn)) for turn in epoch) < 1400
    assert epochs[0] != epochs[1]
    recipe = override(job.recipe, ["train.steps=null", "train.epochs=2", "train.eval_every=40"])
    steps = [event.step for event in train(recipe, tmp_path / "run") if isinstance(event, Trained)]
    assert steps[-1].epoch == 2 * turns - 1


def test_the_turns_of_an_epoch_have_each_passage_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written("rows.jsonl", tmp_path)
    folder = prepared(path, tmp_path / "data", "denoise")
    alone = DenoiseJob(recipe_for(path, "denoise"), in_memory(path))
    monkeypatch.setattr(stored, "TEXT_TURN", 700)
    job = DenoiseJob(recipe_for(folder, "denoise"))
    assert isinstance(job.passages, StoredPassages)
    assert job.turns > 2
    turns = [[*job.passages.turn(1, turn)] for turn in range(2 * job.turns)]
    for epoch in (turns[: job.turns], turns[job.turns :]):
        assert sorted(passage for turn in epoch for passage in turn) == sorted(alone.passages)
    assert turns[0] != turns[job.turns]
    steps = override(recipe_for(folder, "denoise"), ["train.steps=null", "train.epochs=2", "train.eval_every=40"])
    finished(train(steps, tmp_path / "run"))


def test_a_changed_byte_in_any_file_is_told(tmp_path: Path) -> None:
    folder = prepared(written("parts", tmp_path), tmp_path / "data")
    for path in sorted(folder.iterdir()):
        data = path.read_bytes()
        if path.name == "manifest.json" or not data:
            continue
        path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        with pytest.raises(StorageError, match="changed since it was prepared"):
            open_texts(folder)
        path.write_bytes(data)
    open_texts(folder)


def test_what_fits_no_prepared_text_is_refused(tmp_path: Path) -> None:
    path = written("rows.jsonl", tmp_path)
    folder = prepared(path, tmp_path / "data")
    with pytest.raises(InputError, match=r"prepared with data\.vocab_size = 330, not 340"):
        GenerateJob(recipe_for(folder, "generate", "data.vocab_size=340"))
    with pytest.raises(InputError, match="as running text, and heed train fill reads text with a mask") as caught:
        FillJob(recipe_for(folder, "fill"))
    assert caught.value.fix == "prepare them with --task fill"
    with pytest.raises(InputError, match="it holds prepared text, and pairs are needed"):
        open_pairs(folder)
    for task, what in {
        "translate": "it holds prepared text, and pairs are needed",
        "chat": "it holds prepared text, and conversations are needed",
        "vectors": "prepared data, which heed train vectors does not read",
    }.items():
        with pytest.raises(InputError, match=what):
            next(train(build({"task": task, "data": {"path": str(folder)}}, where="test"), tmp_path / task))
    with pytest.raises(InputError, match="holds other data"):
        prepared(path, folder, "generate", "data.vocab_size=340")
    with pytest.raises(MissingError, match="there is no such file"):
        prepared(tmp_path / "nothing.txt", tmp_path / "other")
    (tmp_path / "blank.jsonl").write_text('{"text": " "}\n' * 30)
    with pytest.raises(InputError, match="no document with a word"):
        prepared(tmp_path / "blank.jsonl", tmp_path / "blank")


def test_a_run_that_another_begins_with_lends_its_vocabulary(tmp_path: Path) -> None:
    path = written("rows.jsonl", tmp_path)
    finished(train(recipe_for(path, "generate", "train.steps=2"), tmp_path / "first"))
    recipe = build(
        {"task": "generate", "start_from": str(tmp_path / "first"), "data": {"path": str(path)}, "train": {"steps": 2}},
        where="test",
    )
    prepare_data(recipe, tmp_path / "data", {}, {})
    finished(train(override(recipe, [f"data.path={tmp_path / 'data'}"]), tmp_path / "second"))
    with pytest.raises(InputError, match="prepared with the vocabulary of another model"):
        GenerateJob(recipe_for(tmp_path / "data"))


def test_a_training_prepares_large_text_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(begin, "LARGE", 1000)
    path, run = written("one.txt", tmp_path), tmp_path / "run"
    events = [*train(recipe_for(path), run)]
    notes = [event.text for event in events if isinstance(event, Note)]
    assert notes[0].startswith(f"0 MB of text: prepared once, in {run / 'data'}")
    assert contents(run / "data") == contents(prepared(path, tmp_path / "data"))
    assert finished(events).scores == finished(train(recipe_for(tmp_path / "data"), tmp_path / "other")).scores
    finished(train(recipe_for(path, "generate", "train.steps=14"), run))


def test_preparing_needs_no_torch(tmp_path: Path) -> None:
    path = written("one.txt", tmp_path)
    code = f"""
import sys
from pathlib import Path
from heedful.verbs.data import prepare_data
prepare_data("fill", Path({str(tmp_path / "data")!r}), {{"data.path": {str(path)!r}}}, {{}})
sys.exit("torch" in sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    assert is_prepared(tmp_path / "data")


def test_a_full_disk_is_told_before_anything_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filling, "LEAST_SPACE", 1 << 60)
    with pytest.raises(StorageError, match="will be needed here"):
        prepared(written("one.txt", tmp_path), tmp_path / "data")
