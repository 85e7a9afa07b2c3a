"""Qwen3 with experts (Yang et al. 2025), as the Hub holds it."""

from collections.abc import Collection
from typing import Any

from heedful.exchange.hf import causal
from heedful.exchange.hf.keys import Key, KeyTable
from heedful.exchange.hf.rules import Rule
from heedful.models.lm import LMConfig

TABLE = KeyTable(
    # With what each is where a file leaves it out (their Qwen3MoeConfig).
    keys=causal.their_keys(
        attention_bias=False,
        attention_dropout=0.0,
        head_dim=None,
        hidden_act="silu",
        hidden_size=2048,
        max_position_embeddings=32768,
        moe_intermediate_size=768,
        num_attention_heads=32,
        num_experts=128,
        num_experts_per_tok=8,
        num_hidden_layers=24,
        num_key_value_heads=4,
        rope_theta=10_000.0,
        router_aux_loss_coef=0.001,
        tie_word_embeddings=False,
        vocab_size=151_936,
    )
    | {
        "norm_topk_prob": Key(False, "stack.block.experts.normalised"),
        "rms_norm_eps": Key(1e-6, "stack.block.{norm_eps,attention.norm_eps}"),
    },
    always=causal.ALWAYS | {"stack.block.attention.norm": "rms", "stack.block.bias": False},
    fixed=causal.FIXED
    | {"model_type": "qwen3_moe", "decoder_sparse_step": 1, "mlp_only_layers": [], "use_sliding_window": False},
    # Without layers that have one MLP, and without windows, their sizes have no effect.
    irrelevant=causal.IRRELEVANT | {"intermediate_size", "max_window_layers", "output_router_logits", "sliding_window"},
)


_READ = causal.reader(TABLE)


def config_from_hf(theirs: dict[str, Any], names: Collection[str] = (), *, where: str = "config.json") -> LMConfig:
    """Files of their fifth major version name the number of experts as Mixtral's do."""
    named = {"num_experts" if key == "num_local_experts" else key: value for key, value in theirs.items()}
    return _READ(named, names, where=where)


def rules(config: LMConfig) -> tuple[Rule, ...]:
    maps = {"gate_proj": "gate", "up_proj": "up", "down_proj": "down"}
    return causal.rules(config, {"mlp.gate": "mlp.router"} | causal.experts(config, "mlp.experts", maps))


FAMILY = causal.family("Qwen3 MoE", "Qwen3MoeForCausalLM", TABLE, config_from_hf, expert_rules=rules)
