"""Gemma 2 (Gemma Team 2024), as the Hub holds it: norms on both sides of each branch, scores and logits that are
capped, and layers that by turns see a window or all."""

from collections.abc import Collection, Sequence
from typing import Any

from heedful.exchange.hf import causal, keys
from heedful.exchange.hf.causal import FULL, SCALAR, SLIDING
from heedful.exchange.hf.gemma import TOKENS, refuse_both_ways
from heedful.exchange.hf.keys import Key
from heedful.models.lm import LMConfig

CAPPED = {
    "attn_logit_softcapping": Key(50.0, "stack.block.attention.softcap"),
    "final_logit_softcapping": Key(30.0, "softcap"),
    "query_pre_attn_scalar": Key(256, "stack.block.attention.scale", SCALAR),
}
# With what each is where a file leaves it out (their Gemma2Config).
KEYS = (
    CAPPED
    | causal.table(
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
    | {"layer_types": Key(None), "sliding_window": Key(4096), "use_bidirectional_attention": Key(None)}
)
ALWAYS = causal.ALWAYS | {
    "embed.scaled": True,
    "stack.block.bias": False,
    "stack.block.norm": "rms_offset",
    "stack.block.order": "sandwich",
}
FIXED = causal.FIXED | {"model_type": "gemma2"}
IRRELEVANT = causal.IRRELEVANT | {"cache_implementation", "hidden_act"}  # the latter is not read there either
rules = causal.rules
__all__ = ["ALWAYS", "CAPPED", "FIXED", "IRRELEVANT", "KEYS", "TOKENS", "config_from_hf", "config_to_hf", "rules"]


def config_from_hf(theirs: dict[str, Any], names: Collection[str] = (), *, where: str = "config.json") -> LMConfig:
    """What their configuration means here. Raises InputError for a key that is not known, or a value that we cannot
    build."""
    got = causal.understood(theirs, KEYS, FIXED, IRRELEVANT, where)
    refuse_both_ways(got, where)
    config = causal.built(got, KEYS, ALWAYS, where)
    otherwise = [FULL if i % 2 else SLIDING for i in range(config.stack.n_layers)]
    types = causal.layer_types(got, otherwise, where)
    return causal.windowed(config, types, got["sliding_window"], where)


def config_to_hf(config: LMConfig, *, start: int, end: int | Sequence[int]) -> dict[str, Any]:
    """What `config_from_hf` makes this configuration from. Raises InputError for what Gemma 2 cannot hold."""
    config = causal.written_out(config, scale=True)
    more = {"layer_types": causal.types_of(config), "sliding_window": causal.window_of(config)}
    theirs = causal.config_to_hf(config, KEYS, FIXED, "Gemma2ForCausalLM", more, start=start, end=end)
    return keys.nothing_lost(theirs, config, config_from_hf(theirs), "Gemma 2")
