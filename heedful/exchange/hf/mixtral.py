"""Mixtral (Jiang et al. 2024), as the Hub holds it: Mistral with experts."""

from heedful.exchange.hf import causal
from heedful.exchange.hf.keys import Key, KeyTable
from heedful.exchange.hf.rules import Rule
from heedful.models.lm import LMConfig

TABLE = KeyTable(
    # With what each is where a file leaves it out (their MixtralConfig).
    keys=causal.their_keys(
        attention_dropout=0.0,
        head_dim=None,
        hidden_act="silu",
        hidden_size=4096,
        intermediate_size=14336,
        max_position_embeddings=131_072,
        num_attention_heads=32,
        num_experts_per_tok=2,
        num_hidden_layers=32,
        num_key_value_heads=8,
        num_local_experts=8,
        rms_norm_eps=1e-5,
        rope_theta=1_000_000.0,
        router_aux_loss_coef=0.001,
        tie_word_embeddings=False,
        vocab_size=32000,
    )
    | {"sliding_window": Key(None, "stack.block.window")},
    always=causal.ALWAYS | {"stack.block.attention.bias": False, "stack.block.bias": False},
    fixed=causal.FIXED | {"model_type": "mixtral"},
    irrelevant=causal.IRRELEVANT | {"output_router_logits", "router_jitter_noise"},
)


def rules(config: LMConfig) -> tuple[Rule, ...]:
    names = causal.experts(config, "block_sparse_moe.experts", {"w1": "gate", "w2": "down", "w3": "up"})
    return causal.rules(config, {"block_sparse_moe.gate": "mlp.router"} | names)


FAMILY = causal.family(
    "Mixtral",
    "MixtralForCausalLM",
    TABLE,
    causal.reader(TABLE),
    tokens={"bos_token_id": 1, "eos_token_id": 2},
    expert_rules=rules,
)
