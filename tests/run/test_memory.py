"""Training on what is in memory, and scoring it: pairs, labelled texts, sentences with labels, objects, pictures."""

import json
import math
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy
import pandas
import pytest
import torch
from PIL import Image

import heedful
from heedful.data.images.labelled import LabelledImages, Part
from heedful.data.parts import Parts
from heedful.errors import InputError, MissingError
from heedful.run.events import Event, Measured, Note, Trained
from heedful.tasks.shared.progress import ProgressLine
from heedful.training.loop import Step
from heedful.verbs.memory import in_memory

WORDS = ["ba", "de", "gi", "ko", "lu"]
DRAW = random.Random(1)
TEXTS = [" ".join(DRAW.choices(WORDS, k=4)) for _ in range(60)]
PAIRS = [(text, text.upper()) for text in TEXTS]
TINY = ["model.d_model=16", "model.n_heads=2", "train.steps=2", "train.eval_every=2", "train.precision=fp32"]
VOCABULARY = ["data.vocab_size=300"]


def train(task: str, out: Path, data: Any, *settings: str, **words: Any) -> Any:
    return heedful.train(task, out, data=data, settings=[*TINY, *settings], **words)


LAYERS = ["model.d_ff=16", "model.encoder_layers=1", "model.decoder_layers=1"]
STACK = ["model.n_layers=1"]
CASES: dict[str, tuple[Any, list[str], set[str]]] = {
    "translate": (PAIRS, [*LAYERS, *VOCABULARY], {"bleu"}),
    "generate": (
        [{"text": text} for text in TEXTS],
        [*STACK, "model.context_length=16", "data.tokenizer=chars"],
        {"bits_per_byte"},
    ),
    "classify": ([(text, text[:2]) for text in TEXTS], [*STACK, *VOCABULARY], {"accuracy"}),
    "tag": (
        [(text.split(), [word[0] for word in text.split()]) for text in TEXTS],
        [*STACK, *VOCABULARY],
        {"accuracy"},
    ),
    "answer": (
        [{"question": text[:2], "context": text, "answers": [{"text": text[:2], "start": 0}]} for text in TEXTS],
        [*STACK, *VOCABULARY],
        {"f1"},
    ),
}


@pytest.mark.parametrize("task", CASES)
def test_rows_in_memory_are_learnt_and_scored(task: str, tmp_path: Path) -> None:
    rows, settings, scores = CASES[task]
    done = train(task, tmp_path / "run", {"train": rows, "test": rows[:9]}, *settings)
    assert done.steps == 2
    (on_test,) = done.scores.values()
    model = heedful.load(tmp_path / "run")
    (found,) = model.evaluate(rows[:9]).values()
    assert scores <= found.keys()
    (again,) = model.evaluate({"test": rows[:9]}).values()
    for name in scores & on_test.keys():
        assert found[name] == again[name] == pytest.approx(on_test[name], abs=1e-4)


