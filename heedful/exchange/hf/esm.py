"""ESM-2 (Lin et al. 2023), a language model of proteins, as the Hub holds it: BERT before its norms, with rotary
positions, whose masked residues count as dropped out.

Files also have numbers that we compute: positions, a table of positions that nothing reads, and how fast rotary
positions turn. A file that was in fewer bits has the latter rounded, which would be another model: it is refused.
"""

from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import Tensor

from heedful.core.rotary import frequencies
from heedful.errors import InputError
from heedful.exchange.hf import bert, keys
from heedful.exchange.hf.family import Family
from heedful.exchange.hf.keys import EVERYWHERE, How, Key, KeyTable
from heedful.exchange.hf.rules import Rule, inside
from heedful.models.encoder import EncoderConfig

TURNS, ROUNDED = "inv_freq", (torch.float16, torch.bfloat16)


def _of_esm2(key: str, value: Any, where: str) -> str:
    if value != "rotary":
        raise InputError(f"{key} is {value!r}: only ESM-2, whose positions are rotary, can be read", where=where)
    return "rotary"


TABLE = KeyTable(
    # With what each is where a file leaves it out (their EsmConfig).
    keys={
        "attention_probs_dropout_prob": Key(0.1, "stack.block.attention.dropout"),
        "emb_layer_norm_before": Key(None),
        "hidden_dropout_prob": Key(0.1, "stack.block.dropout"),
        "hidden_size": Key(768, "d_model"),
        "intermediate_size": Key(3072, "stack.block.d_ff"),
        "layer_norm_eps": Key(1e-12, "stack.block.norm_eps"),
        "mask_token_id": Key(None),
        "max_position_embeddings": Key(1026, "embed.context_length"),
        "num_attention_heads": Key(12, "stack.block.attention.n_heads"),
        "num_hidden_layers": Key(12, "stack.n_layers"),
        "position_embedding_type": Key(
            "absolute", "stack.block.attention.position.kind", How(_of_esm2, lambda kind: kind)
        ),
        "rope_theta": Key(10_000.0, "stack.block.attention.position.theta"),
        "tie_word_embeddings": Key(True, "tied"),
        "token_dropout": Key(False),
        "vocab_size": Key(None, "embed.vocab_size"),
    },
    always={
        "embed.scaled": False,
        "embed.position_embeddings": "none",
        "stack.block.activation": "gelu",
        "stack.block.order": "pre",
        "stack.final_norm": True,
    },
    # Another value would make another model.
    fixed=keys.FIXED | {"hidden_act": "gelu", "is_folding_model": False, "model_type": "esm"},
    irrelevant=EVERYWHERE | {"classifier_dropout", "esmfold_config", "vocab_list"},  # of models that fold
)

_BLOCK = {
    "attention.self.query": "self_attention.query",
    "attention.self.key": "self_attention.key",
    "attention.self.value": "self_attention.value",
    "attention.output.dense": "self_attention.out",
    "attention.LayerNorm": "self_residual.in_norm",
    "intermediate.dense": "mlp.up",
    "output.dense": "mlp.down",
    "LayerNorm": "mlp_residual.in_norm",
}
_TRUNK = inside("encoder.layer.{i}", "stack.blocks.{i}", _BLOCK) | {"encoder.emb_layer_norm_after": "stack.norm"}
_WORDS = {"lm_head.dense": "transform.dense", "lm_head.layer_norm": "transform.norm"}
_COMPUTED = (
    "embeddings.position_ids",
    "embeddings.position_embeddings.weight",
    *(f"encoder.layer.{i}.attention.self.rotary_embeddings.{TURNS}" for i in ("{i}", "*")),  # "*": the fifth version
    f"rotary_embeddings.{TURNS}",
)


def rules(config: EncoderConfig) -> tuple[Rule, ...]:
    """The table for a model with these heads. Without one over the vocabulary, their names lack the first "esm."."""
    prefix = "esm." if config.mlm_head else ""
    names = dict(_TRUNK)
    names |= {"contact_head.regression": "contact_head"} if config.contact_head else {}
    names |= {"pooler.dense": "pooler"} if config.pooler else {}
    table = [*bert.modules({f"{prefix}{theirs}": ours for theirs, ours in names.items()})]
    table.append(Rule(f"{prefix}embeddings.word_embeddings.weight", "embed.tokens.weight"))
    table += [Rule(f"{prefix}{name}", None) for name in _COMPUTED]
    if config.mlm_head:
        output = "embed.tokens.weight" if config.tied else "head.weight"
        table += [*bert.modules(_WORDS), Rule("lm_head.decoder.weight", output), Rule("lm_head.bias", "head.bias")]
    return tuple(table)


def config_from_hf(theirs: dict[str, Any], names: Collection[str] = (), *, where: str = "config.json") -> EncoderConfig:
    """What their configuration means here, with the heads that their tensors' `names` tell of."""
    got = TABLE.understood(theirs, where)
    if got["emb_layer_norm_before"]:
        raise InputError("emb_layer_norm_before is true: only ESM-2, which has no such norm, can be read", where=where)
    heads = {
        "mlm_head": any(name.startswith("lm_head.") for name in names),
        "pooler": any(name.endswith("pooler.dense.weight") for name in names),
        "contact_head": any(name.endswith("contact_head.regression.weight") for name in names),
        "dropped": got["mask_token_id"] if got["token_dropout"] else None,
    }
    return keys.built(EncoderConfig, TABLE.in_ours(got, where) | heads, where)


def exact(theirs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors as they are. Raises InputError for rounded frequencies of rotary positions."""
    for name, turns in theirs.items():
        if name.endswith(TURNS) and len(turns) > 1 and any(turns.equal(turns.to(kind).float()) for kind in ROUNDED):
            what = f"their tensor {name!r} is rounded: it turns positions otherwise than rope_theta says"
            raise InputError(what, fix="take the file in float32, or leave the tensor out if small differences may be")
    return dict(theirs)


def turns(config: EncoderConfig) -> dict[str, Tensor]:
    """How fast positions turn, which a file has."""
    attention = config.stack.block.attention
    speed = frequencies(config.d_model // attention.n_heads, attention.position.theta, None)
    return {f"{'esm.' if config.mlm_head else ''}rotary_embeddings.{TURNS}": speed}


def config_to_hf(config: EncoderConfig, *, pad: int, start: int, end: int) -> dict[str, Any]:
    theirs = TABLE.in_theirs(config) | {
        "architectures": ["EsmForMaskedLM" if config.mlm_head else "EsmModel"],
        "bos_token_id": start,
        "eos_token_id": end,
        "mask_token_id": config.dropped,
        "pad_token_id": pad,
        "token_dropout": config.dropped is not None,
    }
    return keys.nothing_lost(theirs, config, config_from_hf(theirs, [rule.theirs for rule in rules(config)]), "ESM-2")


FAMILY = Family("ESM-2", EncoderConfig, bert.loads, config_from_hf, config_to_hf, rules, whole=exact, made=turns)
