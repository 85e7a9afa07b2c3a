"""Longformer (Beltagy et al. 2020), as the Hub holds it: RoBERTa with a window in each layer, and with further maps for
tokens that see all, which nothing uses where there are none, as when masked words are predicted."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from heedful.errors import InputError
from heedful.exchange.hf import bert, causal, keys, roberta
from heedful.exchange.hf.family import Family
from heedful.exchange.hf.rules import Rule, inside
from heedful.models.encoder import EncoderConfig
from heedful.models.longformer import LONGFORMER

_GLOBAL = {f"attention.self.{name}_global": f"global_attention.{name}" for name in ("query", "key", "value")}


def rules(config: EncoderConfig) -> tuple[Rule, ...]:
    """The table for a model with these heads. Where there is none, their names lack the first "longformer."."""
    table = [_renamed(rule) for rule in roberta.rules(config)]
    for prefix, written in (("longformer.", config.mlm_head), ("", not config.mlm_head)):
        names = inside(f"{prefix}encoder.layer.{{i}}", "stack.blocks.{i}", _GLOBAL)
        table += bert.modules(names, written=written)
    return tuple(table)


def _renamed(rule: Rule) -> Rule:
    return replace(rule, theirs=rule.theirs.replace("roberta.", "longformer.", 1))


def config_from_hf(theirs: dict[str, Any], names: Collection[str] = (), *, where: str = "config.json") -> EncoderConfig:
    """What their configuration means here, with the heads that their tensors' `names` tell of."""
    if theirs.get("model_type") != LONGFORMER:
        raise InputError(f"model_type is {theirs.get('model_type')!r}: only 'longformer' can be read", where=where)
    like = {"vocab_size": 30522} | theirs
    like = {key: value for key, value in like.items() if key not in ("attention_window", "onnx_export")}
    config = roberta.config_from_hf(like | {"model_type": "roberta"}, names, where=where)
    windows = theirs.get("attention_window", 512)
    windows = [windows] * config.stack.n_layers if type(windows) is int else windows
    sound = isinstance(windows, list) and all(type(each) is int and each > 0 and each % 2 == 0 for each in windows)
    if not sound or len(windows) != config.stack.n_layers:
        what = f"attention_window is {windows!r}: an even number of tokens for each of {config.stack.n_layers} layers"
        raise InputError(what, where=where)
    layers = [replace(config.stack.block, kind=LONGFORMER, window=each // 2 + 1) for each in windows]
    return replace(config, stack=causal.layered(replace(config.stack, block=layers[0]), layers))


def config_to_hf(config: EncoderConfig, *, pad: int, start: int, end: int) -> dict[str, Any]:
    """Raises InputError for a model with global tokens too, which their configuration cannot hold."""
    plain = replace(config.stack.block, kind="transformer", window=None, global_tokens=0)
    like = replace(config, stack=replace(config.stack, block=plain, pattern=()))
    theirs = roberta.config_to_hf(like, pad=pad, start=start, end=end)
    kind = [name.replace("Roberta", "Longformer") for name in theirs["architectures"]]
    theirs |= {"architectures": kind, "model_type": LONGFORMER, "sep_token_id": end}
    windows = (layer.window for layer in config.stack.layers)
    theirs["attention_window"] = [512 if window is None else 2 * (window - 1) for window in windows]
    read = config_from_hf(theirs, [rule.theirs for rule in rules(config)])
    return keys.nothing_lost(theirs, config, read, "Longformer")


FAMILY = Family(
    "Longformer",
    EncoderConfig,
    bert.loads,
    config_from_hf,
    config_to_hf,
    rules,
    tokens={"pad_token_id": roberta.UNUSED - 1},
)
