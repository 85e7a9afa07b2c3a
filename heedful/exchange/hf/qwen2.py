"""Qwen2 and Qwen2.5 (Yang et al. 2024), as the Hub holds them: LLaMA with biases where queries, keys and values are
projected."""

from collections.abc import Mapping
from typing import Any

from heedful.errors import InputError
from heedful.exchange.hf import causal
from heedful.exchange.hf.causal import FULL, SLIDING
from heedful.exchange.hf.keys import Key, KeyTable
from heedful.models.lm import LMConfig

WINDOWS = {
    "layer_types": Key(None),
    "max_window_layers": Key(28),
    "sliding_window": Key(4096),
    "use_sliding_window": Key(False),
}
TABLE = KeyTable(
    # With what each is where a file leaves it out (their Qwen2Config).
    keys=WINDOWS
    | causal.their_keys(
        attention_dropout=0.0,
        hidden_act="silu",
        hidden_size=4096,
        intermediate_size=22016,
        max_position_embeddings=32768,
        num_attention_heads=32,
        num_hidden_layers=32,
        num_key_value_heads=32,
        rms_norm_eps=1e-6,
        rope_theta=10_000.0,
        tie_word_embeddings=False,
        vocab_size=151_936,
    ),
    always=causal.ALWAYS
    | {
        "stack.block.attention.bias": True,
        "stack.block.attention.out_bias": False,
        "stack.block.bias": False,
    },
    fixed=causal.FIXED | {"model_type": "qwen2", "use_mrope": False},
    irrelevant=causal.IRRELEVANT,
)


def windowed(config: LMConfig, got: Mapping[str, Any], where: str) -> LMConfig:
    """With windows in the layers from the `max_window_layers`-th on, where there are any."""
    used, first = got["use_sliding_window"] and got["sliding_window"] is not None, got["max_window_layers"]
    if used and type(first) is not int:
        raise InputError(f"max_window_layers is {first!r}, which is no number", where=where)
    otherwise = [SLIDING if used and i >= first else FULL for i in range(config.stack.n_layers)]
    types = causal.layer_types(got, otherwise, where)
    return causal.windowed(config, types, got["sliding_window"] if used else None, where)


def windows_to_hf(config: LMConfig) -> dict[str, Any]:
    """What `windowed` reads as these layers."""
    types, window = causal.types_of(config), causal.window_of(config)
    return {
        "layer_types": types,
        "max_window_layers": types.index(SLIDING) if SLIDING in types else len(types),
        "sliding_window": window,
        "use_sliding_window": window is not None,
    }


FAMILY = causal.family("Qwen2", "Qwen2ForCausalLM", TABLE, causal.reader(TABLE, windowed), more=windows_to_hf)
