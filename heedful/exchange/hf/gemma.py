"""Gemma (Gemma Team 2024), as the Hub holds it: LLaMA with scaled embeddings and norms that multiply by 1 + weight."""

from collections.abc import Mapping
from typing import Any

from heedful.errors import InputError
from heedful.exchange.hf import causal, keys
from heedful.exchange.hf.keys import ACTIVATION, How, Key, KeyTable
from heedful.models.lm import LMConfig

TABLE = KeyTable(
    # With what each is where a file leaves it out (their GemmaConfig). Old files say "gelu" and mean its approximation.
    keys=causal.their_keys(
        attention_bias=False,
        attention_dropout=0.0,
        head_dim=256,
        hidden_size=3072,
        intermediate_size=24576,
        max_position_embeddings=8192,
        num_attention_heads=16,
        num_hidden_layers=28,
        num_key_value_heads=16,
        rms_norm_eps=1e-6,
        rope_theta=10_000.0,
        tie_word_embeddings=True,
        vocab_size=256_000,
    )
    | {
        "hidden_act": Key(
            "gelu_pytorch_tanh",
            "stack.block.activation",
            How(
                lambda key, value, where: keys.activation(
                    key, "gelu_pytorch_tanh" if value == "gelu" else value, where
                ),
                ACTIVATION.theirs,
            ),
        ),
        "hidden_activation": Key(None),  # the same once more, in newer files
        "use_bidirectional_attention": Key(None),
    },
    always=causal.ALWAYS | {"embed.scaled": True, "stack.block.norm": "rms_offset", "stack.block.bias": False},
    fixed=causal.FIXED | {"model_type": "gemma"},
    irrelevant=causal.IRRELEVANT | {"cache_implementation"},
)


def _of_one_activation(config: LMConfig, got: Mapping[str, Any], where: str) -> LMConfig:
    other = got["hidden_activation"]
    if other is not None and keys.activation("hidden_activation", other, where) != config.stack.block.activation:
        what = f"hidden_activation is {other!r} and hidden_act {got['hidden_act']!r}: they differ"
        raise InputError(what, where=where)
    return config


FAMILY = causal.family(
    "Gemma",
    "GemmaForCausalLM",
    TABLE,
    causal.reader(TABLE, _of_one_activation),
    tokens={"bos_token_id": 2, "eos_token_id": 1, "pad_token_id": 0},
)
