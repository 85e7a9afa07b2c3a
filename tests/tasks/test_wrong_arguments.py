"""What a tired person gives to a model in Python: refused in one line, which says what to give."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import heedful
from cases import PIXELS
from heedful.data.images.files import to_image
from heedful.errors import InputError, MissingError

Runs = Callable[[str], Path]
TRANSLATE: list[tuple[dict[str, Any], str]] = [
    ({"to": 3}, "translate: to is 3"),
    ({"require": 3}, "translate: require is 3"),
    ({"require": [None]}, "translate: require is [None]"),
    ({"avoid": 3}, "translate: avoid is 3"),
    ({"tag": ["a"]}, "translate: tag is ['a']"),
    ({"glossary": 3}, "translate: glossary is 3"),
    ({"beam": "3"}, "translate: beam is '3'"),
    ({"beam": True}, "translate: beam is True"),
    ({"beams": 3}, "translate: unknown argument 'beams'"),
    ({"longest": "all"}, "translate: longest is 'all'"),
    ({"temperature": -1.0}, "temperature is -1.0"),
    ({"temperature": 0.3}, "temperature is not used by a search"),
    ({"top_p": 7.0}, "top_p is 7.0"),
    ({"shortest": -1}, "shortest is -1"),
    ({"diversity": 0.9}, "diversity is not used by a beam without groups"),
    ({"temperature": -1.0, "samples": 1}, "temperature is -1.0"),
]
OTHERS: list[tuple[str, Callable[[Any], Any], str]] = [
    ("gpt", lambda model: model.generate("ba", tokens="3"), "generate: tokens is '3'"),
    ("gpt", lambda model: model.generate("ba", stop=None), "generate: stop is None"),
    ("gpt", lambda model: model.stream(None), "stream: prompt is None"),
    ("gpt", lambda model: model.choose(None, ["de"]), "choose: context is None"),
    ("gpt", lambda model: model.weigh(["ba"], []), "weigh: 1 context and 0 lists of choices"),
    ("gpt", lambda model: model.check(None), "check: texts is None"),
    ("gpt", lambda model: model.ask(None, "ba"), "ask: verb is None"),
    ("gpt", lambda model: model.ask("generate", "ba", [3]), "ask: settings is [3]"),
    ("gpt", lambda model: model.look("ba", kind=3), "look: kind is 3"),
    ("gpt", lambda model: model.evaluate(3), "evaluate: data is 3"),
    ("gpt", lambda model: model.save(model.trainable(), None), "save: out is None"),
    ("chat", lambda model: model.chat_each("ba"), "chat_each: conversations is 'ba'"),
    ("answer", lambda model: model.answer("ba?", None), "answer: contexts is None"),
    ("reward", lambda model: model.weigh(["ba"], []), "weigh: 1 prompt and 0 answers"),
    ("vectors", lambda model: model.similarity("ba", None), "similarity: other is None"),
    ("paint", lambda model: model.begin(None), "begin: files is None"),
]


@pytest.mark.parametrize(("settings", "what"), TRANSLATE)
def test_what_is_no_wish_of_a_translation(settings: dict[str, Any], what: str, run_of: Runs) -> None:
    with pytest.raises(InputError) as found:
        heedful.load(run_of("transformer"), heedful.Translator).translate("ba", **settings)
    assert str(found.value) == what
    assert found.value.fix


@pytest.mark.parametrize(("name", "ask", "what"), OTHERS)
def test_what_is_no_argument(name: str, ask: Callable[[Any], Any], what: str, run_of: Runs) -> None:
    with pytest.raises(InputError) as found:
        ask(heedful.load(run_of(name)))
    assert str(found.value) == what
    assert found.value.fix


def test_a_join_with_what_is_no_translator(run_of: Runs) -> None:
    other: Any = "runs/other"
    with pytest.raises(InputError, match="join: other is 'runs/other'") as found:
        heedful.load(run_of("transformer"), heedful.Translator).join(other)
    assert found.value.fix == "give a Translator"


@pytest.mark.filterwarnings("ignore:the translation ")
def test_what_was_taken_before_is_taken_still(run_of: Runs, tmp_path: Path) -> None:
    """None as the language that it has; words as a set; a glossary as whatever has pairs; a device of torch."""
    model = heedful.load(run_of("transformer"), heedful.Translator, device=torch.device("cpu"))
    plain = model.translate("ba de", longest=6)
    assert model.translate("ba de", longest=6, to=None, from_language=None, tag=None, temperature=1.0, seed=3) == plain
    terms = (pair for pair in [("gi", "GI")])
    assert isinstance(model.translate("ba de", longest=6, require={"BA", "DE"}, avoid={"KO"}, glossary=terms), str)
    to_image(PIXELS[0]).save(tmp_path / "0.png")
    assert len(heedful.load(run_of("detect"), heedful.Detector).detect([tmp_path / "0.png"], threshold=0.0)) == 1


def test_no_folder_and_no_recipe(tmp_path: Path) -> None:
    nothing: Any = None
    for load in (heedful.load, heedful.Translator.load, heedful.TextClassifier.load, heedful.ChatModel.load):
        with pytest.raises(InputError, match="load: run is None"):
            load(nothing)
    with pytest.raises(InputError, match="train: recipe is None"):
        heedful.train(nothing, tmp_path / "run")
    settings: Any = "train.steps=1"
    with pytest.raises(InputError, match="train: settings is "):
        heedful.train("translate", tmp_path / "run", settings=settings)
    text: Any = b"pairs.tsv"
    with pytest.raises(InputError, match="expected paths, rows or parts"):
        heedful.train("translate", tmp_path / "run", data=text)
    number: Any = 3
    with pytest.raises(InputError, match="recipe: task is 3"):
        heedful.recipe(number)


@pytest.mark.parametrize("switched_off", [torch.no_grad, torch.inference_mode])
def test_nothing_is_trained_without_gradients(switched_off: Any, tmp_path: Path, run_of: Runs) -> None:
    pairs = [(f"one {number}", f"eins {number}") for number in range(9)]
    model = heedful.load(run_of("transformer"))
    with switched_off():
        with pytest.raises(InputError, match="gradients are switched off here") as found:
            heedful.train("translate", tmp_path / "run", data=pairs, settings=["train.steps=1"])
        module = model.trainable()
    assert found.value.fix
    assert not (tmp_path / "run").exists()
    assert not any(weight.is_inference() for weight in module.parameters())
    assert all(weight.requires_grad for weight in module.parameters())


@pytest.mark.parametrize(
    ("task", "words", "what", "fix"),
    [
        ("translat", {}, "train: unknown task 'translat'", "did you mean 'translate'?"),
        ("translate", {"minuts": 3}, "train: unknown argument 'minuts'", "did you mean 'minutes'?"),
        ("translate", {"settings": {"train.stps": 3}}, "settings.train: unknown key 'stps'", "did you mean 'steps'?"),
        ("translate", {"settings": ["train.steps"]}, "settings: 'train.steps' is not key=value", "settings={"),
        ("translate", {"callback": 3}, "train: callback is 3", "give a function"),
        ("translate", {"preset": "transformer-tin"}, "preset: unknown key", "did you mean 'transformer-tiny'?"),
        ("translate", {}, "no data was given", "data=PATH: "),
        (
            "translate",
            {"data": "pairs.tsv", "preset": "rnn-small", "start_from": "a"},
            "train: the preset",
            "start_from",
        ),
        ("tag", {"resume": True}, "{out}: there is no run to continue", "leave out resume to begin one"),
    ],
)
def test_what_is_wrong_with_a_training_is_told_by_arguments(
    task: str, words: dict[str, Any], what: str, fix: str, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    with pytest.raises((InputError, MissingError)) as found:
        heedful.train(task, out, **words)
    assert str(found.value).startswith(what.format(out=out))
    assert fix in found.value.fix
    assert "--" not in f"{found.value} {found.value.fix}"
    assert found.value.__notes__ == [f"fix: {found.value.fix}"]
