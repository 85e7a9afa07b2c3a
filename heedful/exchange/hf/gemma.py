"""Gemma (Gemma Team 2024), as the Hub holds it: LLaMA with scaled embeddings and norms that multiply by 1 + weight."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from heedful.errors import InputError
from heedful.exchange.hf import causal, keys
from heedful.exchange.hf.keys import ACTIVATION, How, Key
from heedful.models.lm import LMConfig

# With what each is where a file leaves it out (their GemmaConfig). Old files say "gelu" and mean its approximation.
KEYS = causal.table(
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
) | {
    "hidden_act": Key(
        "gelu_pytorch_tanh",
        "stack.block.activation",
        How(
            lambda key, value, where: keys.activation(key, "gelu_pytorch_tanh" if value == "gelu" else value, where),
            ACTIVATION.theirs,
        ),
    ),
    "hidden_activation": Key(None),  # the same once more, in newer files
    "use_bidirectional_attention": Key(None),
}
ALWAYS = causal.ALWAYS | {"embed.scaled": True, "stack.block.norm": "rms_offset", "stack.block.bias": False}
TOKENS = {"bos_token_id": 2, "eos_token_id": 1, "pad_token_id": 0}  # what they are where a config.json does not say
FIXED = causal.FIXED | {"model_type": "gemma"}
IRRELEVANT = causal.IRRELEVANT | {"cache_implementation"}
rules = causal.rules


def config_from_hf(theirs: dict[str, Any], names: Collection[str] = (), *, where: str = "config.json") -> LMConfig:
    """What their configuration means here. Raises InputError for a key that is not known, or a value that we cannot
    build."""
    got = causal.understood(theirs, KEYS, FIXED, IRRELEVANT, where)
    refuse_both_ways(got, where)
    config = causal.built(got, KEYS, ALWAYS, where)
    other = got["hidden_activation"]
    if other is not None and keys.activation("hidden_activation", other, where) != config.stack.block.activation:
        what = f"hidden_activation is {other!r} and hidden_act {got['hidden_act']!r}: they differ"
        raise InputError(what, where=where)
    return config


def refuse_both_ways(got: Mapping[str, Any], where: str) -> None:
    if got["use_bidirectional_attention"]:
        raise InputError("use_bidirectional_attention is true: only causal attention can be read", where=where)


def config_to_hf(config: LMConfig, *, start: int, end: int | Sequence[int]) -> dict[str, Any]:
    """What `config_from_hf` makes this configuration from. Raises InputError for what Gemma cannot hold."""
    config = causal.written_out(config)
    theirs = causal.config_to_hf(config, KEYS, FIXED, "GemmaForCausalLM", start=start, end=end)
    return keys.nothing_lost(theirs, config, config_from_hf(theirs), "Gemma")
