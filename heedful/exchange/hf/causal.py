"""What the Hub's language models since LLaMA have in common: the names of their tensors, how they write rotary
positions, and which of their layers see a window. The family's own table says the rest."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, replace
from types import MappingProxyType
from typing import Any

from heedful.core.block import BlockConfig, StackConfig
from heedful.core.config import from_json
from heedful.core.position import PositionConfig
from heedful.errors import InputError
from heedful.exchange.hf import keys
from heedful.exchange.hf.family import Family
from heedful.exchange.hf.keys import ACTIVATION, EVERYWHERE, How, Key, KeyReader, KeyTable
from heedful.exchange.hf.rules import Rule, always, inside, modules
from heedful.models.lm import LMConfig

FULL, SLIDING = "full_attention", "sliding_attention"
ALWAYS = {
    "embed.scaled": False,
    "embed.position_embeddings": "none",
    "stack.block.attention.position.kind": "rotary",
    "stack.block.order": "pre",
    "stack.block.norm": "rms",
    "stack.block.gated": True,
    "stack.final_norm": True,
}
FIXED = keys.FIXED | {"rope_interleaved": False}  # another value would make another model
IRRELEVANT = EVERYWHERE | {"layer_type_validation", "max_sequence_length", "pretraining_tp"}

_OURS = {
    "attention_bias": "stack.block.attention.bias",
    "attention_dropout": "stack.block.attention.dropout",
    "head_dim": "stack.block.attention.head_dim",
    "hidden_size": "d_model",
    "intermediate_size": "stack.block.d_ff",
    "moe_intermediate_size": "stack.block.d_ff",
    "num_experts": "stack.block.experts.number",
    "num_experts_per_tok": "stack.block.experts.used",
    "num_local_experts": "stack.block.experts.number",
    "router_aux_loss_coef": "stack.block.experts.balance",
    "max_position_embeddings": "embed.context_length",
    "mlp_bias": "stack.block.bias",
    "num_attention_heads": "stack.block.attention.n_heads",
    "num_hidden_layers": "stack.n_layers",
    "num_key_value_heads": "stack.block.attention.kv_heads",
    "rms_norm_eps": "stack.block.norm_eps",
    "rope_theta": "stack.block.attention.position.theta",
    "tie_word_embeddings": "tied",
    "vocab_size": "embed.vocab_size",
}
_TURNED = {"hidden_act": "stack.block.activation", "hidden_activation": "stack.block.activation"}
# What a kind of scaling needs, and may have, beside the `factor`: their keys, and ours.
_SCALINGS: dict[str, dict[str, str]] = {
    "linear": {},
    "llama3": {
        "original_max_position_embeddings": "original_length",
        "low_freq_factor": "low_turns",
        "high_freq_factor": "high_turns",
    },
    "yarn": {
        "original_max_position_embeddings": "original_length",
        "beta_slow": "low_turns",
        "beta_fast": "high_turns",
        "attention_factor": "magnitude",
        "truncate": "whole",
    },
}
_YARN = {"low_turns": 1.0, "high_turns": 32.0}  # where a file leaves them out

_ATTENTION = {
    "self_attn.q_proj": "self_attention.query",
    "self_attn.k_proj": "self_attention.key",
    "self_attn.v_proj": "self_attention.value",
}
_HEAD_NORMS = {"self_attn.q_norm": "self_attention.query_norm", "self_attn.k_norm": "self_attention.key_norm"}
MLP = {"mlp.gate_proj": "mlp.gate", "mlp.up_proj": "mlp.up", "mlp.down_proj": "mlp.down"}
_NORMS = {"input_layernorm": "self_residual.in_norm", "post_attention_layernorm": "mlp_residual.in_norm"}
_SANDWICH = {
    "input_layernorm": "self_residual.in_norm",
    "post_attention_layernorm": "self_residual.branch_norm",
    "pre_feedforward_layernorm": "mlp_residual.in_norm",
    "post_feedforward_layernorm": "mlp_residual.branch_norm",
}


def their_keys(**defaults: Any) -> dict[str, Key]:
    """The keys of a family, with what each is where a file leaves it out. Those that all families read alike have
    their way here; "rope_parameters" and "rope_scaling" are the rope_theta and more, in new files and in old ones."""
    found = {name: Key(value, _OURS.get(name, "")) for name, value in defaults.items()}
    found |= {name: Key(defaults[name], _TURNED[name], ACTIVATION) for name in _TURNED if name in defaults}
    return found | {"rope_parameters": Key(None), "rope_scaling": Key(None)}


def rules(config: LMConfig, mlp: Mapping[str, str] = MLP) -> tuple[Rule, ...]:
    """The table for a model of this configuration: which maps have biases, and which norms there are, differs; and the
    names in its `mlp`, where there are experts."""
    block, own = config.stack.block, config.stack.block.attention
    out_bias = own.bias if own.out_bias is None else own.out_bias
    parts = (
        (_ATTENTION, own.bias),
        ({"self_attn.o_proj": "self_attention.out"}, out_bias),
        (_HEAD_NORMS if own.norm is not None else {}, False),
        (mlp, block.bias),
        (_SANDWICH if block.order == "sandwich" else _NORMS, False),
    )
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


def experts(config: LMConfig, theirs: str, names: Mapping[str, str]) -> dict[str, str]:
    """Their names and ours of what is inside each expert: `theirs` is the name of the list of them."""
    own = config.stack.block.experts
    found: dict[str, str] = {}
    for n in range(0 if own is None else own.number):
        found |= inside(f"{theirs}.{n}", f"mlp.experts.{n}", names)
    return found


def understood(theirs: Mapping[str, Any], table: KeyTable, where: str) -> dict[str, Any]:
    """As `KeyTable.understood`, with the numbers of the heads given, where they follow from others."""
    got = table.understood(theirs, where)
    width, heads = got["hidden_size"], got["num_attention_heads"]
    if not got.get("head_dim") and (not isinstance(width, int) or not isinstance(heads, int) or heads < 1):
        raise InputError(f"hidden_size {width!r} and num_attention_heads {heads!r}", where=where)
    got["head_dim"] = got.get("head_dim") or width // heads
    got["num_key_value_heads"] = got["num_key_value_heads"] or heads
    if got.get("use_bidirectional_attention"):
        raise InputError("use_bidirectional_attention is true: only causal attention can be read", where=where)
    return got


def built(got: Mapping[str, Any], table: KeyTable, where: str, *, rope: object = None) -> LMConfig:
    """Ours, of layers that are all alike. `rope`: their rotary positions, where not the file's only ones."""
    values = table.in_ours(got, where)
    if "head_dim" not in table.keys:
        values[_OURS["head_dim"]] = got["head_dim"]
    values[_OURS["rope_theta"]] = table.keys["rope_theta"].default  # until they are read
    config = keys.built(LMConfig, values, where)
    given = (rope or written_rope(got), got["rope_theta"], config.embed.context_length)
    return with_block(config, turned(config.stack.block, rope_from_hf(*given, where=where)))


