"""XLM-R (Conneau et al. 2020), as the Hub holds it: RoBERTa by another name, on texts of a hundred languages."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from heedful.errors import InputError
from heedful.exchange.hf import roberta
from heedful.models.encoder import EncoderConfig


def config_from_hf(theirs: dict[str, Any], names: Collection[str] = (), *, where: str = "config.json") -> EncoderConfig:
    """What their configuration means here, with the heads that their tensors' `names` tell of."""
    return roberta.config_from_hf(as_roberta(theirs, where), names, where=where)


def config_to_hf(config: EncoderConfig, *, pad: int, start: int, end: int) -> dict[str, Any]:
    return from_roberta(roberta.config_to_hf(config, pad=pad, start=start, end=end))


def as_roberta(theirs: dict[str, Any], where: str) -> dict[str, Any]:
    """Their configuration in RoBERTa's words. Raises InputError for one of another family."""
    if theirs.get("model_type") != "xlm-roberta":
        raise InputError(f"model_type is {theirs.get('model_type')!r}: only 'xlm-roberta' can be read", where=where)
    return {"vocab_size": 30522, **theirs, "model_type": "roberta"}


def from_roberta(said: dict[str, Any]) -> dict[str, Any]:
    names = [name.replace("Roberta", "XLMRoberta") for name in said["architectures"]]
    return said | {"architectures": names, "model_type": "xlm-roberta"}


FAMILY = replace(
    roberta.FAMILY, name="XLM-R", config_from_hf=config_from_hf, config_to_hf=config_to_hf, alias="xlm-roberta"
)
