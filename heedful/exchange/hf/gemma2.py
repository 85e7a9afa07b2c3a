"""Gemma 2 (Gemma Team 2024), as the Hub holds it: norms on both sides of each branch, scores and logits that are
capped, and layers that by turns see a window or all."""

from collections.abc import Mapping
from typing import Any

from heedful.exchange.hf import causal, gemma
from heedful.exchange.hf.causal import FULL, SCALAR, SLIDING
from heedful.exchange.hf.keys import Key, KeyTable
from heedful.models.lm import LMConfig

TABLE = KeyTable(
    # With what each is where a file leaves it out (their Gemma2Config).
    keys=(
        causal.their_keys(
            attention_bias=False,
            attention_dropout=0.0,
            head_dim=256,
            hidden_activation="gelu_pytorch_tanh",
            hidden_size=2304,
            intermediate_size=9216,
            max_position_embeddings=8192,
            num_attention_heads=8,
            num_hidden_layers=26,
            num_key_value_heads=4,
            rms_norm_eps=1e-6,
            rope_theta=10_000.0,
            tie_word_embeddings=True,
            vocab_size=256_000,
        )
        | {
            "attn_logit_softcapping": Key(50.0, "stack.block.attention.softcap"),
            "final_logit_softcapping": Key(30.0, "softcap"),
            "layer_types": Key(None),
            "query_pre_attn_scalar": Key(256, "stack.block.attention.scale", SCALAR),
            "sliding_window": Key(4096),
            "use_bidirectional_attention": Key(None),
        }
    ),
    always=causal.ALWAYS
    | {
        "embed.scaled": True,
        "stack.block.bias": False,
        "stack.block.norm": "rms_offset",
        "stack.block.order": "sandwich",
    },
    fixed=causal.FIXED | {"model_type": "gemma2"},
    # which are not read there either
    irrelevant=causal.IRRELEVANT | {"cache_implementation", "hidden_act", "sliding_window_size"},
)


def _by_turns(config: LMConfig, got: Mapping[str, Any], where: str) -> LMConfig:
    otherwise = [FULL if i % 2 else SLIDING for i in range(config.stack.n_layers)]
    types = causal.layer_types(got, otherwise, where)
    return causal.windowed(config, types, got["sliding_window"], where)


def _layers_to_hf(config: LMConfig) -> dict[str, Any]:
    return {"layer_types": causal.types_of(config), "sliding_window": causal.window_of(config)}


FAMILY = causal.family(
    "Gemma 2",
    "Gemma2ForCausalLM",
    TABLE,
    causal.reader(TABLE, _by_turns),
    more=_layers_to_hf,
    scale=True,
    tokens=gemma.FAMILY.tokens,
)
