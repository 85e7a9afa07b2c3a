"""The tables of configuration keys, and the engine that applies them both ways."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest

from heedful.errors import InputError
from heedful.exchange.families import FAMILIES
from heedful.exchange.hf import (
    bart,
    bert,
    clip,
    decision_transformer,
    detr,
    distilbert,
    esm,
    gemma,
    gemma2,
    gemma3,
    gpt2,
    llama,
    m2m100,
    marian,
    mbart,
    mistral,
    mixtral,
    modernbert,
    pegasus,
    qwen2,
    qwen3,
    qwen3_moe,
    roberta,
    segformer,
    smollm3,
    swin,
    t5,
    vit,
    wav2vec2,
    whisper,
)
from heedful.exchange.hf.keys import How, Key, KeyTable, built, paths

MODULES: dict[str, Any] = {
    module.__name__.rpartition(".")[2]: module
    for module in (
        bart, bert, clip, decision_transformer, detr, distilbert, esm, gemma, gemma2, gpt2, llama, m2m100, marian,
        mbart, mistral, mixtral, modernbert, pegasus, qwen2, qwen3, qwen3_moe, roberta, segformer, smollm3, swin,
        t5, vit, wav2vec2, whisper,
    )
} | {"gemma3_text": gemma3}  # fmt: skip
# Keys that mean something in one place of a file and elsewhere nothing; of RoBERTa, keys of BERT that are fixed.
TWICE = {
    "clip": {"eos_token_id"},
    "detr": {"id2label"},
    "roberta": {"hidden_act", "pad_token_id"},
    "segformer": {"id2label"},
    "swin": {"id2label"},
    "vit": {"id2label"},
}
AS = {
    "deit": "vit",
    "longformer": "roberta",
    "m2m_100": "m2m100",
    "mt5": "t5",
    "xlm-roberta": "roberta",
}  # whose table they have
NEEDED = {"esm": {"position_embedding_type": "rotary", "vocab_size": 33}}  # keys without a default that can be built


@dataclass(frozen=True, kw_only=True)
class Inner:
    width: int
    rate: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Outer:
    left: Inner
    right: Inner
    rate: float = 0.0


def halved(key: str, value: Any, where: str) -> int:
    if value % 2:
        raise InputError(f"{key} is {value}, which is odd", where=where)
    return int(value) // 2


TABLE = KeyTable(
    keys={
        "both": Key(8, "{right,left}.width", How(halved, lambda width: 2 * width)),
        "rate": Key(0.5, "{left,right}.rate rate"),
        "own": Key("x"),
    },
    fixed={"model_type": "made"},
    irrelevant={"noise"},
)


def read(theirs: dict[str, Any]) -> Outer:
    got = TABLE.understood({"model_type": "made"} | theirs, "there")
    return built(Outer, TABLE.in_ours(got, "there"), "there")


def test_paths() -> None:
    assert [*paths("{a,b.c}.d.{e,f} g")] == ["a.d.e", "a.d.f", "b.c.d.e", "b.c.d.f", "g"]
    assert [*paths("")] == []


def test_a_table_reads_what_it_writes() -> None:
    config = read({"both": 6, "rate": 0.25, "own": "y", "noise": None})
    assert config == Outer(left=Inner(width=3, rate=0.25), right=Inner(width=3, rate=0.25), rate=0.25)
    assert TABLE.in_theirs(config) == {"model_type": "made", "both": 6, "rate": 0.25}  # and "own" is the family's
    assert read(TABLE.in_theirs(config)) == config
    assert read({}) == Outer(left=Inner(width=4, rate=0.5), right=Inner(width=4, rate=0.5), rate=0.5)


def test_the_first_path_is_written() -> None:
    config = Outer(left=Inner(width=1, rate=0.1), right=Inner(width=2, rate=0.2), rate=0.3)
    assert TABLE.in_theirs(config) == {"model_type": "made", "both": 4, "rate": 0.1}


@pytest.mark.parametrize(
    ("theirs", "message"),
    [
        ({"bot": 1}, "unknown key 'bot'"),
        ({"model_type": "other"}, "model_type is 'other': only 'made' can be read"),
        ({"both": 3}, "both is 3, which is odd"),
        ({"rate": "much"}, "expected float, found 'much'"),
    ],
)
def test_what_is_in_no_table_is_refused(theirs: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(theirs)


@pytest.mark.parametrize("name", sorted(MODULES))
def test_every_key_has_one_meaning(name: str) -> None:
    tables = [value for value in vars(MODULES[name]).values() if isinstance(value, KeyTable)]
    told = [Counter([*table.keys, *table.fixed, *table.irrelevant]) for table in tables]
    assert {key for times in told for key, count in times.items() if count > 1} == TWICE.get(name, set())


@pytest.mark.parametrize("name", sorted(MODULES))
def test_nothing_of_ours_has_two_keys(name: str) -> None:
    module = MODULES[name]
    tables = [value for key, value in vars(module).items() if key in ("TABLE", "TEXT_TABLE", "VISION_TABLE")]
    patterns = [key.ours for table in tables for key in table.keys.values()]
    always = [path for table in tables for path in table.always]
    times = Counter(path for pattern in (*patterns, *always) for path in paths(pattern))
    assert set(times.values()) == {1}


@pytest.mark.parametrize("name", sorted(FAMILIES.keys() - {"vision-encoder-decoder"}))
def test_every_key_that_stands_in_ours_is_written(name: str) -> None:
    """But the classes' names, which only an export knows. The family of two halves has the tables of these."""
    module, config = (
        MODULES[AS.get(name, name)],
        FAMILIES[name].config_from_hf({"model_type": name, **NEEDED.get(name, {})}),
    )
    written = module.TABLE.in_theirs(config)
    assert {key for key, rule in module.TABLE.keys.items() if rule.ours} - written.keys() <= {"id2label"}
