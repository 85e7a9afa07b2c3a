"""mBART (Liu et al. 2020) and mBART-50 (Tang et al. 2020), as the Hub holds them: BART in pre-norm, with a norm at the
end of each stack.

Which tokens begin, end and pad a text, and which name languages, is no part of our configuration: `config_to_hf` is
told, and who imports reads it from what stands beside the weights.
"""

from typing import Any

from heedful.exchange.hf import bart, keys, seq2seq
from heedful.exchange.hf.keys import KeyTable
from heedful.exchange.hf.rules import always
from heedful.models.seq2seq import Seq2SeqConfig

TABLE = KeyTable(
    keys=bart.TABLE.keys,
    always=bart.TABLE.always | {"{encoder,decoder}.block.order": "pre", "{encoder,decoder}.final_norm": True},
    # Another value would make another model, or another training.
    fixed=bart.TABLE.fixed | {"add_final_layer_norm": True, "model_type": "mbart", "normalize_before": True},
    irrelevant=bart.TABLE.irrelevant,
)

RULES = (
    *seq2seq.block_rules("in_norm"),
    *bart.AROUND_BLOCKS,
)
config_from_hf = keys.reader(Seq2SeqConfig, TABLE)


def _said(config: Seq2SeqConfig, *, start: int, end: int, first: int | None = None) -> dict[str, Any]:
    """`first`: what every text begins with after `start`."""
    return {"forced_bos_token_id": first, "forced_eos_token_id": end}


# Decoding may begin with the name of a language, which none of these tokens means.
TOKENS = {"bos_token_id": 0, "eos_token_id": 2, "pad_token_id": 1}
FAMILY = seq2seq.family("mBART", "MBartForConditionalGeneration", TABLE, config_from_hf, always(RULES), _said, TOKENS)
