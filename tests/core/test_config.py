"""Configurations: to JSON and back is identity, and a word that is not understood is never passed over."""

import json
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypedDict

import pytest

from heedful.core.attention import AttentionConfig
from heedful.core.block import BlockConfig, StackConfig
from heedful.core.config import from_json, to_json, unknown_key
from heedful.core.embed import EmbedConfig
from heedful.core.position import PositionConfig
from heedful.errors import InputError
from heedful.models.presets import TRANSLATORS, translator_config


@dataclass(frozen=True)
class Inner:
    width: int
    rate: float = 0.5


@dataclass(frozen=True, kw_only=True)
class Outer:
    name: str
    inner: Inner
    kind: Literal["post", "pre"] = "post"
    flag: bool = False
    maybe: int | None = None
    other: Inner | None = None
    sizes: tuple[int, ...] = ()
    parts: tuple[Inner, ...] = ()


WHOLE = Outer(
    name='Ä\n"',
    inner=Inner(3, 1e-9),
    kind="pre",
    flag=True,
    maybe=0,
    other=Inner(4),
    sizes=(1, 2, 3),
    parts=(Inner(1), Inner(2, 0.0)),
)
PLAIN = Outer(name="", inner=Inner(0))


@pytest.mark.parametrize("config", [WHOLE, PLAIN])
def test_there_and_back_is_identity(config: Outer) -> None:
    data = to_json(config)
    again = from_json(Outer, json.loads(json.dumps(data)))
    assert again == config
    assert to_json(again) == data
    assert all(type(getattr(again, field.name)) is type(getattr(config, field.name)) for field in fields(Outer))


def test_everything_is_written_down() -> None:
    assert set(to_json(PLAIN)) == {field.name for field in fields(Outer)}


@pytest.mark.parametrize("name", sorted(TRANSLATORS))
def test_every_preset_there_and_back(name: str) -> None:
    config = translator_config(TRANSLATORS[name], source_vocab=50, target_vocab=50, joint=True)
    assert from_json(type(config), json.loads(json.dumps(to_json(config)))) == config


def test_a_deep_configuration_there_and_back() -> None:
    attention = AttentionConfig(n_heads=4, kv_heads=2, scale=1.0, position=PositionConfig(kind="rotary", theta=500.0))
    block = BlockConfig(attention=attention, cross=replace(attention, gate=True), d_ff=8, order="sandwich")
    config = StackConfig(n_layers=2, block=block, final_norm=True, shared_position=PositionConfig(kind="alibi"))
    assert from_json(StackConfig, json.loads(json.dumps(to_json(config)))) == config


def test_what_is_left_out_is_the_default() -> None:
    assert from_json(Outer, {"name": "", "inner": {"width": 0}}) == PLAIN
    assert from_json(EmbedConfig, {"vocab_size": 5}) == EmbedConfig(vocab_size=5)


def test_a_whole_number_is_a_number() -> None:
    rate = from_json(Inner, {"width": 1, "rate": 2}).rate
    assert rate == 2.0
    assert isinstance(rate, float)


def test_what_is_built_already_is_taken() -> None:
    assert from_json(Outer, {"name": "x", "inner": Inner(3), "sizes": (1, 2)}).inner == Inner(3)


WRONG: list[tuple[dict[str, Any] | object, str, str]] = [
    ({"widht": 3}, "config: unknown key 'widht'", "did you mean 'width'?"),
    ({"zzz": 3}, "config: unknown key 'zzz'", "known: rate, width"),
    ({}, "config: missing width", ""),
    ({"width": 3.0}, "config.width: expected int, found 3.0", ""),
    ({"width": "3"}, "config.width: expected int, found '3'", ""),
    ({"width": True}, "config.width: expected int, found True", ""),
    ({"width": None}, "config.width: expected int, found None", ""),
    ({"width": 3, "rate": True}, "config.rate: expected float, found True", ""),
    ({"width": 3, "rate": "0.1"}, "config.rate: expected float, found '0.1'", ""),
    ([3], "config: expected an object, found [3]", ""),
    (None, "config: expected an object, found None", ""),
]


