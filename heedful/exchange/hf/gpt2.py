"""GPT-2 (Radford et al. 2019), as the Hub holds it."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from heedful.core.config import from_json
from heedful.errors import InputError
from heedful.exchange.hf.keys import EVERYWHERE, activation, activation_to_hf, nothing_lost, understood
from heedful.exchange.hf.rules import Rule
from heedful.models.lm import LMConfig

# What they leave out of a file is what these say (their GPT2Config).
USED: dict[str, Any] = {
    "activation_function": "gelu_new",
    "attn_pdrop": 0.1,
    "embd_pdrop": 0.1,
    "layer_norm_epsilon": 1e-5,
    "n_embd": 768,
    "n_head": 12,
    "n_inner": None,
    "n_layer": 12,
    "n_positions": 1024,
    "resid_pdrop": 0.1,
    "tie_word_embeddings": True,
    "vocab_size": 50257,
}

TOKENS = {"bos_token_id": 50256, "eos_token_id": 50256}  # what they are where a config.json does not say

# Another value would make another model.
FIXED: dict[str, Any] = {
    "add_cross_attention": False,
    "chunk_size_feed_forward": 0,
    "is_decoder": False,
    "is_encoder_decoder": False,
    "model_type": "gpt2",
    "scale_attn_by_inverse_layer_idx": False,
    "scale_attn_weights": True,
}

IRRELEVANT = EVERYWHERE | {
    "initializer_range",
    "n_ctx",  # the positions, under the name that they had at first
    "reorder_and_upcast_attn",  # the same mathematics in another order
    "summary_activation",
    "summary_first_dropout",
    "summary_proj_to_labels",
    "summary_type",
    "summary_use_proj",
    "task_specific_params",
}

_BLOCK = {
    "ln_1": ("self_residual.in_norm", "copy"),
    "attn.c_proj": ("self_attention.out", "transpose"),
    "ln_2": ("mlp_residual.in_norm", "copy"),
    "mlp.c_fc": ("mlp.up", "transpose"),
    "mlp.c_proj": ("mlp.down", "transpose"),
}
RULES = (
    *(
        Rule(f"transformer.h.{{i}}.{theirs}.{kind}", f"stack.blocks.{{i}}.{ours}.{kind}", how)  # type: ignore[arg-type]
        for theirs, (ours, how) in _BLOCK.items()
        for kind in ("weight", "bias")
    ),
    *(
        Rule(
            f"transformer.h.{{i}}.attn.c_attn.{kind}",
            f"stack.blocks.{{i}}.self_attention.{ours}.{kind}",
            "transpose",
            (i, 3),
        )
        for i, ours in enumerate(("query", "key", "value"))
        for kind in ("weight", "bias")
    ),
    Rule("transformer.h.{i}.attn.bias", None),  # a causal mask, which old files hold
    Rule("transformer.h.{i}.attn.masked_bias", None),
    Rule("transformer.ln_f.weight", "stack.norm.weight"),
    Rule("transformer.ln_f.bias", "stack.norm.bias"),
    Rule("transformer.wte.weight", "embed.tokens.weight"),
    Rule("transformer.wpe.weight", "embed.position_embeddings.table.weight"),
)


def rules(config: LMConfig) -> tuple[Rule, ...]:
    return (*RULES, Rule("lm_head.weight", "embed.tokens.weight" if config.tied else "head.weight"))


def whole(theirs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of a file that holds the bare model (GPT2Model), as the first ones do, under the names that they have
    in the whole; any other file as it is."""
    bare = "wte.weight" in theirs
    return {f"transformer.{name}" if bare else name: tensor for name, tensor in theirs.items()}


def config_from_hf(theirs: dict[str, Any], *, where: str = "config.json") -> LMConfig:
    """What their configuration means here. Raises InputError for a key that is not known, or a value that we cannot
    build."""
    got = understood(theirs, used=USED, fixed=FIXED, irrelevant=IRRELEVANT, where=where)
    width = got["n_embd"]
    if not isinstance(width, int):
        raise InputError(f"n_embd is {width!r}", where=where)
    block = {
        "attention": {"n_heads": got["n_head"], "dropout": got["attn_pdrop"]},
        "d_ff": 4 * width if got["n_inner"] is None else got["n_inner"],
        "order": "pre",
        "norm_eps": got["layer_norm_epsilon"],
        "activation": activation(got, "activation_function", where=where),
        "dropout": got["resid_pdrop"],
    }
    embed = {
        "vocab_size": got["vocab_size"],
        "scaled": False,
        "position_embeddings": "learned",
        "context_length": got["n_positions"],
        "dropout": got["embd_pdrop"],
    }
    ours = {
        "d_model": width,
        "embed": embed,
        "stack": {"n_layers": got["n_layer"], "block": block, "final_norm": True},
        "tied": got["tie_word_embeddings"],
    }
    return from_json(LMConfig, ours, where)  # which looks at the type of every value


def config_to_hf(config: LMConfig, *, start: int, end: int) -> dict[str, Any]:
    """What `config_from_hf` makes this configuration from. Raises InputError for what GPT-2 has no words for."""
    block = config.stack.block
    theirs = FIXED | {
        "architectures": ["GPT2LMHeadModel"],
        "activation_function": activation_to_hf(block.activation),
        "attn_pdrop": block.attention.dropout,
        "embd_pdrop": config.embed.dropout,
        "layer_norm_epsilon": block.norm_eps,
        "n_embd": config.d_model,
        "n_head": block.attention.n_heads,
        "n_inner": block.d_ff,
        "n_layer": config.stack.n_layers,
        "n_positions": config.embed.context_length,
        "resid_pdrop": block.dropout,
        "tie_word_embeddings": config.tied,
        "vocab_size": config.embed.vocab_size,
        "bos_token_id": start,
        "eos_token_id": end,
    }
    nothing_lost(config, config_from_hf(theirs), "GPT-2")
    return theirs