def written_rope(got: Mapping[str, Any]) -> Any:
    """Their rotary positions, as their fifth major version writes them or as older ones do."""
    return got["rope_parameters"] or got["rope_scaling"] or {}


def ropes_of_layers(rope: object, where: str) -> tuple[Any, Any]:
    """Their rotary positions of the layers that see all, and of those that see a window; {} where a file does not say.
    Raises InputError for those of other layers."""
    if not isinstance(rope, dict) or not rope.keys() <= {FULL, SLIDING}:
        raise InputError(f"rope_parameters is {rope!r}: those of {FULL} and of {SLIDING} can be read", where=where)
    return rope.get(FULL) or {}, rope.get(SLIDING) or {}


def with_block(config: LMConfig, block: BlockConfig) -> LMConfig:
    return replace(config, stack=replace(config.stack, block=block))


def turned(block: BlockConfig, position: PositionConfig) -> BlockConfig:
    return replace(block, attention=replace(block.attention, position=position))


def with_layers(config: LMConfig, layers: Sequence[BlockConfig]) -> LMConfig:
    """The same with these blocks, layer by layer."""
    return replace(config, stack=layered(config.stack, layers))


def layered(stack: StackConfig, layers: Sequence[BlockConfig]) -> StackConfig:
    """The same with these blocks, layer by layer: as the shortest pattern that says so."""
    n = len(layers)
    period = next((p for p in range(1, n) if all(layers[i] == layers[i % p] for i in range(n))), n)
    return replace(stack, block=layers[0]) if period == 1 else replace(stack, pattern=tuple(layers[:period]))


