"""Qwen3 (Yang et al. 2025), as the Hub holds it: LLaMA with norms of each head's queries and keys."""

from collections.abc import Collection, Sequence
from typing import Any

from heedful.exchange.hf import causal, keys
from heedful.exchange.hf.keys import Key
from heedful.exchange.hf.qwen2 import WINDOWS, windowed, windows_to_hf
from heedful.models.lm import LMConfig

# With what each is where a file leaves it out (their Qwen3Config).
KEYS = (
    WINDOWS
    | causal.table(
        attention_bias=False,
        attention_dropout=0.0,
        head_dim=128,
        hidden_act="silu",
        hidden_size=4096,
        intermediate_size=22016,
        max_position_embeddings=32768,
        num_attention_heads=32,
        num_hidden_layers=32,
        num_key_value_heads=32,
        rope_theta=10_000.0,
        tie_word_embeddings=False,
        vocab_size=151_936,
    )
    | {"rms_norm_eps": Key(1e-6, "stack.block.{norm_eps,attention.norm_eps}")}
)
ALWAYS = causal.ALWAYS | {"stack.block.attention.norm": "rms", "stack.block.bias": False}
TOKENS: dict[str, int] = {}  # what they are is always said
FIXED = causal.FIXED | {"model_type": "qwen3"}
IRRELEVANT = causal.IRRELEVANT
rules = causal.rules


def config_from_hf(theirs: dict[str, Any], names: Collection[str] = (), *, where: str = "config.json") -> LMConfig:
    """What their configuration means here. Raises InputError for a key that is not known, or a value that we cannot
    build."""
    got = causal.understood(theirs, KEYS, FIXED, IRRELEVANT, where)
    return windowed(causal.built(got, KEYS, ALWAYS, where), got, where)


def config_to_hf(config: LMConfig, *, start: int, end: int | Sequence[int]) -> dict[str, Any]:
    """What `config_from_hf` makes this configuration from. Raises InputError for what Qwen3 cannot hold."""
    config = causal.written_out(config)
    more = windows_to_hf(config)
    theirs = causal.config_to_hf(config, KEYS, FIXED, "Qwen3ForCausalLM", more, start=start, end=end)
    return keys.nothing_lost(theirs, config, config_from_hf(theirs), "Qwen3")
