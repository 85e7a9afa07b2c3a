"""Gemma 3 without its eyes (Gemma Team 2025), as the Hub holds it: Gemma 2 with norms of each head's queries and keys
in place of caps, and with rotary positions of two bases, one for layers that see a window and one for the others."""

from collections.abc import Collection
from typing import Any

from heedful.core.position import PositionConfig
from heedful.errors import InputError
from heedful.exchange.hf import causal, gemma, gemma2
from heedful.exchange.hf.causal import FULL, SLIDING
from heedful.exchange.hf.keys import Key, KeyTable
from heedful.models.lm import LMConfig

LOCAL = 10_000.0  # the base where a window is seen
TABLE = KeyTable(
    # With what each is where a file leaves it out (their Gemma3TextConfig).
    keys=gemma2.TABLE.keys
    | {
        "attn_logit_softcapping": Key(None),  # which is not read there either
        "final_logit_softcapping": Key(None, "softcap"),
        "max_position_embeddings": Key(131_072, "embed.context_length"),
        "rms_norm_eps": Key(1e-6, "stack.block.{norm_eps,attention.norm_eps}"),
        "rope_local_base_freq": Key(LOCAL),
        "rope_theta": Key(1_000_000.0, "stack.block.attention.position.theta"),
        "sliding_window_pattern": Key(6),
        "_sliding_window_pattern": Key(None),  # the same, as some files name it
        "vocab_size": Key(262_208, "embed.vocab_size"),
    },
    always=gemma2.TABLE.always | {"stack.block.attention.norm": "rms_offset"},
    fixed=causal.FIXED | {"model_type": "gemma3_text"},
    irrelevant=gemma2.TABLE.irrelevant,
)


def config_from_hf(theirs: dict[str, Any], names: Collection[str] = (), *, where: str = "config.json") -> LMConfig:
    got = causal.understood(theirs, TABLE, where)
    if got["attn_logit_softcapping"] is not None:
        raise InputError("attn_logit_softcapping: no model of this kind has such a cap", where=where)
    whole, near = causal.ropes_of_layers(got["rope_parameters"] or {FULL: got["rope_scaling"] or {}}, where)
    config = causal.built(got, TABLE, where, rope=whole)
    every = got["_sliding_window_pattern"] or got["sliding_window_pattern"]
    if type(every) is not int or every < 1:
        raise InputError(f"sliding_window_pattern is {every!r}, which is no number above 0", where=where)
    types = causal.layer_types(got, [SLIDING if (i + 1) % every else FULL for i in range(config.stack.n_layers)], where)
    if SLIDING not in types:
        return config
    local = causal.rope_from_hf(near, got["rope_local_base_freq"], config.embed.context_length, where=where)
    block = causal.windowed_block(causal.turned(config.stack.block, local), got["sliding_window"], where)
    return causal.with_layers(config, [block if kind == SLIDING else config.stack.block for kind in types])


def _layers_to_hf(config: LMConfig) -> dict[str, Any]:
    types = causal.types_of(config)
    positions = {FULL: config.stack.block.attention.position, SLIDING: PositionConfig(kind="rotary", theta=LOCAL)}
    positions |= {kind: layer.attention.position for kind, layer in zip(types, config.stack.layers, strict=True)}
    return {
        "layer_types": types,
        "rope_parameters": {kind: causal.rope_to_hf(position) for kind, position in positions.items()},
        "sliding_window": causal.window_of(config),
    }


FAMILY = causal.family(
    "Gemma 3", "Gemma3ForCausalLM", TABLE, config_from_hf, more=_layers_to_hf, scale=True, tokens=gemma.FAMILY.tokens
)
