"""LLaMA (Touvron et al. 2023) and what is built like it, as the Hub holds it."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from heedful.errors import InputError
from heedful.exchange.hf import keys
from heedful.exchange.hf.keys import ACTIVATION, EVERYWHERE, Key
from heedful.exchange.hf.rules import Rule, inside, modules
from heedful.models.lm import LMConfig

# With what each is where a file leaves it out (their LlamaConfig).
KEYS = {
    "attention_bias": Key(False, "stack.block.attention.bias"),
    "attention_dropout": Key(0.0, "stack.block.attention.dropout"),
    "head_dim": Key(None, "stack.block.attention.head_dim"),
    "hidden_act": Key("silu", "stack.block.activation", ACTIVATION),
    "hidden_size": Key(4096, "d_model"),
    "intermediate_size": Key(11008, "stack.block.d_ff"),
    "max_position_embeddings": Key(2048, "embed.context_length"),
    "mlp_bias": Key(False, "stack.block.bias"),
    "num_attention_heads": Key(32, "stack.block.attention.n_heads"),
    "num_hidden_layers": Key(32, "stack.n_layers"),
    "num_key_value_heads": Key(None, "stack.block.attention.kv_heads"),
    "rms_norm_eps": Key(1e-6, "stack.block.norm_eps"),
    "rope_parameters": Key(None),  # the next one, as their fifth major version says it
    "rope_theta": Key(10_000.0, "stack.block.attention.position.theta"),
    "tie_word_embeddings": Key(False, "tied"),
    "vocab_size": Key(32000, "embed.vocab_size"),
}
ALWAYS = {
    "embed.scaled": False,
    "embed.position_embeddings": "none",
    "stack.block.attention.position.kind": "rotary",
    "stack.block.order": "pre",
    "stack.block.norm": "rms",
    "stack.block.gated": True,
    "stack.final_norm": True,
}
TOKENS = {"bos_token_id": 1, "eos_token_id": 2}  # what they are where a config.json does not say

# Another value would make another model.
FIXED = keys.FIXED | {"model_type": "llama", "rope_interleaved": False, "rope_scaling": None}
IRRELEVANT = EVERYWHERE | {"initializer_range", "is_llama_config", "pretraining_tp", "transformers.js_config"}

_ATTENTION = {
    "self_attn.q_proj": "self_attention.query",
    "self_attn.k_proj": "self_attention.key",
    "self_attn.v_proj": "self_attention.value",
    "self_attn.o_proj": "self_attention.out",
}
_MLP = {"mlp.gate_proj": "mlp.gate", "mlp.up_proj": "mlp.up", "mlp.down_proj": "mlp.down"}
_NORMS = {"input_layernorm": "self_residual.in_norm", "post_attention_layernorm": "mlp_residual.in_norm"}


def rules(config: LMConfig) -> tuple[Rule, ...]:
    """The table for a model of this configuration: which of its maps have biases differs."""
    block = config.stack.block
    parts = ((_ATTENTION, block.attention.bias), (_MLP, block.bias), (_NORMS, False))
    return (
        *(
            rule
            for names, bias in parts
            for rule in modules(
                inside("model.layers.{i}", "stack.blocks.{i}", names), kinds=("weight", "bias") if bias else ("weight",)
            )
        ),
        Rule("model.layers.{i}.self_attn.rotary_emb.inv_freq", None),  # which old files hold
        Rule("model.norm.weight", "stack.norm.weight"),
        Rule("model.embed_tokens.weight", "embed.tokens.weight"),
        Rule("lm_head.weight", "embed.tokens.weight" if config.tied else "head.weight"),
    )


def config_from_hf(theirs: dict[str, Any], names: Collection[str] = (), *, where: str = "config.json") -> LMConfig:
    """What their configuration means here. Raises InputError for a key that is not known, or a value that we cannot
    build."""
    got = keys.understood(theirs, KEYS, FIXED, IRRELEVANT, where)
    rope = got["rope_parameters"] or {"rope_theta": got["rope_theta"], "rope_type": "default"}
    if not isinstance(rope, dict) or not rope.keys() <= {"rope_theta", "rope_type"}:
        raise InputError(f"rope_parameters is {rope!r}: only rope_theta and rope_type can be read", where=where)
    if rope.get("rope_type", "default") != "default":
        raise InputError(f"rope_type is {rope['rope_type']!r}: only 'default' can be read", where=where)
    width, heads = got["hidden_size"], got["num_attention_heads"]
    if not got["head_dim"] and (not isinstance(width, int) or not isinstance(heads, int) or heads < 1):
        raise InputError(f"hidden_size {width!r} and num_attention_heads {heads!r}", where=where)
    got |= {
        "head_dim": got["head_dim"] or width // heads,
        "num_key_value_heads": got["num_key_value_heads"] or heads,
        "rope_theta": rope.get("rope_theta", KEYS["rope_theta"].default),
    }
    return keys.built(LMConfig, ALWAYS | keys.in_ours(KEYS, got, where), where)


def config_to_hf(config: LMConfig, *, start: int, end: int) -> dict[str, Any]:
    """What `config_from_hf` makes this configuration from. Raises InputError for what LLaMA cannot hold."""
    config = _written_out(config)
    theirs = FIXED | keys.in_theirs(KEYS, config)
    theirs |= {
        "architectures": ["LlamaForCausalLM"],
        "rope_parameters": {"rope_theta": theirs["rope_theta"], "rope_type": "default"},
        "bos_token_id": start,
        "eos_token_id": end,
    }
    keys.nothing_lost(config, config_from_hf(theirs), "LLaMA")
    return theirs


def _written_out(config: LMConfig) -> LMConfig:
    """The same model with the numbers of its heads given, where they follow from others."""
    own = config.stack.block.attention
    given = replace(own, kv_heads=own.kv_heads or own.n_heads, head_dim=own.head_dim or config.d_model // own.n_heads)
    return replace(config, stack=replace(config.stack, block=replace(config.stack.block, attention=given)))
