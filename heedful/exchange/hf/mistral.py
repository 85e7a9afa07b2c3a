"""Mistral (Jiang et al. 2023), as the Hub holds it: LLaMA, in which a token may see a window alone."""

from heedful.exchange.hf import causal
from heedful.exchange.hf.keys import Key, KeyTable

TABLE = KeyTable(
    # With what each is where a file leaves it out (their MistralConfig).
    keys=causal.their_keys(
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
    )
    | {"sliding_window": Key(4096, "stack.block.window")},
    always=causal.ALWAYS | {"stack.block.attention.bias": False, "stack.block.bias": False},
    fixed=causal.FIXED | {"model_type": "mistral"},
    irrelevant=causal.IRRELEVANT,
)


FAMILY = causal.family(
    "Mistral", "MistralForCausalLM", TABLE, causal.reader(TABLE), tokens={"bos_token_id": 1, "eos_token_id": 2}
)
