"""GPT-2 (Radford et al. 2019), as the Hub holds it."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from torch import Tensor

from heedful.errors import InputError
from heedful.exchange.hf import keys
from heedful.exchange.hf.family import Family
from heedful.exchange.hf.keys import ACTIVATION, EVERYWHERE, Key, KeyTable
from heedful.exchange.hf.rules import Rule, always, inside, modules
from heedful.models.lm import LMConfig

TABLE = KeyTable(
    # With what each is where a file leaves it out (their GPT2Config).
    keys={
        "activation_function": Key("gelu_new", "stack.block.activation", ACTIVATION),
        "attn_pdrop": Key(0.1, "stack.block.attention.dropout"),
        "embd_pdrop": Key(0.1, "embed.dropout"),
        "layer_norm_epsilon": Key(1e-5, "stack.block.norm_eps"),
        "n_embd": Key(768, "d_model"),
        "n_head": Key(12, "stack.block.attention.n_heads"),
        "n_inner": Key(None, "stack.block.d_ff"),
        "n_layer": Key(12, "stack.n_layers"),
        "n_positions": Key(1024, "embed.context_length"),
        "resid_pdrop": Key(0.1, "stack.block.dropout"),
        "tie_word_embeddings": Key(True, "tied"),
        "vocab_size": Key(50257, "embed.vocab_size"),
    },
    always={
        "embed.scaled": False,
        "embed.position_embeddings": "learned",
        "stack.block.order": "pre",
        "stack.final_norm": True,
    },
    # Another value would make another model.
    fixed=keys.FIXED
    | {
        "add_cross_attention": False,
        "model_type": "gpt2",
        "scale_attn_by_inverse_layer_idx": False,
        "scale_attn_weights": True,
    },
    irrelevant=EVERYWHERE
    | {
        "n_ctx",  # the positions, under the name that they had at first
        "n_special",
        "predict_special_tokens",
        "reorder_and_upcast_attn",  # the same mathematics in another order
        "summary_activation",
        "summary_first_dropout",
        "summary_proj_to_labels",
        "summary_type",
        "summary_use_proj",
    },
)

_NORMS = {"ln_1": "self_residual.in_norm", "ln_2": "mlp_residual.in_norm"}
_MAPS = {"attn.c_proj": "self_attention.out", "mlp.c_fc": "mlp.up", "mlp.c_proj": "mlp.down"}
_H, _BLOCKS = "transformer.h.{i}", "stack.blocks.{i}"
RULES = (
    *modules(inside(_H, _BLOCKS, _NORMS)),
    *modules(inside(_H, _BLOCKS, _MAPS), "transpose"),
    *(
        Rule(f"{_H}.attn.c_attn.{kind}", f"{_BLOCKS}.self_attention.{ours}.{kind}", "transpose", (i, 3))
        for i, ours in enumerate(("query", "key", "value"))
        for kind in ("weight", "bias")
    ),
    Rule(f"{_H}.attn.bias", None),  # a causal mask, which old files hold
    Rule(f"{_H}.attn.masked_bias", None),
    *modules({"transformer.ln_f": "stack.norm"}),
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


def config_from_hf(theirs: dict[str, Any], names: Collection[str] = (), *, where: str = "config.json") -> LMConfig:
    got = with_width(TABLE.understood(theirs, where), where)
    return keys.built(LMConfig, TABLE.in_ours(got, where), where)


def with_width(got: dict[str, Any], where: str) -> dict[str, Any]:
    """The keys with the width inside the MLP, which a file may leave out. Raises InputError."""
    if not isinstance(got["n_embd"], int):
        raise InputError(f"n_embd is {got['n_embd']!r}", where=where)
    return got | ({"n_inner": 4 * got["n_embd"]} if got["n_inner"] is None else {})


def config_to_hf(config: LMConfig, *, start: int, end: int | Sequence[int]) -> dict[str, Any]:
    tokens = {"bos_token_id": start, "eos_token_id": end if isinstance(end, int) else list(end)}
    theirs = TABLE.in_theirs(config) | tokens | {"architectures": ["GPT2LMHeadModel"]}
    return keys.nothing_lost(theirs, config, config_from_hf(theirs), "GPT-2")


FAMILY = Family(
    "GPT-2",
    LMConfig,
    always("AutoModelForCausalLM"),
    config_from_hf,
    config_to_hf,
    rules,
    whole=whole,
    tokens={"bos_token_id": 50256, "eos_token_id": 50256},
)
