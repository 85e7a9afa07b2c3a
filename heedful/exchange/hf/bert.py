"""BERT (Devlin et al. 2019), as the Hub holds it.

    config = config_from_hf(json.loads(text), their_weights)
    model = Encoder(config)
    weights = to_ours(rules(config), their_weights, dict(model.named_parameters()))

Which heads a file has, its tensors tell: the best known one says "BertForMaskedLM", and holds a pooler and the head for
pairs beside. A model for classifying texts is `bert.pooler` and a `classifier` (weight [labels, C] and bias) on what
the pooler sums up; there is no rule for a classifier here, so such a file is refused by that name.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from heedful.core.config import from_json
from heedful.errors import InputError
from heedful.exchange.hf.keys import EVERYWHERE, activation, activation_to_hf, nothing_lost, understood
from heedful.exchange.hf.rules import Rule
from heedful.models.encoder import EncoderConfig

# What they leave out of a file is what these say (their BertConfig).
USED: dict[str, Any] = {
    "attention_probs_dropout_prob": 0.1,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "hidden_size": 768,
    "intermediate_size": 3072,
    "layer_norm_eps": 1e-12,
    "max_position_embeddings": 512,
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "tie_word_embeddings": True,
    "type_vocab_size": 2,
    "vocab_size": 30522,
}

TOKENS = {"pad_token_id": 0}  # what it is where a config.json does not say

# Another value would make another model.
FIXED: dict[str, Any] = {
    "add_cross_attention": False,
    "chunk_size_feed_forward": 0,
    "is_decoder": False,
    "is_encoder_decoder": False,
    "model_type": "bert",
    "position_embedding_type": "absolute",
}

IRRELEVANT = EVERYWHERE | {
    "classifier_dropout",  # of heads that are not read
    "directionality",
    "initializer_range",
    "pooler_fc_size",  # of other poolers, which no model has
    "pooler_num_attention_heads",
    "pooler_num_fc_layers",
    "pooler_size_per_head",
    "pooler_type",
}

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
        found += [Rule(f"cls.predictions.{theirs}", "head.bias") for theirs in ("bias", "decoder.bias")]
    if config.nsp_head:
        found += modules({"cls.seq_relationship": "nsp_head"})
    return tuple(found)


def trunk(config: EncoderConfig, prefix: str, *, written: bool, unused: int = 0) -> Iterator[Rule]:
    """All but the heads. The table of positions begins with `unused` rows."""
    names = {f"encoder.layer.{{i}}.{theirs}": f"stack.blocks.{{i}}.{ours}" for theirs, ours in _BLOCK.items()}
    names["embeddings.LayerNorm"] = "embed.norm"
    if config.pooler:
        names["pooler.dense"] = "pooler"
    yield from modules({f"{prefix}{theirs}": ours for theirs, ours in names.items()}, written=written)
    tables = {"word": "embed.tokens", "token_type": "embed.types"}
    for theirs, ours in tables.items():
        yield Rule(f"{prefix}embeddings.{theirs}_embeddings.weight", f"{ours}.weight", written=written)
    positions = f"{prefix}embeddings.position_embeddings.weight"
    yield Rule(positions, "embed.position_embeddings.table.weight", unused=unused, written=written)
    yield Rule(f"{prefix}embeddings.position_ids", None)  # 0, 1, 2 ..., which old files hold


def modules(names: Mapping[str, str], *, written: bool = True) -> Iterator[Rule]:
    """The weights and biases of linear maps and norms, which old files call the norms' gamma and beta."""
    for theirs, ours in names.items():
        for kind, old in (("weight", "gamma"), ("bias", "beta")):
            yield Rule(f"{theirs}.{kind}", f"{ours}.{kind}", written=written)
            if theirs.endswith("LayerNorm"):
                yield Rule(f"{theirs}.{old}", f"{ours}.{kind}", written=False)


def config_from_hf(theirs: dict[str, Any], names: Collection[str], *, where: str = "config.json") -> EncoderConfig:
    """What their configuration means here, with the heads that their tensors' `names` tell of.

    Raises InputError for a key that is not known, or a value that we cannot build.
    """
    got = understood(theirs, used=USED, fixed=FIXED, irrelevant=IRRELEVANT, where=where)
    heads = {
        "mlm_head": any(name.startswith("cls.predictions.") for name in names),
        "pooler": any(name.endswith("pooler.dense.weight") for name in names),
        "nsp_head": any(name.startswith("cls.seq_relationship.") for name in names),
    }
    return from_json(EncoderConfig, as_ours(got, where) | heads, where)  # which looks at the type of every value


def as_ours(got: dict[str, Any], where: str) -> dict[str, Any]:
    """What their values of the keys in USED are under our names, but for the heads."""
    if got["type_vocab_size"] == 0:
        raise InputError("type_vocab_size is 0: their embeddings have at least one type", where=where)
    block = {
        "attention": {"n_heads": got["num_attention_heads"], "dropout": got["attention_probs_dropout_prob"]},
        "d_ff": got["intermediate_size"],
        "norm_eps": got["layer_norm_eps"],
        "activation": activation(got, "hidden_act", where=where),
        "dropout": got["hidden_dropout_prob"],
    }
    embed = {
        "vocab_size": got["vocab_size"],
        "scaled": False,
        "position_embeddings": "learned",
        "context_length": got["max_position_embeddings"],
        "types": got["type_vocab_size"],
        "norm_eps": got["layer_norm_eps"],
        "dropout": got["hidden_dropout_prob"],
    }
    return {
        "d_model": got["hidden_size"],
        "embed": embed,
        "stack": {"n_layers": got["num_hidden_layers"], "block": block},
        "tied": got["tie_word_embeddings"],
    }


def config_to_hf(config: EncoderConfig, *, pad: int) -> dict[str, Any]:
    """What `config_from_hf` makes this configuration from. Raises InputError for what BERT has no words for."""
    if config.mlm_head:
        kind = "ForPreTraining" if config.nsp_head else "ForMaskedLM"
    else:
        kind = "ForNextSentencePrediction" if config.nsp_head else "Model"
    theirs = FIXED | as_theirs(config) | {"architectures": [f"Bert{kind}"], "pad_token_id": pad}
    nothing_lost(config, config_from_hf(theirs, [rule.theirs for rule in rules(config)]), "BERT")
    return theirs


def as_theirs(config: EncoderConfig) -> dict[str, Any]:
    """Our values under the keys in USED."""
    block, embed = config.stack.block, config.embed
    return {
        "attention_probs_dropout_prob": block.attention.dropout,
        "hidden_act": activation_to_hf(block.activation),
        "hidden_dropout_prob": block.dropout,
        "hidden_size": config.d_model,
        "intermediate_size": block.d_ff,
        "layer_norm_eps": block.norm_eps,
        "max_position_embeddings": embed.context_length,
        "num_attention_heads": block.attention.n_heads,
        "num_hidden_layers": config.stack.n_layers,
        "tie_word_embeddings": config.tied,
        "type_vocab_size": embed.types,
        "vocab_size": embed.vocab_size,
    }
