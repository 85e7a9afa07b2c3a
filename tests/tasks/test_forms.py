"""A text is asked in either form of Unicode, and answered alike: composed, or letters and accents apart."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tokenizers.normalizers import NFC, NFD
from torch import Tensor

import heedful
from heedful.tasks.answer.use import normalised, word_f1
from heedful.tasks.translate.segment import segments_of
from heedful.tasks.translate.wishes import wishes_of

apart, composed = NFD().normalize_str, NFC().normalize_str
CONTEXT = "bä gïb dé kö, 가 ゲ."
ASKED: dict[str, Callable[[Any, Callable[[str], str]], Any]] = {
    "transformer": lambda model, form: model.search([form("bä dé")], beam=2, prefix=[form("É")], longest=6),
    "gpt": lambda model, form: [model.generate(form("bä"), tokens=6, temperature=0.0), model.choose("b", [form("ä")])],
    "chat": lambda model, form: model.chat(form("bä"), tokens=5, temperature=0.0),
    "spans": lambda model, form: model.search([form("bä <mask> dé")], beam=1, longest=5),
    "fill": lambda model, form: model.fill(form("bä <mask>")),
    "label": lambda model, form: model.classify(form("bä"), pairs=form("kö")),
    "choice": lambda model, form: model.classify(form("bä"), choices=[form("bä"), form("nö")]),
    "tag": lambda model, form: model.tag(form("bä dé")),
    "answer": lambda model, form: model.answer(form("bä?"), form(CONTEXT)),
    "reward": lambda model, form: model.reward(form("bä dé"), prompts=form("kö")),
    "parse": lambda model, form: model.parse(form("ä bä dé")),
    "match": lambda model, form: model.embed([form("bä")]),
}


def plain(value: Any) -> Any:
    """The value with all texts composed, and without where they stand."""
    match value:
        case Tensor():
            return value.tolist()
        case str():
            return composed(value)
        case tuple() if hasattr(value, "_asdict"):
            return {key: plain(item) for key, item in value._asdict().items() if key not in ("start", "end", "spans")}
        case dict():
            return {key: plain(item) for key, item in value.items()}
        case list() | tuple():
            return [*map(plain, value)]
        case int() | float() | None:
            return value
    return plain(vars(value)) if hasattr(value, "__dict__") else composed(str(value))


@pytest.mark.filterwarnings("ignore:.*the longest source that it was trained on")
@pytest.mark.parametrize("name", ASKED)
def test_a_text_in_either_form_has_the_same_answer(name: str, run_of: Callable[[str], Path]) -> None:
    model = heedful.load(run_of(name))
    one, other = (plain(ASKED[name](model, form)) for form in (composed, apart))
    assert one == other


def test_an_answer_is_of_the_text_that_was_given(run_of: Callable[[str], Path]) -> None:
    model, context = heedful.load(run_of("answer")), apart(CONTEXT)
    found = model.answer("bä?", context, top=9)
    assert found
    for one in found:
        assert one.text == context[one.start : one.end]
        assert composed(one.text) in CONTEXT
    assert [word.word for word in heedful.load(run_of("tag")).tag(context)] == context.split()


def test_wishes_are_of_either_form(run_of: Callable[[str], Path]) -> None:
    model = heedful.load(run_of("transformer"))
    for form, other in ((composed, apart), (apart, composed)):
        wishes = wishes_of(form("BÄ"), form("ÉÉ"), {form("gï"): form("LÜ|KÖ")}, model.languages)
        (made,) = model.search([other("kö gï")], wishes=wishes, longest=20)
        assert "BÄ" in made.text
        assert "LÜ" in made.text or "KÖ" in made.text
        assert "no " not in made.warning
        assert [term["used"] for term in made.terms] == [True]


def test_an_answer_in_another_form_is_right() -> None:
    assert normalised(apart("Das Café")) == normalised("das café")
    assert word_f1(apart("ein Café"), "ein Café") == 1


def test_a_long_word_is_cut_between_the_same_letters(run_of: Callable[[str], Path]) -> None:
    model = heedful.load(run_of("transformer"))
    one, other = (
        [composed(segment.text) for segment in segments_of(model, form("bädéä\u0301" * 40))]
        for form in (composed, apart)
    )
    assert len(one) > 3
    assert one == other
