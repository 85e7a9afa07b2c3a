"""Values that are not of the annotation of an argument."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

import numpy
import pytest

from heedful.core.arguments import as_arguments, checks_arguments, in_words, is_a, names_arguments
from heedful.errors import InputError


class Settings(TypedDict, total=False):
    beam: int
    alpha: float


@checks_arguments
def ask(text: str, *, to: str | None = "", words: str | Sequence[str] = (), **settings: Unpack[Settings]) -> str:
    return f"{text} {to} {words} {settings}"


@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        (str, ["", "a"], [None, b"a", 3, Path("a")]),
        (int, [0, -1, numpy.int64(3)], [True, 2.0, "3", None]),
        (float, [1, 0.5, numpy.float32(2)], [False, "0.5", None]),
        (bool, [True, False], [0, 1, None]),
        (Literal["a", "b"], ["a"], ["c", None]),
        (int | None, [None, 3], ["3"]),
        (str | Path, ["a", Path("a")], [None, 3]),
        (Sequence[str], [[], ["a"], ("a",)], ["a", b"a", [None], {"a"}, numpy.array(["a"]), iter(["a"])]),
        (Collection[str], [["a"], {"a"}, {"a": 1}], ["a", iter(["a"]), [3]]),
        (Iterable[Any], [["a"], iter(["a"])], ["a", 3]),
        (Sequence[Sequence[str]], [[["a"]], []], [["a"], "a"]),
        (Mapping[str, int], [{}, {"a": 1}], [{1: 1}, {"a": "b"}, [("a", 1)]]),
        (Any, [None, 3, "a"], []),
    ],
)
def test_a_value_is_of_a_kind_or_not(kind: Any, right: list[object], wrong: list[object]) -> None:
    assert [value for value in right if not is_a(value, kind)] == []
    assert [value for value in wrong if is_a(value, kind)] == []


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (str | None, "a string or None"),
        (str | Sequence[str], "a string or a list of strings"),
        (Sequence[Sequence[str]], "a list of lists of strings"),
        (Sequence[Any], "a list"),
        (Mapping[str, object] | None, "a dict or None"),
        (Path | int | float, "a path, a whole number or a number"),
        (bool, "True or False"),
        (Literal["a", "b"], "one of 'a', 'b'"),
        (Sequence[InputError], "a list of InputErrors"),
    ],
)
def test_what_is_to_be_given_is_told_in_words(kind: Any, words: str) -> None:
    assert in_words(kind) == words


@pytest.mark.parametrize(
    ("words", "what", "fix"),
    [
        ({"text": 3}, "ask: text is 3", "give a string"),
        ({"to": 3}, "ask: to is 3", "give a string or None"),
        ({"words": [None]}, "ask: words is [None]", "give a string or a list of strings"),
        ({"beam": "3"}, "ask: beam is '3'", "give a whole number"),
        ({"beams": 3}, "ask: unknown argument 'beams'", "did you mean 'beam'?"),
        ({"text": b"x" * 99}, f"ask: text is b'{'x' * 58} ...", "give a string"),
    ],
)
def test_an_argument_is_refused_in_one_line(words: dict[str, Any], what: str, fix: str) -> None:
    with pytest.raises(InputError) as found:
        ask(**{"text": "a", **words})
    assert (str(found.value), found.value.fix) == (what, fix)


def test_what_is_right_goes_through() -> None:
    assert ask("a", to="b", words=["c"], beam=2, alpha=1) == "a b ['c'] {'beam': 2, 'alpha': 1}"
    with pytest.raises(TypeError, match="missing a required argument: 'text'"):
        ask(**dict[str, Any]())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("give --set train.minutes=10 or --minutes", 'give settings={"train.minutes": 10} or minutes'),
        ("--set data.cut=true where", 'settings={"data.cut": True} where'),
        ("--from RUN and --set train.optimizer=adam", 'start_from=RUN and settings={"train.optimizer": "adam"}'),
        ("leave out --lora", 'leave out settings["train.lora"]'),
        ("name another --out", "name another out"),
        ("take --device cpu", 'take device="cpu"'),
        ("heed train --resume --out runs/a", 'heedful.train(TASK, "runs/a", resume=True)'),
        ("heed train", "train"),
        ("--data X; or heed import Y --out Z", "data=X; or heed import Y --out Z"),
        ("--set: my--file.tsv", "settings: my--file.tsv"),
        ("nothing to reword, at all", "nothing to reword, at all"),
    ],
)
def test_options_are_told_as_arguments(text: str, said: str) -> None:
    assert as_arguments(text, {"lora": "train.lora"}) == said


def test_an_error_shows_how_to_mend_it() -> None:
    @names_arguments(dict)
    def train() -> None:
        raise InputError("no data was given", where="heed train", fix="--data PATH")

    with pytest.raises(InputError, match=r"(?m)^train: no data was given$") as raised:
        train()
    assert raised.value.fix == "data=PATH"
    assert raised.value.__notes__ == ["fix: data=PATH"]
    assert not hasattr(InputError("nothing"), "__notes__")