def layer_types(got: Mapping[str, Any], otherwise: Sequence[str], where: str) -> Sequence[str]:
    """Which layers see a window, as a file says or else so. Raises InputError for another kind."""
    types = got["layer_types"]
    if types is None:
        return otherwise
    if not isinstance(types, list) or len(types) != got["num_hidden_layers"] or not {*types} <= {FULL, SLIDING}:
        what = f"layer_types is {types!r}: for each of {got['num_hidden_layers']} layers {FULL!r} or {SLIDING!r}"
        raise InputError(what, where=where)
    return types


def types_of(config: LMConfig) -> list[str]:
    return [FULL if layer.window is None else SLIDING for layer in config.stack.layers]


def windowed(config: LMConfig, types: Sequence[str], window: object, where: str) -> LMConfig:
    """The same with a window in the layers that have one. Raises InputError for one that is no number."""
    if SLIDING not in types:
        return config
    block = config.stack.block
    local = windowed_block(block, window, where)
    return with_layers(config, [local if kind == SLIDING else block for kind in types])


def windowed_block(block: BlockConfig, window: object, where: str) -> BlockConfig:
    if type(window) is not int or window < 1:
        raise InputError(f"sliding_window is {window!r}, and some layers have one", where=where)
    return replace(block, window=window)


def window_of(config: LMConfig) -> int | None:
    """That of the layers that have one."""
    return next((layer.window for layer in config.stack.layers if layer.window is not None), None)


def reader(
    table: KeyTable, layers: Callable[[LMConfig, Mapping[str, Any], str], LMConfig] = lambda config, got, where: config
) -> KeyReader[LMConfig]:
    """That of a family whose table says all but, where there are `layers`, what these make of models of like ones."""

    def config_from_hf(theirs: dict[str, Any], names: Collection[str] = (), *, where: str = "config.json") -> LMConfig:
        got = understood(theirs, table, where)
        return layers(built(got, table, where), got, where)

    return config_from_hf


def family(
    name: str,
    kind: str,
    table: KeyTable,
    read: KeyReader[LMConfig],
    *,
    more: Callable[[LMConfig], dict[str, Any]] = lambda config: {},
    scale: bool = False,
    tokens: Mapping[str, int] = MappingProxyType({}),
    expert_rules: Callable[[LMConfig], tuple[Rule, ...]] | None = None,
) -> Family[LMConfig]:
    """That of their class `kind`. `more` is what it writes beside the table, and `scale` says whether it writes that of
    the scores. `expert_rules` are those of a family whose models all have experts; the others have none."""
    table_of = expert_rules or rules

    def config_to_hf(config: LMConfig, *, start: int, end: int | Sequence[int]) -> dict[str, Any]:
        """`start` and `end` are the ids of what begins a text and of all that ends one."""
        config = written_out(config, scale=scale)
        theirs = table.in_theirs(config) | {"architectures": [kind]}
        theirs |= {"rope_parameters": rope_to_hf(config.stack.block.attention.position), **more(config)}
        theirs |= {"bos_token_id": start, "eos_token_id": end if isinstance(end, int) else list(end)}
        return keys.nothing_lost(theirs, config, read(theirs), name)

    def suits(config: LMConfig) -> bool:
        return (config.stack.block.experts is not None) == (expert_rules is not None)

    return Family(name, LMConfig, always("AutoModelForCausalLM"), read, config_to_hf, table_of, suits, tokens=tokens)


