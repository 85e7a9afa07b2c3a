"""One in, one out; a list in, a list out."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from torch.utils._pytree import tree_flatten

import heedful
from cases import PIXELS
from heedful.data.images.files import to_image
from heedful.errors import InputError
from heedful.tasks.shared.opened import Opened


@pytest.fixture(scope="module")
def picture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pictures") / "0.png"
    to_image(PIXELS[0]).save(path)
    return path


ONE: dict[str, tuple[str, list[Any], dict[str, list[Any]]]] = {
    "transformer": ("translate", ["ba de", "gi"], {"prefix": ["BA", ""]}),
    "gpt": ("generate", ["ba de", "gi"], {}),
    "spans": ("translate", ["ba <mask>", "gi <mask>"], {}),
    "fill": ("fill", ["ba <mask>", "<mask> gi"], {}),
    "label": ("classify", ["ba de", "gi"], {"pairs": ["ko", "gi"]}),
    "choice": ("classify", ["ba de", "gi"], {"choices": [["ba", "no"], ["gi", "ko"]]}),
    "tag": ("tag", ["ba de", "gi"], {}),
    "answer": ("answer", ["ba?", "gi?"], {"contexts": ["ba is de.", "gi is ko."]}),
    "reward": ("reward", ["ba de", "gi"], {"prompts": ["ko", "gi"]}),
    "parse": ("parse", ["a ba de", "gi"], {}),
    "classify-images": ("classify", [], {}),
    "detect": ("detect", [], {}),
    "segment": ("segment", [], {}),
    "match": ("match", [], {}),
    "describe": ("describe", [], {}),
}


@pytest.mark.filterwarnings("ignore:.*the longest source that it was trained on")
@pytest.mark.filterwarnings("ignore:.*the translation is empty")
@pytest.mark.parametrize("name", ONE)
def test_one_in_one_out(name: str, run_of: Callable[[str], Path], picture: Path) -> None:
    method, given, beside = ONE[name]
    ask = getattr(heedful.load(run_of(name)), method)
    given = given or [picture, str(picture)]
    more = {"texts": ["a", "b"]} if name == "match" else {}
    for i, one in enumerate(given):
        own = {key: values[i] for key, values in beside.items()}
        listed = {key: [value] for key, value in own.items()}
        alone, (first,) = ask(one, **own, **more), ask([one], **listed, **more)
        assert same(alone, first)
        assert same(ask((one,), **listed, **more)[0], first)


@pytest.mark.parametrize("name", [name for name, (_, given, _) in ONE.items() if given])
@pytest.mark.parametrize("wrong", [1, [None], ["ba", 2.0], b"ba", [["ba"]]])
def test_what_is_no_text_is_refused(name: str, wrong: object, run_of: Callable[[str], Path]) -> None:
    method, _, beside = ONE[name]
    with pytest.raises(InputError, match=rf"{method}: .* is no text"):
        getattr(heedful.load(run_of(name)), method)(wrong, **beside)


@pytest.mark.parametrize("name", [name for name, (_, given, _) in ONE.items() if not given])
def test_a_picture_that_is_no_path_is_refused(name: str, run_of: Callable[[str], Path], picture: Path) -> None:
    ask = getattr(heedful.load(run_of(name)), ONE[name][0])
    more = {"texts": ["a", "b"]} if name == "match" else {}
    for wrong in (to_image(PIXELS[0]), PIXELS[0].numpy(), picture.read_bytes(), None, [picture, None]):
        with pytest.raises(InputError, match=rf"{ONE[name][0]}: a .* is no path"):
            ask(wrong, **more)


@pytest.mark.parametrize("name", [name for name, (_, _, beside) in ONE.items() if beside])
def test_what_is_not_one_for_each_is_refused(name: str, run_of: Callable[[str], Path]) -> None:
    """A text, which is none of several, neither."""
    method, given, beside = ONE[name]
    ask, ((key, entries),) = getattr(heedful.load(run_of(name)), method), beside.items()
    wrong = [entries[:1], [*entries, entries[0]], "ab", *([["ba", "no"]] if name == "choice" else [])]
    for each in wrong:
        with pytest.raises(InputError, match=rf"{method}: the {key} are not .* for each"):
            ask(given, **{key: each})


def test_a_vector_of_one(run_of: Callable[[str], Path], picture: Path) -> None:
    matcher = heedful.load(run_of("match"))
    assert same(matcher.embed("a"), matcher.embed(["a"])[0])
    assert same(matcher.embed_texts("a"), matcher.embed_texts(["a"])[0])
    assert same(matcher.embed_images(picture), matcher.embed_images([picture])[0])
    assert matcher.search("a", [picture]) == matcher.search(["a"], [str(picture)])[0]
    painter = heedful.load(run_of("paint"))
    assert same(painter.begin([str(picture)]), painter.begin([picture]))
    model = heedful.load(run_of("gpt"))
    assert model.likelihood("ba de") == model.likelihood(["ba de"])[0]
    assert model.choose("ba", " de") == model.choose("ba", [" de"])


@pytest.mark.parametrize(
    "wrong", [None, numpy.array(["ba", "de"]), (text for text in ["ba"]), [{"role": "user", "content": "ba"}]]
)
def test_what_is_asked_is_a_text_or_a_file(wrong: Any, run_of: Callable[[str], Path]) -> None:
    model = heedful.load(run_of("gpt"))
    ask, look, attention = map(inspect.unwrap, (Opened.ask, Opened.look, Opened.attention))  # without their annotations
    for each in (lambda: ask(model, "score", wrong), lambda: look(model, wrong), lambda: attention(model, wrong)):
        with pytest.raises(InputError, match="expected a text or a path"):
            each()


@pytest.mark.parametrize(("name", "verb", "beside"), [("label", "classify", "pairs"), ("answer", "answer", "contexts")])
def test_entries_of_a_question_are_one_for_each(
    name: str, verb: str, beside: str, run_of: Callable[[str], Path]
) -> None:
    with pytest.raises(InputError, match=f"2 {beside} for 1 text"):
        heedful.load(run_of(name)).ask(verb, ["ba"], {beside: ["ba", "de"]})


def test_a_text_in_place_of_a_list_is_not_read_letter_by_letter(run_of: Callable[[str], Path]) -> None:
    for name in ("gpt", "fill"):
        model = heedful.load(run_of(name))
        assert model.measure("ba de gi ko") == model.measure(["ba de gi ko"])
    model = heedful.load(run_of("gpt"))
    for contexts, choices in (("ba", ["de", "gi"]), (["ba"], "d"), (["ba"], ["de"])):
        with pytest.raises(InputError, match=r"weigh: (contexts|choices) is "):
            model.weigh(contexts, choices)
    for sentences in ("ba de", ["ba de"]):
        with pytest.raises(InputError, match="tag_words: sentences is "):
            heedful.load(run_of("tag")).tag_words(sentences)


def same(one: Any, other: Any) -> bool:
    (leaves, shape), (others, other_shape) = tree_flatten(one), tree_flatten(other)
    equal = (a.equal(b) if isinstance(a, torch.Tensor) else a == b for a, b in zip(leaves, others, strict=True))
    return bool(shape == other_shape and all(equal))
