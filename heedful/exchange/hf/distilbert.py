"""DistilBERT (Sanh et al. 2019), as the Hub holds it: BERT of half as many layers, without types and without a pooler.
Its positions may begin as sines: a file has the table either way.

In their training nothing is dropped of what attention gives; here it is as of what the MLP gives.
"""

from collections.abc import Collection, Iterator
from typing import Any

from heedful.exchange.hf import bert, keys
from heedful.exchange.hf.family import Family
from heedful.exchange.hf.keys import ACTIVATION, EVERYWHERE, Key, KeyTable
from heedful.exchange.hf.rules import Rule, inside
from heedful.models.encoder import EncoderConfig

TABLE = KeyTable(
    # With what each is where a file leaves it out (their DistilBertConfig).
    keys={
        "activation": Key("gelu", "stack.block.activation", ACTIVATION),
        "attention_dropout": Key(0.1, "stack.block.attention.dropout"),
        "dim": Key(768, "d_model"),
        "dropout": Key(0.1, "{stack.block,embed}.dropout"),
        "hidden_dim": Key(3072, "stack.block.d_ff"),
        "max_position_embeddings": Key(512, "embed.context_length"),
        "n_heads": Key(12, "stack.block.attention.n_heads"),
        "n_layers": Key(6, "stack.n_layers"),
        "tie_word_embeddings": Key(True, "tied"),
        "vocab_size": Key(30522, "embed.vocab_size"),
    },
    always={
        "embed.scaled": False,
        "embed.position_embeddings": "learned",
        "{stack.block,embed}.norm_eps": 1e-12,
        "pooler": False,
        "nsp_head": False,
    },
    # Another value would make another model.
    fixed=keys.FIXED | {"model_type": "distilbert"},
    irrelevant=EVERYWHERE
    | {
        "qa_dropout",  # of heads that are read elsewhere
        "seq_classif_dropout",
        "sinusoidal_pos_embds",
        "tie_weights_",
    },
)

_BLOCK = {
    "attention.q_lin": "self_attention.query",
    "attention.k_lin": "self_attention.key",
    "attention.v_lin": "self_attention.value",
    "attention.out_lin": "self_attention.out",
    "sa_layer_norm": "self_residual.out_norm",
    "ffn.lin1": "mlp.up",
    "ffn.lin2": "mlp.down",
    "output_layer_norm": "mlp_residual.out_norm",
}
_WORDS = {"vocab_transform": "transform.dense", "vocab_layer_norm": "transform.norm"}


def rules(config: EncoderConfig) -> tuple[Rule, ...]:
    """The table for a model with or without its head. Without, their names lack the first "distilbert."."""
    found = [*trunk("distilbert.", written=config.mlm_head), *trunk("", written=not config.mlm_head)]
    if config.mlm_head:
        output = "embed.tokens.weight" if config.tied else "head.weight"
        found += [
            *bert.modules(_WORDS),
            Rule("vocab_projector.weight", output),
            Rule("vocab_projector.bias", "head.bias"),
        ]
    return tuple(found)


def trunk(prefix: str, *, written: bool) -> Iterator[Rule]:
    """All but the heads."""
    names = inside("transformer.layer.{i}", "stack.blocks.{i}", _BLOCK) | {"embeddings.LayerNorm": "embed.norm"}
    yield from bert.modules({f"{prefix}{theirs}": ours for theirs, ours in names.items()}, written=written)
    for theirs, ours in (("word", "tokens"), ("position", "position_embeddings.table")):
        yield Rule(f"{prefix}embeddings.{theirs}_embeddings.weight", f"embed.{ours}.weight", written=written)


def config_from_hf(theirs: dict[str, Any], names: Collection[str] = (), *, where: str = "config.json") -> EncoderConfig:
    """What their configuration means here, with the head that their tensors' `names` tell of."""
    got = TABLE.understood(theirs, where)
    head = {"mlm_head": any(name.startswith("vocab_projector.") for name in names)}
    return keys.built(EncoderConfig, TABLE.in_ours(got, where) | head, where)


def config_to_hf(
    config: EncoderConfig, *, pad: int, start: int | None = None, end: int | None = None
) -> dict[str, Any]:
    """Which names no token but the padding."""
    kind = {"architectures": ["DistilBertForMaskedLM" if config.mlm_head else "DistilBertModel"], "pad_token_id": pad}
    theirs = TABLE.in_theirs(config) | kind
    return keys.nothing_lost(
        theirs, config, config_from_hf(theirs, [rule.theirs for rule in rules(config)]), "DistilBERT"
    )


FAMILY = Family(
    "DistilBERT", EncoderConfig, bert.loads, config_from_hf, config_to_hf, rules, tokens={"pad_token_id": 0}
)