def written_out(config: LMConfig, *, scale: bool = False) -> LMConfig:
    """The same model with the numbers of its heads given, where they follow from others, and the `scale` of scores."""

    def given(block: BlockConfig) -> BlockConfig:
        own = block.attention
        kv_heads, head_dim = own.kv_heads or own.n_heads, own.head_dim or config.d_model // own.n_heads
        by = head_dim**-0.5 if scale and own.scale is None else own.scale
        return replace(block, attention=replace(own, kv_heads=kv_heads, head_dim=head_dim, scale=by))

    stack = config.stack
    return replace(
        config, stack=replace(stack, block=given(stack.block), pattern=tuple(given(each) for each in stack.pattern))
    )


def rope_from_hf(rope: object, theta: object, context: int, *, where: str) -> PositionConfig:
    """Their rotary positions. Raises InputError for what is not known, by its name."""
    if not isinstance(rope, dict):
        raise InputError(f"rope_parameters is {rope!r}: not an object", where=where)
    kind = rope.get("rope_type", rope.get("type", "default"))
    theta = rope.get("rope_theta", theta)
    if kind != "default" and kind not in _SCALINGS:
        raise InputError(f"rope_type is {kind!r}: only default, {', '.join(_SCALINGS)} can be read", where=where)
    known = {"rope_type", "type", "rope_theta"} | ({"factor", *_SCALINGS[kind]} if kind != "default" else set())
    known |= {"mscale", "mscale_all_dim"} if kind == "yarn" else set()
    for key, value in rope.items():
        if key not in known and not (key == "partial_rotary_factor" and value == 1.0):
            raise InputError(f"rope_parameters has {key!r}, which {kind!r} does not", where=where)
    values: dict[str, Any] = {"kind": "rotary", "theta": theta}
    if kind != "default":
        values["scaling"] = _scaling(kind, rope, context, where)
    return from_json(PositionConfig, values, f"{where}: rope_parameters")


def _scaling(kind: str, rope: Mapping[str, Any], context: int, where: str) -> dict[str, Any]:
    factor = rope.get("factor")
    if isinstance(factor, bool) or not isinstance(factor, int | float):
        raise InputError(f"rope_parameters has the factor {factor!r}, which is no number", where=where)
    found: dict[str, Any] = {"kind": kind, "factor": float(factor)}
    if kind != "linear":
        found["original_length"] = context
    if kind == "yarn":
        found |= _YARN | {"magnitude": _magnitude(float(factor), rope.get("mscale"), rope.get("mscale_all_dim"))}
    return found | {ours: rope[key] for key, ours in _SCALINGS[kind].items() if rope.get(key) is not None}


def _magnitude(factor: float, scale: Any, over: Any) -> float:
    """What yarn multiplies by where a file does not say (Peng et al. 2023, equation 22, and DeepSeek's two numbers)."""

    def grown(by: Any) -> float:
        return 0.1 * by * math.log(factor) + 1.0 if factor > 1 else 1.0

    return grown(scale) / grown(over) if scale and over else grown(1.0)


def rope_to_hf(position: PositionConfig) -> dict[str, Any]:
    """What `rope_from_hf` reads as this."""
    found: dict[str, Any] = {"rope_theta": position.theta, "rope_type": "default"}
    if position.scaling is not None:
        own = asdict(position.scaling)
        found |= {"rope_type": own["kind"], "factor": own["factor"]}
        found |= {key: own[ours] for key, ours in _SCALINGS[own["kind"]].items()}
    return found


# The scale of the scores, which some write as what its root is divided by.
SCALAR = How(
    lambda key, value, where: _root(key, value, where),
    lambda scale: None if scale is None else _whole(round(scale**-2, 6)),
)


def _whole(number: float) -> int | float:
    return int(number) if number.is_integer() else number


def _root(key: str, value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        raise InputError(f"{key} is {value!r}, which is no number above 0", where=where)
    return float(value) ** -0.5
