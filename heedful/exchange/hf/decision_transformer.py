"""The Decision Transformer (Chen et al. 2021), as the Hub holds it: GPT-2's blocks, without its embeddings.

Its actions are vectors; those of a model that chooses among some are one-hot, and its config.json says so. A model of
the Hub also predicts states and returns, for which there is nothing here: these two heads are left out, and written as
zeros.
"""

from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import Tensor

from heedful.errors import InputError
from heedful.exchange.hf import gpt2, keys
from heedful.exchange.hf.family import Family
from heedful.exchange.hf.keys import ACTIVATION, PARAMS, WORDLESS, Key, KeyTable, params_of
from heedful.exchange.hf.rules import Rule, always, modules
from heedful.models.decision import DecisionTransformerConfig

OURS = "reinforcement-learning"  # their name of the task, under which config.json has what our numbers mean
POSITIONS = 1024  # of GPT-2's table, of which their model reads the first row alone

TABLE = KeyTable(
    # With what each is where a file leaves it out (their DecisionTransformerConfig).
    keys={
        "act_dim": Key(4, "n_actions"),
        "action_tanh": Key(True, "bounded"),
        "activation_function": Key("relu", "stack.block.activation", ACTIVATION),
        "attn_pdrop": Key(0.1, "stack.block.attention.dropout"),
        "embd_pdrop": Key(0.1, "dropout"),
        "hidden_size": Key(128, "d_model"),
        "layer_norm_epsilon": Key(1e-5, "stack.block.norm_eps"),
        "max_ep_len": Key(4096, "longest"),
        "n_head": Key(1, "stack.block.attention.n_heads"),
        "n_inner": Key(None, "stack.block.d_ff"),
        "n_layer": Key(3, "stack.n_layers"),
        "resid_pdrop": Key(0.1, "stack.block.dropout"),
        "state_dim": Key(17, "d_state"),
    },
    always={"stack.block.order": "pre", "stack.final_norm": True},
    # Another value would make another model.
    fixed={**gpt2.TABLE.fixed, "model_type": "decision_transformer"},
    irrelevant=WORDLESS | (gpt2.TABLE.irrelevant - gpt2.TABLE.keys.keys()) | {"n_positions", "vocab_size"},
)
_TOKENS = {"embed_return": "returns", "embed_state": "states", "embed_action": "actions", "embed_ln": "norm"}
RULES = (
    *(
        Rule(f"encoder.{rule.theirs.removeprefix('transformer.')}", rule.ours, rule.how, rule.part)
        for rule in gpt2.RULES
        if rule.ours is None or rule.ours.startswith("stack.")
    ),
    *modules(_TOKENS),
    *modules({"predict_action.0": "head"}),
    Rule("embed_timestep.weight", "steps.weight"),
    *(Rule(f"{name}.{kind}", None) for name in ("predict_state", "predict_return") for kind in ("weight", "bias")),
)


def whole(theirs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Without GPT-2's embeddings. The first row of its positions is added to every token, and so becomes part of the
    bias of the norm before; nothing reads the others, or the table of words."""
    kept = {name: tensor for name, tensor in theirs.items() if name not in ("encoder.wpe.weight", "encoder.wte.weight")}
    if "encoder.wpe.weight" in theirs and "embed_ln.bias" in kept:
        kept["embed_ln.bias"] = kept["embed_ln.bias"] + theirs["encoder.wpe.weight"][0]
    return kept


def made(config: DecisionTransformerConfig) -> dict[str, Tensor]:
    """What their model has, and ours not."""
    C, S = config.d_model, config.d_state
    return {
        "encoder.wpe.weight": torch.zeros(POSITIONS, C),
        "encoder.wte.weight": torch.zeros(1, C),
        "predict_state.weight": torch.zeros(S, C),
        "predict_state.bias": torch.zeros(S),
        "predict_return.weight": torch.zeros(1, C),
        "predict_return.bias": torch.zeros(1),
    }


def config_from_hf(
    theirs: dict[str, Any], names: Collection[str] = (), *, where: str = "config.json"
) -> DecisionTransformerConfig:
    """Actions are vectors, unless it was written here for a model that chooses."""
    got = TABLE.understood(theirs, where)
    if not isinstance(got["hidden_size"], int):
        raise InputError(f"hidden_size is {got['hidden_size']!r}", where=where)
    got["n_inner"] = got["n_inner"] or 4 * got["hidden_size"]
    actions = params_of(theirs, OURS).get("actions")
    chooses = isinstance(actions, dict) and actions.get("kind") == "discrete"
    return keys.built(DecisionTransformerConfig, {**TABLE.in_ours(got, where), "continuous": not chooses}, where)


def config_to_hf(config: DecisionTransformerConfig, *, params: dict[str, Any]) -> dict[str, Any]:
    """`params` say how observations, actions and returns are read."""
    theirs = {**TABLE.in_theirs(config), "architectures": ["DecisionTransformerModel"], PARAMS: params}
    theirs |= {"n_positions": POSITIONS, "vocab_size": 1}
    return keys.nothing_lost(theirs, config, config_from_hf(theirs), "Decision Transformer")


FAMILY = Family(
    "Decision Transformer",
    DecisionTransformerConfig,
    always("DecisionTransformerModel"),
    config_from_hf,
    config_to_hf,
    always(RULES),
    whole=whole,
    made=made,
)
