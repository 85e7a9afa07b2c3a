"""BERT (Devlin et al. 2019), as the Hub holds it.

    config = config_from_hf(json.loads(text), their_weights)
    model = Encoder(config)
    weights = to_ours(rules(config), their_weights, dict(model.named_parameters()))

Which heads a file has, its tensors tell: the best known one says "BertForMaskedLM", and holds a pooler and the head for
pairs beside. A classifier of texts is not read here but in `sequence_classifier`.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from heedful.errors import InputError
from heedful.exchange.hf import keys
from heedful.exchange.hf.family import Family
from heedful.exchange.hf.keys import ACTIVATION, COPY, EVERYWHERE, How, Key, KeyTable
from heedful.exchange.hf.rules import Rule, inside
from heedful.models.encoder import EncoderConfig


def _types(key: str, types: Any, where: str) -> Any:
    if types == 0:
        raise InputError(f"{key} is 0: their embeddings have at least one type", where=where)
    return types


TABLE = KeyTable(
    # With what each is where a file leaves it out (their BertConfig).
    keys={
        "attention_probs_dropout_prob": Key(0.1, "stack.block.attention.dropout"),
        "hidden_act": Key("gelu", "stack.block.activation", ACTIVATION),
        "hidden_dropout_prob": Key(0.1, "{stack.block,embed}.dropout"),
        "hidden_size": Key(768, "d_model"),
        "intermediate_size": Key(3072, "stack.block.d_ff"),
        "layer_norm_eps": Key(1e-12, "{stack.block,embed}.norm_eps"),
        "max_position_embeddings": Key(512, "embed.context_length"),
        "num_attention_heads": Key(12, "stack.block.attention.n_heads"),
        "num_hidden_layers": Key(12, "stack.n_layers"),
        "tie_word_embeddings": Key(True, "tied"),
        "type_vocab_size": Key(2, "embed.types", How(_types, COPY.theirs)),
        "vocab_size": Key(30522, "embed.vocab_size"),
    },
    always={"embed.scaled": False, "embed.position_embeddings": "learned"},
    # Another value would make another model.
    fixed=keys.FIXED | {"add_cross_attention": False, "model_type": "bert", "position_embedding_type": "absolute"},
    irrelevant=EVERYWHERE
    | {
        "classifier_dropout",  # of heads that are not read
        "directionality",
        "pooler_fc_size",  # of other poolers, which no model has
        "pooler_num_attention_heads",
        "pooler_num_fc_layers",
        "pooler_size_per_head",
        "pooler_type",
    },
)

_BLOCK = {
    "attention.self.query": "self_attention.query",
    "attention.self.key": "self_attention.key",
    "attention.self.value": "self_attention.value",
    "attention.output.dense": "self_attention.out",
    "attention.output.LayerNorm": "self_residual.out_norm",
    "intermediate.dense": "mlp.up",
    "output.dense": "mlp.down",
    "output.LayerNorm": "mlp_residual.out_norm",
}
_WORDS = {"cls.predictions.transform.dense": "transform.dense", "cls.predictions.transform.LayerNorm": "transform.norm"}


def rules(config: EncoderConfig) -> tuple[Rule, ...]:
    """The table for a model with these heads. Where there is none, their names lack the first "bert."."""
    whole = config.mlm_head or config.nsp_head
    found = [*trunk(config, "bert.", written=whole), *trunk(config, "", written=not whole)]
    if config.mlm_head:
        output = "embed.tokens.weight" if config.tied else "head.weight"
        found += [*modules(_WORDS), Rule("cls.predictions.decoder.weight", output)]
        found += output_bias(config, "cls.predictions")
    if config.nsp_head:
        found += modules({"cls.seq_relationship": "nsp_head"})
    return tuple(found)


def trunk(config: EncoderConfig, prefix: str, *, written: bool, unused: int = 0) -> Iterator[Rule]:
    """All but the heads. The table of positions begins with `unused` rows."""
    names = inside("encoder.layer.{i}", "stack.blocks.{i}", _BLOCK) | {"embeddings.LayerNorm": "embed.norm"}
    if config.pooler:
        names["pooler.dense"] = "pooler"
    yield from modules({f"{prefix}{theirs}": ours for theirs, ours in names.items()}, written=written)
    tables = {"word": "embed.tokens", "token_type": "embed.types"}
    for theirs, ours in tables.items():
        yield Rule(f"{prefix}embeddings.{theirs}_embeddings.weight", f"{ours}.weight", written=written)
    positions = f"{prefix}embeddings.position_embeddings.weight"
    yield Rule(positions, "embed.position_embeddings.table.weight", unused=unused, written=written)
    yield Rule(f"{prefix}embeddings.position_ids", None)  # 0, 1, 2 ..., which old files hold


def output_bias(config: EncoderConfig, head: str) -> list[Rule]:
    """The one bias under their two names, of which a file has the first: that which is looked for."""
    names = ("bias", "decoder.bias") if config.tied else ("decoder.bias", "bias")
    return [Rule(f"{head}.{theirs}", "head.bias") for theirs in names]


def modules(names: Mapping[str, str], *, written: bool = True) -> Iterator[Rule]:
    """The weights and biases of linear maps and norms, which old files call the norms' gamma and beta."""
    for theirs, ours in names.items():
        for kind, old in (("weight", "gamma"), ("bias", "beta")):
            yield Rule(f"{theirs}.{kind}", f"{ours}.{kind}", written=written)
            if theirs.endswith("LayerNorm"):
                yield Rule(f"{theirs}.{old}", f"{ours}.{kind}", written=False)


def loads(config: EncoderConfig) -> str:
    return "AutoModelForMaskedLM" if config.mlm_head else "AutoModel"


def config_from_hf(theirs: dict[str, Any], names: Collection[str] = (), *, where: str = "config.json") -> EncoderConfig:
    """What their configuration means here, with the heads that their tensors' `names` tell of."""
    got = TABLE.understood(theirs, where)
    heads = {
        "mlm_head": any(name.startswith("cls.predictions.") for name in names),
        "pooler": any(name.endswith("pooler.dense.weight") for name in names),
        "nsp_head": any(name.startswith("cls.seq_relationship.") for name in names),
    }
    return keys.built(EncoderConfig, TABLE.in_ours(got, where) | heads, where)


def config_to_hf(
    config: EncoderConfig, *, pad: int, start: int | None = None, end: int | None = None
) -> dict[str, Any]:
    """Which names no token but the padding."""
    if config.mlm_head:
        kind = "ForPreTraining" if config.nsp_head else "ForMaskedLM"
    else:
        kind = "ForNextSentencePrediction" if config.nsp_head else "Model"
    theirs = TABLE.in_theirs(config) | {"architectures": [f"Bert{kind}"], "pad_token_id": pad}
    return keys.nothing_lost(theirs, config, config_from_hf(theirs, [rule.theirs for rule in rules(config)]), "BERT")


FAMILY = Family("BERT", EncoderConfig, loads, config_from_hf, config_to_hf, rules, tokens={"pad_token_id": 0})
