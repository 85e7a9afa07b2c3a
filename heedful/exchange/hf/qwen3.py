"""Qwen3 (Yang et al. 2025), as the Hub holds it: LLaMA with norms of each head's queries and keys."""

from heedful.exchange.hf import causal
from heedful.exchange.hf.keys import Key, KeyTable
from heedful.exchange.hf.qwen2 import WINDOWS, windowed, windows_to_hf

TABLE = KeyTable(
    # With what each is where a file leaves it out (their Qwen3Config).
    keys=(
        WINDOWS
        | causal.their_keys(
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
    ),
    always=causal.ALWAYS | {"stack.block.attention.norm": "rms", "stack.block.bias": False},
    fixed=causal.FIXED | {"model_type": "qwen3"},
    irrelevant=causal.IRRELEVANT,
)


FAMILY = causal.family("Qwen3", "Qwen3ForCausalLM", TABLE, causal.reader(TABLE, windowed), more=windows_to_hf)