def test_it_is_what_files_give_and_goes_on(tmp_path: Path) -> None:
    """The same weights as from a file, held-out pairs among them; the same call continues, other rows are refused."""
    (tmp_path / "pairs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in PAIRS))
    settings = [*LAYERS, *VOCABULARY]
    from_file = train("translate", tmp_path / "file", tmp_path / "pairs.tsv", *settings, source="low", target="high")
    from_memory = train("translate", tmp_path / "memory", PAIRS, *settings, source="low", target="high")
    assert from_memory.scores == from_file.scores
    assert heedful.load(tmp_path / "memory", heedful.Translator).about["source"] == "low"
    weights = [heedful.load(tmp_path / name).model.state_dict() for name in ("file", "memory")]
    assert all(torch.equal(value, weights[1][name]) for name, value in weights[0].items())
    more = [*settings, "train.steps=3"]
    assert train("translate", tmp_path / "memory", PAIRS, *more, source="low", target="high").steps == 3
    with pytest.raises(InputError, match="the training data is not the data"):
        train("translate", tmp_path / "memory", PAIRS[:50], *more, "train.steps=4", source="low", target="high")
    kept = (tmp_path / "memory.data" / "train.jsonl").read_text().splitlines()
    assert len(kept) == len(PAIRS)  # so that the run can be continued


def test_rows_of_another_call_are_not_read_too(tmp_path: Path) -> None:
    settings = [*LAYERS, *VOCABULARY]
    train("translate", tmp_path / "run", {"train": PAIRS, "valid": PAIRS[:9]}, *settings)
    (tmp_path / "run").rename(tmp_path / "before")
    with pytest.raises(InputError, match=r"run\.data/valid\.jsonl: other data"):
        train("translate", tmp_path / "run", PAIRS[9:], *settings)
    assert json.loads((tmp_path / "run.data" / "train.jsonl").read_text().splitlines()[0])["source"] == PAIRS[0][0]


def test_a_recipe_of_minutes_is_sized_by_the_rows(tmp_path: Path) -> None:
    plan = heedful.recipe("generate", train={"minutes": 0.001, "steps": 1})
    rows = {"train": [f"ba de {number} gi" for number in range(99)]}
    done = heedful.train(plan, tmp_path / "run", data=rows)
    assert done is not None
    assert done.steps == 1


def test_parts_are_sized_by_their_texts(tmp_path: Path) -> None:
    texts = [f"ba de {number} gi\n" for number in range(99)]
    settings = ["train.steps=1", "data.tokenizer=chars"]
    done = heedful.train(
        "generate", tmp_path / "run", data=Parts(texts, texts[:20], {}, "own"), minutes=0.001, settings=settings
    )
    assert done is not None
    assert done.steps == 1


def test_pictures_in_tensors(tmp_path: Path) -> None:
    pixels = torch.randint(0, 256, (24, 1, 28, 28), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))
    part = Part(pixels, [*"abcdef"] * 4)
    parts = LabelledImages(part, part, {"test": part}, "noise", channels=1, size=(28, 28))
    done = train("classify-images", tmp_path / "run", parts, *STACK)
    (scores,) = done.scores.values()
    assert heedful.load(tmp_path / "run", heedful.ImageClassifier).measure(part) == pytest.approx(scores, abs=1e-5)
    assert not Path(f"{tmp_path / 'run'}.data").exists()


