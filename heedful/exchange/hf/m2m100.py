"""M2M-100 (Fan et al. 2020) and NLLB-200 (NLLB Team 2022), as the Hub holds them: the pre-norm Transformer with biases
everywhere but on the logits, one matrix for source, target and output, and positions as fairseq computes them.

Which tokens begin, end and pad a text, and which name languages, is no part of our configuration: `config_to_hf` is
told, and who imports reads it from what stands beside the weights.
"""

from typing import Any

from heedful.exchange.hf import keys, seq2seq
from heedful.exchange.hf.keys import Key, KeyTable
from heedful.exchange.hf.rules import Rule, always
from heedful.models.seq2seq import Seq2SeqConfig

# Whole layers were left out now and then when theirs were trained, and are not here.
_LAYERDROP = {"decoder_layerdrop", "encoder_layerdrop"}
TABLE = KeyTable(
    # With what each is where a file leaves it out (their M2M100Config).
    keys=seq2seq.stack_keys(activation="relu", d_model=1024, n_heads=16, d_ff=4096, n_layers=12)
    | {
        "activation_dropout": Key(0.0, "{decoder,encoder}.block.mlp_dropout"),
        "attention_dropout": Key(0.1, "decoder.block.{attention,cross}.dropout encoder.block.attention.dropout"),
        "dropout": Key(0.1, "{decoder.block,encoder.block,source,target}.dropout"),
        "max_position_embeddings": Key(1024, "{source,target}.context_length"),
        "scale_embedding": Key(True, "{source,target}.scaled"),
        "vocab_size": Key(128112, "{source,target}.vocab_size"),
    },
    always={
        "{source,target}.position_embeddings": "fairseq",
        "{encoder,decoder}.block.order": "pre",
        "{encoder,decoder}.final_norm": True,
        "init": "normal",
    },
    # Another value would make another model, or another training.
    fixed={key: value for key, value in seq2seq.FIXED.items() if key not in _LAYERDROP}
    | {
        "add_final_layer_norm": True,
        "model_type": "m2m_100",
        "normalize_before": True,
        "normalize_embedding": False,
        "static_position_embeddings": True,
        "tie_word_embeddings": True,
    },
    irrelevant=seq2seq.IRRELEVANT_TEXT | _LAYERDROP,
)

RULES = (
    *seq2seq.block_rules("in_norm"),
    *(Rule(f"model.{stack}.embed_positions.weights", None) for stack in ("encoder", "decoder")),
    *seq2seq.SHARED,
)
config_from_hf = keys.reader(Seq2SeqConfig, TABLE)


def _said(config: Seq2SeqConfig, *, start: int, end: int) -> dict[str, Any]:
    return {"decoder_layerdrop": 0.0, "encoder_layerdrop": 0.0}


TOKENS = {"decoder_start_token_id": 2, "eos_token_id": 2, "pad_token_id": 1}
FAMILY = seq2seq.family(
    "M2M-100", "M2M100ForConditionalGeneration", TABLE, config_from_hf, always(RULES), _said, TOKENS
)
