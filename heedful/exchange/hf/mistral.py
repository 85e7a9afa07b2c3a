"""Mistral (Jiang et al. 2023), as the Hub holds it: LLaMA, in which a token may see a window alone."""

from collections.abc import Collection, Sequence
from typing import Any

from heedful.exchange.hf import causal, keys
from heedful.exchange.hf.keys import Key
from heedful.models.lm import LMConfig

# With what each is where a file leaves it out (their MistralConfig).
KEYS = causal.table(
    attention_dropout=0.0,
    head_dim=None,
    hidden_act="silu",
    hidden_size=4096,
    intermediate_size=14336,
    max_position_embeddings=131_072,
    num_attention_heads=32,
    num_hidden_layers=32,
    num_key_value_heads=8,
    rms_norm_eps=1e-6,
    rope_theta=10_000.0,
    tie_word_embeddings=False,
    vocab_size=32000,
) | {"sliding_window": Key(4096, "stack.block.window")}
ALWAYS = causal.ALWAYS | {"stack.block.attention.bias": False, "stack.block.bias": False}
TOKENS = {"bos_token_id": 1, "eos_token_id": 2}  # what they are where a config.json does not say
FIXED = causal.FIXED | {"model_type": "mistral"}
IRRELEVANT = causal.IRRELEVANT
rules = causal.rules


def config_from_hf(theirs: dict[str, Any], names: Collection[str] = (), *, where: str = "config.json") -> LMConfig:
    """What their configuration means here. Raises InputError for a key that is not known, or a value that we cannot
    build."""
    return causal.built(causal.understood(theirs, KEYS, FIXED, IRRELEVANT, where), KEYS, ALWAYS, where)


def config_to_hf(config: LMConfig, *, start: int, end: int | Sequence[int]) -> dict[str, Any]:
    """What `config_from_hf` makes this configuration from. Raises InputError for what Mistral cannot hold."""
    config = causal.written_out(config)
    theirs = causal.config_to_hf(config, KEYS, FIXED, "MistralForCausalLM", start=start, end=end)
    return keys.nothing_lost(theirs, config, config_from_hf(theirs), "Mistral")