@pytest.mark.parametrize("task", ["classify-images", "match"])
def test_rows_name_pictures_from_here(task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And not from the folder that the rows are written into."""
    monkeypatch.chdir(tmp_path)
    Path("own").mkdir()
    for shade in range(12):
        Image.new("L", (8, 8), 20 * shade).save(f"own/{shade}.png")
    key = "label" if task == "classify-images" else "text"
    rows = [{"image": f"own/{shade}.png", key: f"ba {shade % 2}"} for shade in range(12)]
    sizes = TINY[:2] if task == "classify-images" else VOCABULARY
    heedful.train(task, "run", data=pandas.DataFrame(rows), settings=[*sizes, *TINY[2:], "images.batch=6"])
    told = json.loads(Path("run.data/train.jsonl").read_text().splitlines()[0])
    assert told == {**rows[0], "image": str(tmp_path / "own" / "0.png")}
    model = heedful.load("run")
    rows[0]["image"] = Path(rows[0]["image"])
    assert set(model.evaluate(rows)) == {"test"}


@pytest.mark.parametrize("kind", ["frame", "generator", "polars", "columns", "parts"])
def test_tables_of_other_libraries_are_rows(kind: str, tmp_path: Path) -> None:
    columns = {"source": [source for source, _ in PAIRS], "target": [target for _, target in PAIRS]}
    rows = [dict(zip(columns, pair, strict=True)) for pair in PAIRS]
    given: Any = {
        "frame": lambda: pandas.DataFrame(columns),
        "generator": lambda: (row for row in rows),
        "polars": lambda: Polars(rows),
        "columns": lambda: columns,
        "parts": lambda: {"train": {name: numpy.array(column) for name, column in columns.items()}},
    }[kind]()
    done = train("translate", tmp_path / "run", given, *LAYERS, *VOCABULARY)
    assert done is not None
    assert (tmp_path / "run.data/train.jsonl").read_text().splitlines() == [json.dumps(row) for row in rows]
    (found,) = heedful.load(tmp_path / "run").evaluate({"test": pandas.DataFrame(columns)}).values()
    assert [*heedful.load(tmp_path / "run").evaluate(columns).values()] == [found]
    (wanted,) = heedful.load(tmp_path / "run").evaluate(PAIRS).values()
    assert found == wanted


class Polars:
    """A table as that library has it, as far as rows go: it is a list of columns."""

    def __init__(self, rows: list[dict[str, str]]) -> None:
        self.rows = rows

    def __iter__(self) -> Iterator[list[str]]:
        return iter([list(column) for column in zip(*(row.values() for row in self.rows), strict=True)])

    def to_dicts(self) -> list[dict[str, str]]:
        return self.rows


def test_a_column_of_texts_is_rows(tmp_path: Path) -> None:
    settings = [*STACK, "model.context_length=16", "data.tokenizer=chars"]
    train("generate", tmp_path / "run", {"train": pandas.Series(TEXTS)}, *settings)
    model = heedful.load(tmp_path / "run")
    (found,) = model.evaluate({"test": numpy.array(TEXTS[:9])}).values()
    assert [found] == list(model.evaluate({"test": TEXTS[:9]}).values())


def test_numbers_of_numpy_and_torch_are_labels(tmp_path: Path) -> None:
    columns = [*numpy.arange(40) % 2], [*torch.arange(40) % 2]
    for number, labels in enumerate(columns):
        rows = [{"text": text, "label": label} for text, label in zip(TEXTS, labels, strict=False)]
        train("classify", tmp_path / str(number), rows, *STACK, *VOCABULARY)
        assert heedful.load(tmp_path / str(number)).spec.labels == ("0", "1")


@pytest.mark.parametrize("out", ["", ".", "..", "own/..", "none/.."])
def test_a_folder_that_holds_something_else_gets_no_data_beside_it(
    out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here" / "own").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(InputError, match="is not empty and holds no run"):
        heedful.train("translate", out, data=PAIRS)
    (tmp_path / "pairs.tsv").write_text("".join("\t".join(pair) + "\n" for pair in PAIRS))
    with pytest.raises(InputError, match="is not empty and holds no run"):
        heedful.train("translate", out, data=tmp_path / "pairs.tsv")
    (tmp_path / "pairs.tsv").unlink()
    assert [*tmp_path.rglob("*")] == [tmp_path / "here", tmp_path / "here" / "own"]


@pytest.mark.parametrize("out", [".", "none/.."])
def test_the_current_folder_gets_its_data_beside_it(out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    train("translate", Path(out), PAIRS, *LAYERS, *VOCABULARY)
    assert {path.name for path in tmp_path.iterdir()} == {"here", "here.data"}
    assert (tmp_path / "here.data" / "train.jsonl").is_file()
    assert (tmp_path / "here" / "recipe.yaml").is_file()
    assert not (tmp_path / "here" / "none").exists()


def test_columns_of_words_and_labels_are_told_how_to_be_pairs(tmp_path: Path) -> None:
    columns = {"tokens": [text.split() for text in TEXTS], "tags": [text.upper().split() for text in TEXTS]}
    with pytest.raises(InputError, match="expected a sentence's words and their labels as a tuple") as caught:
        train("tag", tmp_path / "run", columns)
    assert "zip(" in caught.value.fix
    assert [*tmp_path.iterdir()] == []


def test_texts_that_would_be_paths_are_told_how_to_be_texts(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a list of 60 strings, which would be paths") as caught:
        train("generate", tmp_path / "run", TEXTS)
    assert '{"train": [...]}' in caught.value.fix
    train("translate", tmp_path / "run", PAIRS, *LAYERS, *VOCABULARY)
    model = heedful.load(tmp_path / "run")
    with pytest.raises(InputError, match="a list of 60 strings") as caught:
        model.evaluate(TEXTS)
    assert '{"test": [...]}' in caught.value.fix
    with pytest.raises(InputError, match="data: no rows"):
        model.evaluate([])
    for text in ("one line\nand another", "word " * 60):
        with pytest.raises(InputError, match=r"a text of .* characters, .* where a path is expected") as caught:
            train("generate", tmp_path / "run", text)
        assert '{"train": [text]}' in caught.value.fix
        with pytest.raises(InputError, match="where a path is expected"):
            model.evaluate(text)


@pytest.mark.parametrize(
    ("data", "what"),
    [
        ({"training": PAIRS}, "no part is called 'training'"),
        ({"training": PAIRS, "testing": [{"source": "ba", "target": "BA"}]}, "no part is called 'training'"),
        ({"source": ["ba", "de"], "target": ["BA"]}, "data: columns of different lengths: source 2, target 1"),
        ({"source": "ba", "target": "BA"}, "no part is called 'source'"),
        ({"train": []}, "data: train: no rows"),
        ({}, "data: no rows"),
        ({"train": "train.tsv"}, "data: train: 'train.tsv' where rows are expected"),
        ({"train": PAIRS, "test": Path("test.tsv")}, "data: test: 'test.tsv' where rows are expected"),
        ([("ba", "de"), ("ba", 3)], r"data: train 2: expected a text, a pair of texts or an object"),
        ([("ba", "de"), 7], r"data: train 2: expected"),
        ([{"source": "ba", "target": {1}}], r"data: train 1: .*not JSON serializable"),
        (pandas.DataFrame({"source": ["ba", "de"], "target": ["BA", math.nan]}), r"data: train 2: .*nan"),
        ([(["ba", "de"], ["N"])], r"data: train 1: expected as many labels as words"),
        ([(1, 2), (3, 4)], r"data: train 1: expected a text, a pair of texts or an object"),
        ([(["ba", "de"], ["N", "V"]), (["ba"], 1)], r"data: train 2: expected as many labels as words"),
        ([("ba", "de"), ("gi", "d\ud83d")], r"data: train 2: '\\ud83d' is half a character"),
    ],
)
def test_what_is_no_row_is_told_by_its_number(data: Any, what: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=what):
        train("translate", tmp_path / "run", data)


@pytest.mark.parametrize("row", [["ba", "de"], [("ba", "N"), ("de", "V")]])
def test_a_list_is_no_row_and_what_is_one_is_said(row: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="train 1: expected a text, a pair of texts") as caught:
        train("translate", tmp_path / "run", [row])
    assert "a tuple" in caught.value.fix


def test_paths_are_not_rows(tmp_path: Path) -> None:
    assert not any(map(in_memory, ["a.tsv", tmp_path, ["a.en", "b.de"], (tmp_path, "b"), None, []]))


def test_what_cannot_be_scored_is_told_by_the_number_of_its_row(run_of: Callable[[str], Path]) -> None:
    """And not by the name of a file that is gone."""
    known = {"text": "ba", "label": "ba"}
    told = r"^data: test 2: no \"text\" that is a text"
    with pytest.raises(InputError, match=told):
        heedful.load(run_of("label"), heedful.TextClassifier).evaluate([known, {"label": "ba"}])
    with pytest.raises(InputError, match=r"^data: test 1: no key 'low'"):
        heedful.load(run_of("transformer"), heedful.Translator).evaluate([{"en": "ba", "de": "BA"}])
    with pytest.raises(MissingError, match=r"^data: test 1: there is no picture 'no\.png'") as caught:
        heedful.load(run_of("classify-images"), heedful.ImageClassifier).evaluate([{"image": "no.png", "label": "a"}])
    assert caught.value.fix == "names count from here"
    with pytest.raises(InputError, match=r"^data: test 1: expected a sentence's words and their labels") as refused:
        heedful.load(run_of("tag"), heedful.Tagger).evaluate([{"tokens": ["ba"], "tags": ["O"]}])
    assert "zip(" in refused.value.fix


def test_a_training_in_python_shows_its_progress_and_calls_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[Event] = []
    done = train("translate", tmp_path / "run", PAIRS, *LAYERS, *VOCABULARY, callback=seen.append)
    shown = capsys.readouterr().err
    assert "step 1 " in shown
    assert done.verdict in shown.splitlines()
    assert [event.step.step for event in seen if isinstance(event, Trained)] == [1, 2]
    assert seen[-1] == done
    assert not any("--" in event.text for event in seen if isinstance(event, Note))
    quiet = train("translate", tmp_path / "quiet", PAIRS, *LAYERS, *VOCABULARY, progress=False)
    assert capsys.readouterr().err == ""
    assert quiet.scores == done.scores

    def stop(event: Event) -> None:
        raise KeyError(type(event).__name__)

    with pytest.raises(KeyError):
        train("translate", tmp_path / "stopped", PAIRS, *LAYERS, *VOCABULARY, callback=stop)


def test_settings_are_a_dict_too(tmp_path: Path) -> None:
    words = train("translate", tmp_path / "words", PAIRS, *LAYERS, *VOCABULARY, progress=False)
    inner = {"d_model": 16, "n_heads": 2, "d_ff": 16, "encoder_layers": 1, "decoder_layers": 1}
    own = {"model": inner, "train.steps": 2, "train": {"eval_every": 2, "precision": "fp32"}, "data.vocab_size": 300}
    found = heedful.train("translate", tmp_path / "dict", data=PAIRS, settings=own, progress=False)
    assert found is not None
    assert found.scores == words.scores
    same = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("words", "dict")]
    assert same[0] == same[1]


def test_progress_is_a_bar_at_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # by which rich takes any output for a terminal
    monkeypatch.setenv("TERM", "xterm")
    step = Step(1, 0, 0.5, 1, 1.0, 1.0, 0.5, 0.0)
    ProgressLine().follow(iter([Note("before"), Trained(step, 1e-3, 10.0, "tokens", None), Measured(1, 0.5, {}, True)]))
    drawn = capsys.readouterr().err
    assert "\u2501" in drawn
    assert "step 1  loss 0.500" in drawn
