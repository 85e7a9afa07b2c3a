"""XLM-R (Conneau et al. 2020), as the Hub holds it: RoBERTa by another name, on texts of a hundred languages."""

from collections.abc import Collection
from typing import Any

from heedful.errors import InputError
from heedful.exchange.hf import roberta
from heedful.exchange.hf.rules import Rule
from heedful.models.encoder import EncoderConfig

TOKENS = roberta.TOKENS


def rules(config: EncoderConfig) -> tuple[Rule, ...]:
    """The table for a model with these heads, which is RoBERTa's."""
    return roberta.rules(config)


def config_from_hf(theirs: dict[str, Any], names: Collection[str] = (), *, where: str = "config.json") -> EncoderConfig:
    """What their configuration means here, with the heads that their tensors' `names` tell of.

    Raises InputError for a key that is not known, or a value that we cannot build.
    """
    return roberta.config_from_hf(as_roberta(theirs, where), names, where=where)


def config_to_hf(config: EncoderConfig, *, pad: int, start: int, end: int) -> dict[str, Any]:
    """What `config_from_hf` makes this configuration from. Raises InputError for what XLM-R cannot hold."""
    return from_roberta(roberta.config_to_hf(config, pad=pad, start=start, end=end))


def as_roberta(theirs: dict[str, Any], where: str) -> dict[str, Any]:
    """Their configuration in RoBERTa's words. Raises InputError for one of another family."""
    if theirs.get("model_type") != "xlm-roberta":
        raise InputError(f"model_type is {theirs.get('model_type')!r}: only 'xlm-roberta' can be read", where=where)
    return {"vocab_size": 30522, **theirs, "model_type": "roberta"}


def from_roberta(said: dict[str, Any]) -> dict[str, Any]:
    names = [name.replace("Roberta", "XLMRoberta") for name in said["architectures"]]
    return said | {"architectures": names, "model_type": "xlm-roberta"}
