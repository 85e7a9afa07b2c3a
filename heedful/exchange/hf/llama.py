"""LLaMA (Touvron et al. 2023), Llama 3 and SmolLM, as the Hub holds them."""

from heedful.exchange.hf import causal
from heedful.exchange.hf.keys import KeyTable

TABLE = KeyTable(
    # With what each is where a file leaves it out (their LlamaConfig).
    keys=causal.their_keys(
        attention_bias=False,
        attention_dropout=0.0,
        head_dim=None,
        hidden_act="silu",
        hidden_size=4096,
        intermediate_size=11008,
        max_position_embeddings=2048,
        mlp_bias=False,
        num_attention_heads=32,
        num_hidden_layers=32,
        num_key_value_heads=None,
        rms_norm_eps=1e-6,
        rope_theta=10_000.0,
        tie_word_embeddings=False,
        vocab_size=32000,
    ),
    always=causal.ALWAYS,
    fixed=causal.FIXED | {"model_type": "llama"},
    irrelevant=causal.IRRELEVANT | {"is_llama_config"},
)


FAMILY = causal.family(
    "LLaMA", "LlamaForCausalLM", TABLE, causal.reader(TABLE), tokens={"bos_token_id": 1, "eos_token_id": 2}
)