@pytest.mark.parametrize(("data", "message", "fix"), WRONG)
def test_a_wrong_value_is_named(data: object, message: str, fix: str) -> None:
    with pytest.raises(InputError) as caught:
        from_json(Inner, data)
    assert str(caught.value) == message
    assert caught.value.fix == fix


DEEP: list[tuple[dict[str, Any], str]] = [
    ({"inner": {"width": "x"}}, "model.inner.width: expected int, found 'x'"),
    ({"inner": {"width": 1, "rat": 1}}, "model.inner: unknown key 'rat'"),
    ({"inner": {}}, "model.inner: missing width"),
    ({"inner": 3}, "model.inner: expected an object, found 3"),
    ({"inner": None}, "model.inner: expected an object, found None"),
    ({"kind": "middle"}, "model.kind: 'middle' is not one of 'post', 'pre'"),
    ({"kind": None}, "model.kind: None is not one of 'post', 'pre'"),
    ({"flag": 1}, "model.flag: expected bool, found 1"),
    ({"name": 1}, "model.name: expected str, found 1"),
    ({"maybe": 1.5}, "model.maybe: expected int, found 1.5"),
    ({"maybe": True}, "model.maybe: expected int, found True"),
    ({"other": {"width": 1, "rates": 1}}, "model.other: unknown key 'rates'"),
    ({"sizes": 3}, "model.sizes: expected a list, found 3"),
    ({"sizes": [1, "2"]}, "model.sizes[1]: expected int, found '2'"),
    ({"parts": [{"width": 1}, {"width": 1, "rte": 0.1}]}, "model.parts[1]: unknown key 'rte'"),
]


@pytest.mark.parametrize(("data", "message"), DEEP)
def test_a_wrong_value_deep_inside_is_named_with_its_place(data: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        from_json(Outer, {"name": "x", "inner": {"width": 1}} | data, where="model")
    assert str(caught.value) == message


def test_all_that_is_missing_is_named() -> None:
    with pytest.raises(InputError, match="missing name, inner"):
        from_json(Outer, {})


def test_the_nearest_key() -> None:
    assert unknown_key("n_head", ["d_model", "n_heads", "n_layers"], where="x").fix == "did you mean 'n_heads'?"
    assert unknown_key("n_head", [], where="x").fix == "leave it out"
    assert unknown_key("n1", ["T1", "N1", "N10"], where="x").fix == "did you mean 'N1'?"


class Chosen(TypedDict, total=False):
    width: int
    rate: float


@dataclass(frozen=True)
class WithChosen:
    chosen: Chosen


def test_named_arguments_are_checked_as_fields_are() -> None:
    assert from_json(WithChosen, {"chosen": {"rate": 1}}).chosen == {"rate": 1.0}
    for chosen, said in (({"widht": 1}, "did you mean 'width'"), ({"width": "1"}, "expected int"), ([], "an object")):
        with pytest.raises(InputError) as error:
            from_json(WithChosen, {"chosen": chosen})
        assert said in f"{error.value} {error.value.fix}"


def test_numbers_that_cannot_be_are_named() -> None:
    with pytest.raises(InputError, match="n_heads is 0"):
        AttentionConfig(n_heads=0)
    with pytest.raises(InputError, match="a window of -1 keys"):
        BlockConfig(attention=AttentionConfig(n_heads=1), d_ff=4, window=-1)


def test_a_field_of_one_dataclass_or_another_is_told_by_its_keys() -> None:
    @dataclass(frozen=True)
    class Tall:
        height: int

    @dataclass(frozen=True)
    class Either:
        part: Inner | Tall

    for either in (Either(Inner(3)), Either(Tall(4))):
        assert from_json(Either, to_json(either)) == either
        assert from_json(Either, {"part": either.part}) == either
    with pytest.raises(InputError, match=r"part: unknown key 'heigth'"):
        from_json(Either, {"part": {"heigth": 4}})
    with pytest.raises(InputError, match=r"part: expected an object, found 3"):
        from_json(Either, {"part": 3})
