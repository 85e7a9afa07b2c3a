"""SmolLM3 (Hugging Face 2025), as the Hub holds it: LLaMA in which every few layers are told no positions."""

from collections.abc import Mapping
from typing import Any

from heedful.core.position import PositionConfig
from heedful.errors import InputError
from heedful.exchange.hf import causal
from heedful.exchange.hf.causal import FULL, SLIDING
from heedful.exchange.hf.keys import Key, KeyTable
from heedful.models.lm import LMConfig

TABLE = KeyTable(
    # With what each is where a file leaves it out (their SmolLM3Config).
    keys=causal.their_keys(
        attention_bias=False,
        attention_dropout=0.0,
        hidden_act="silu",
        hidden_size=2048,
        intermediate_size=11008,
        max_position_embeddings=32768,
        mlp_bias=False,
        num_attention_heads=16,
        num_hidden_layers=36,
        num_key_value_heads=4,
        rms_norm_eps=1e-6,
        rope_theta=2_000_000.0,
        tie_word_embeddings=True,
        vocab_size=128_256,
    )
    | {
        "layer_types": Key(None),
        "no_rope_layer_interval": Key(4),
        "no_rope_layers": Key(None),
        "sliding_window": Key(None),
        "use_sliding_window": Key(False),
    },
    always=causal.ALWAYS,
    fixed=causal.FIXED | {"model_type": "smollm3"},
    irrelevant=causal.IRRELEVANT | {"max_window_layers"},
)


def _layers(config: LMConfig, got: Mapping[str, Any], where: str) -> LMConfig:
    n, told, every = config.stack.n_layers, got["no_rope_layers"], got["no_rope_layer_interval"]
    if told is None:
        if type(every) is not int or every < 1:
            raise InputError(f"no_rope_layer_interval is {every!r}, which is no number above 0", where=where)
        told = [int((i + 1) % every != 0) for i in range(n)]
    if not isinstance(told, list) or len(told) != n or not {*told} <= {0, 1}:
        raise InputError(f"no_rope_layers is {told!r}: for each of {n} layers 0 or 1", where=where)
    used = got["use_sliding_window"] and got["sliding_window"] is not None
    otherwise = [SLIDING if used and not rotary else FULL for rotary in told]
    types = causal.layer_types(got, otherwise, where)
    if SLIDING in types and not used:
        raise InputError("layer_types has windows, and use_sliding_window is False", where=where)
    block = config.stack.block
    local = causal.windowed_block(block, got["sliding_window"], where) if SLIDING in types else block
    layers = zip([local if kind == SLIDING else block for kind in types], told, strict=True)
    return causal.with_layers(
        config, [own if rotary else causal.turned(own, PositionConfig(kind="none")) for own, rotary in layers]
    )


def _layers_to_hf(config: LMConfig) -> dict[str, Any]:
    window = causal.window_of(config)
    return {
        "layer_types": causal.types_of(config),
        "no_rope_layers": [int(layer.attention.position.kind != "none") for layer in config.stack.layers],
        "sliding_window": window,
        "use_sliding_window": window is not None,
    }


FAMILY = causal.family(
    "SmolLM3",
    "SmolLM3ForCausalLM",
    TABLE,
    causal.reader(TABLE, _layers),
    more=_layers_to_hf,
    tokens={"bos_token_id": 128_000, "eos_token_id": 128_001, "pad_token_id": 128_004},
)
