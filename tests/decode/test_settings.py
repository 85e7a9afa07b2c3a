"""Settings that are no numbers, in a process of its own: where annotations are executed they are found before; and
settings beyond their bounds."""

from dataclasses import fields
from math import inf, nan

import pytest

from as_used import printed
from heedful.decode.settings import Decoding
from heedful.errors import InputError
from heedful.tasks.shared.options import Offered

BOUNDED = {each.name: each for each in fields(Decoding) if each.metadata.get("least") is not None}

SCRIPT = """
import torch
from heedful.decode.settings import Decoding, Sampling
from heedful.errors import InputError
for kind, name, value in (
    (Sampling, "temperature", "1"),
    (Sampling, "seed", None),
    (Decoding, "top_p", [0.5]),
    (Decoding, "beam", "5"),
    (Decoding, "longest", "all"),
    (Sampling, "top_k", 2.5),
    (Sampling, "seed", 1.0),
    (Decoding, "longest", 9.5),
):
    try:
        kind(**{name: value})
    except InputError as error:
        print(error, "-", error.fix)
Decoding(longest=None, temperature=1, beam=torch.arange(4).numpy()[2], forced_eos=True)
"""
VERBS = """
from heedful.errors import InputError
from heedful.tasks.chat.use import ChatModel
from heedful.tasks.generate.use import LanguageModel
from heedful.tasks.paint.use import Painter
from heedful.tasks.parse.use import Parser
for ask in (
    lambda: LanguageModel.generate(object.__new__(LanguageModel), "a", tokens=2.5),
    lambda: LanguageModel.generate(object.__new__(LanguageModel), "a", samples=1.5),
    lambda: LanguageModel.generate(object.__new__(LanguageModel), "a", beam=2.5),
    lambda: next(LanguageModel.stream(object.__new__(LanguageModel), "a", tokens=2.5)),
    lambda: ChatModel.asked(object.__new__(ChatModel), [{"role": "user", "content": "a"}], 2.5),
    lambda: Painter.paint(object.__new__(Painter), samples=1.5),
    lambda: Parser.parse(object.__new__(Parser), "a", beam=2.5),
):
    try:
        ask()
    except InputError as error:
        print(error, "-", error.fix)
"""


def test_what_is_no_number_is_refused() -> None:
    assert printed(SCRIPT, VERBS)[0] == [
        "temperature is '1' - give a number",
        "seed is None - give a whole number",
        "top_p is [0.5] - give a number",
        "beam is '5' - give a whole number",
        "longest is 'all' - give a whole number or None",
        "top_k is 2.5 - give a whole number",
        "seed is 1.0 - give a whole number",
        "longest is 9.5 - give a whole number or None",
    ]


def test_numbers_beside_settings_are_whole() -> None:
    assert [told.removesuffix(" or None") for told in printed(SCRIPT, VERBS)[1]] == [
        f"{what} - give a whole number"
        for what in (
            "generate: tokens is 2.5",
            "generate: samples is 1.5",
            "generate: beam is 2.5",
            "stream: tokens is 2.5",
            "asked: tokens is 2.5",
            "paint: samples is 1.5",
            "parse: beam is 2.5",
        )
    ]


@pytest.mark.parametrize("name", BOUNDED)
def test_what_is_beyond_the_bounds_is_refused_by_each_door(name: str) -> None:
    least, most, kind = BOUNDED[name].metadata["least"], BOUNDED[name].metadata["most"], BOUNDED[name].type
    Decoding(**{name: least})
    for value in (least - 1, *([] if most is None else [most + 1]), *([nan, -inf] if kind is float else [])):
        with pytest.raises(InputError, match=f"{name} is "):
            Decoding(**{name: value})
    (option,) = Offered(name).parameters()[name].annotation.__metadata__
    assert (option.min, option.max) == (least, most)
