"""LLaMA (Touvron et al. 2023) and what is built like it, as the Hub holds it."""

from dataclasses import replace
from typing import Any

from heedful.core.config import from_json
from heedful.errors import InputError
from heedful.exchange.hf.keys import EVERYWHERE, activation, activation_to_hf, nothing_lost, understood
from heedful.exchange.hf.rules import Rule
from heedful.models.lm import LMConfig

# What they leave out of a file is what these say (their LlamaConfig).
USED: dict[str, Any] = {
    "attention_bias": False,
    "attention_dropout": 0.0,
    "head_dim": None,
    "hidden_act": "silu",
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "max_position_embeddings": 2048,
    "mlp_bias": False,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": None,
    "rms_norm_eps": 1e-6,
    "rope_parameters": None,
    "rope_theta": 10_000.0,
    "tie_word_embeddings": False,
    "vocab_size": 32000,
}

TOKENS = {"bos_token_id": 1, "eos_token_id": 2}  # what they are where a config.json does not say

# Another value would make another model.
FIXED: dict[str, Any] = {
    "chunk_size_feed_forward": 0,
    "is_decoder": False,
    "is_encoder_decoder": False,
    "model_type": "llama",
    "rope_interleaved": False,
    "rope_scaling": None,
}

IRRELEVANT = EVERYWHERE | {"initializer_range", "is_llama_config", "pretraining_tp", "transformers.js_config"}

_BLOCK = {
    "self_attn.q_proj": "self_attention.query",
    "self_attn.k_proj": "self_attention.key",
    "self_attn.v_proj": "self_attention.value",
    "self_attn.o_proj": "self_attention.out",
    "mlp.gate_proj": "mlp.gate",
    "mlp.up_proj": "mlp.up",
    "mlp.down_proj": "mlp.down",
    "input_layernorm": "self_residual.in_norm",
    "post_attention_layernorm": "mlp_residual.in_norm",
}


def rules(config: LMConfig) -> tuple[Rule, ...]:
    """The table for a model of this configuration: which of its maps have biases differs."""
    block = config.stack.block
    biased = {"self_attn": block.attention.bias, "mlp": block.bias}
    kinds = {theirs: ("weight", "bias") if biased.get(theirs.split(".")[0]) else ("weight",) for theirs in _BLOCK}
    return (
        *(
            Rule(f"model.layers.{{i}}.{theirs}.{kind}", f"stack.blocks.{{i}}.{ours}.{kind}")
            for theirs, ours in _BLOCK.items()
            for kind in kinds[theirs]
        ),
        Rule("model.layers.{i}.self_attn.rotary_emb.inv_freq", None),  # which old files hold
        Rule("model.norm.weight", "stack.norm.weight"),
        Rule("model.embed_tokens.weight", "embed.tokens.weight"),
        Rule("lm_head.weight", "embed.tokens.weight" if config.tied else "head.weight"),
    )


def config_from_hf(theirs: dict[str, Any], *, where: str = "config.json") -> LMConfig:
    """What their configuration means here. Raises InputError for a key that is not known, or a value that we cannot
    build."""
    got = understood(theirs, used=USED, fixed=FIXED, irrelevant=IRRELEVANT, where=where)
    rope = got["rope_parameters"] or {"rope_theta": got["rope_theta"], "rope_type": "default"}
    if not isinstance(rope, dict) or not rope.keys() <= {"rope_theta", "rope_type"}:
        raise InputError(f"rope_parameters is {rope!r}: only rope_theta and rope_type can be read", where=where)
    if rope.get("rope_type", "default") != "default":
        raise InputError(f"rope_type is {rope['rope_type']!r}: only 'default' can be read", where=where)
    attention = {
        "n_heads": got["num_attention_heads"],
        "kv_heads": got["num_key_value_heads"] or got["num_attention_heads"],
        "head_dim": got["head_dim"] or _share(got["hidden_size"], got["num_attention_heads"], where),
        "bias": got["attention_bias"],
        "dropout": got["attention_dropout"],
        "position": {"kind": "rotary", "theta": rope.get("rope_theta", 10_000.0)},
    }
    block = {
        "attention": attention,
        "d_ff": got["intermediate_size"],
        "order": "pre",
        "norm": "rms",
        "norm_eps": got["rms_norm_eps"],
        "activation": activation(got, "hidden_act", where=where),
        "gated": True,
        "bias": got["mlp_bias"],
    }
    ours = {
        "d_model": got["hidden_size"],
        "embed": {
            "vocab_size": got["vocab_size"],
            "scaled": False,
            "position_embeddings": "none",
            "context_length": got["max_position_embeddings"],
        },
        "stack": {"n_layers": got["num_hidden_layers"], "block": block, "final_norm": True},
        "tied": got["tie_word_embeddings"],
    }
    return from_json(LMConfig, ours, where)  # which looks at the type of every value


def config_to_hf(config: LMConfig, *, start: int, end: int) -> dict[str, Any]:
    """What `config_from_hf` makes this configuration from. Raises InputError for what LLaMA has no words for."""
    block, attention = config.stack.block, config.stack.block.attention
    theirs = FIXED | {
        "architectures": ["LlamaForCausalLM"],
        "attention_bias": attention.bias,
        "attention_dropout": attention.dropout,
        "head_dim": attention.head_dim or config.d_model // attention.n_heads,
        "hidden_act": activation_to_hf(block.activation),
        "hidden_size": config.d_model,
        "intermediate_size": block.d_ff,
        "max_position_embeddings": config.embed.context_length,
        "mlp_bias": block.bias,
        "num_attention_heads": attention.n_heads,
        "num_hidden_layers": config.stack.n_layers,
        "num_key_value_heads": attention.kv_heads or attention.n_heads,
        "rms_norm_eps": block.norm_eps,
        "rope_theta": attention.position.theta,
        "rope_parameters": {"rope_theta": attention.position.theta, "rope_type": "default"},
        "tie_word_embeddings": config.tied,
        "vocab_size": config.embed.vocab_size,
        "bos_token_id": start,
        "eos_token_id": end,
    }
    nothing_lost(_written_out(config), config_from_hf(theirs), "LLaMA")
    return theirs


def _written_out(config: LMConfig) -> LMConfig:
    """The same model with the numbers of its heads given, where they follow from others."""
    own = config.stack.block.attention
    given = replace(own, kv_heads=own.kv_heads or own.n_heads, head_dim=own.head_dim or config.d_model // own.n_heads)
    return replace(config, stack=replace(config.stack, block=replace(config.stack.block, attention=given)))


def _share(width: Any, heads: Any, where: str) -> int:
    if not isinstance(width, int) or not isinstance(heads, int) or heads < 1:
        raise InputError(f"hidden_size {width!r} and num_attention_heads {heads!r}", where=where)
    return width // heads
