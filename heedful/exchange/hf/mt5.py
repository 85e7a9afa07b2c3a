"""mT5 (Xue et al. 2021), as the Hub holds it: T5's version 1.1 on texts of a hundred languages.

Nothing scales what goes into its output matrix, which is one of its own wherever a file has one: some files say so by
`tie_word_embeddings`, and others say that it is not.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from heedful.errors import InputError
from heedful.exchange.hf import t5
from heedful.models.seq2seq import Seq2SeqConfig

# What each is where a file leaves it out, and where their MT5Config has another default than T5.
DEFAULTS = {"d_ff": 1024, "feed_forward_proj": "gated-gelu", "num_heads": 6, "num_layers": 8, "vocab_size": 250112}
_UNTIED = {"tie_word_embeddings": False, "scale_decoder_outputs": False}


def config_from_hf(theirs: dict[str, Any], names: Collection[str] = (), *, where: str = "config.json") -> Seq2SeqConfig:
    """With an output matrix of its own where their tensors' `names` have one."""
    if theirs.get("model_type") != "mt5":
        raise InputError(f"model_type is {theirs.get('model_type')!r}: only 'mt5' can be read", where=where)
    config = t5.config_from_hf(DEFAULTS | theirs | _UNTIED | {"model_type": "t5"}, where=where)
    return config if t5.HEAD in names else replace(config, tied="all")


def config_to_hf(config: Seq2SeqConfig, *, pad: int, start: int, end: int) -> dict[str, Any]:
    if config.tied not in ("all", "inputs"):
        raise InputError(f"mT5 cannot hold model.tied = {config.tied!r}")
    theirs = t5.config_to_hf(replace(config, tied="inputs"), pad=pad, start=start, end=end)
    kind = {"architectures": ["MT5ForConditionalGeneration"], "model_type": "mt5"}
    return theirs | kind | {"tie_word_embeddings": config.tied == "all"}


FAMILY = replace(t5.FAMILY, name="mT5", config_from_hf=config_from_hf, config_to_hf=config_to_hf, alias="mt5")
