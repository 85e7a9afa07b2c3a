"""Classifiers of texts and of words on ModernBERT (Warner et al. 2024), as the Hub holds them: one hidden state, or the
mean of all, goes through what comes before an output over the vocabulary, and then into the `classifier`."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from heedful.errors import InputError
from heedful.exchange.hf import bert, keys, modernbert
from heedful.exchange.hf.family import Family
from heedful.exchange.hf.rules import Rule, always, within
from heedful.models.classifier import ClassifierConfig
from heedful.models.encoder import EncoderConfig
from heedful.models.token_classifier import TokenClassifierConfig

HEAD, OF_TEXTS, OF_WORDS = "classifier", "ForSequenceClassification", "ForTokenClassification"
POOLING = {"cls": False, "mean": True}


def _below(
    theirs: Mapping[str, Any], names: Collection[str], kind: str, where: str
) -> tuple[EncoderConfig, int, float]:
    """The encoder, how many answers there are, and the dropout before they are told. Raises InputError for a head that
    is for something else."""
    keys.refuse_other_head(theirs, HEAD, kind, where)
    own = {name for name in names if name.startswith("model.")}
    encoder = modernbert.config_from_hf({**theirs}, own, where=where)
    function = keys.activation("classifier_activation", theirs.get("classifier_activation", "gelu"), where)
    if function != encoder.stack.block.activation:
        raise InputError(f"classifier_activation is {function!r}, unlike the layers'", where=where)
    dropout = theirs.get("classifier_dropout", 0.0)
    if isinstance(dropout, bool) or not isinstance(dropout, float | int):
        raise InputError(f"classifier_dropout is {dropout!r}, which is no number", where=where)
    answers = keys.n_labels("id2label", theirs.get("id2label"), where)
    return replace(encoder, pooler=True, pooler_kind="transform"), answers, float(dropout)


def _above(encoder: EncoderConfig, kind: str, ids: Mapping[str, int], dropout: float) -> dict[str, Any]:
    """Their config.json but for what is said of the answers. Raises InputError for an encoder with another head."""
    if not encoder.pooler or encoder.pooler_kind != "transform":
        raise InputError(f"ModernBERT cannot hold model.encoder.pooler_kind = {encoder.pooler_kind!r}")
    bare = replace(encoder, pooler=False, pooler_kind="tanh")
    told = {"architectures": [f"ModernBert{kind}"], "classifier_dropout": dropout}
    return modernbert.config_to_hf(bare, pad=ids["pad"], start=ids["start"], end=ids["end"]) | told


def _rules(encoder: EncoderConfig | None) -> Iterator[Rule]:
    assert encoder is not None
    yield from within("encoder", modernbert.rules(encoder))
    yield from bert.modules({"head.dense": "encoder.pooler.dense", "head.norm": "encoder.pooler.norm", HEAD: "out"})


def texts_from_hf(
    theirs: dict[str, Any], names: Collection[str] = (), *, where: str = "config.json"
) -> ClassifierConfig:
    encoder, answers, dropout = _below(theirs, names, OF_TEXTS, where)
    pooling = theirs.get("classifier_pooling", "cls")
    if pooling not in POOLING:
        raise InputError(f"classifier_pooling is {pooling!r}: only cls and mean can be read", where=where)
    return ClassifierConfig(encoder=encoder, answers=answers, dropout=dropout, mean=POOLING[pooling])


def texts_to_hf(config: ClassifierConfig, *, labels: Sequence[str], problem: str, **ids: int) -> dict[str, Any]:
    assert config.encoder is not None
    theirs = _above(config.encoder, OF_TEXTS, ids, config.dropout) | keys.labels_to_hf(labels)
    theirs |= {"classifier_pooling": "mean" if config.mean else "cls", "problem_type": problem}
    return keys.nothing_lost(theirs, config, texts_from_hf(theirs, _names(config)), "ModernBERT")


def words_from_hf(
    theirs: dict[str, Any], names: Collection[str] = (), *, where: str = "config.json"
) -> TokenClassifierConfig:
    encoder, answers, dropout = _below(theirs, names, OF_WORDS, where)
    return TokenClassifierConfig(encoder=encoder, answers=answers, dropout=dropout)


def words_to_hf(config: TokenClassifierConfig, *, labels: Sequence[str] = (), **ids: int) -> dict[str, Any]:
    theirs = _above(config.encoder, OF_WORDS, ids, config.dropout) | keys.labels_to_hf(labels)
    return keys.nothing_lost(theirs, config, words_from_hf(theirs, _names(config)), "ModernBERT")


def _names(config: ClassifierConfig | TokenClassifierConfig) -> list[str]:
    return [rule.theirs for rule in _rules(config.encoder)]


def _made(config: ClassifierConfig | TokenClassifierConfig) -> dict[str, Any]:
    assert config.encoder is not None
    return modernbert.made(config.encoder)


TEXTS = Family(
    "ModernBERT",
    ClassifierConfig,
    always(f"AutoModel{OF_TEXTS}"),
    texts_from_hf,
    texts_to_hf,
    lambda config: tuple(_rules(config.encoder)),
    suits=lambda config: config.encoder is not None,
    head=HEAD,
    kind=OF_TEXTS,
    whole=modernbert.whole,
    made=_made,
    tokens=modernbert.FAMILY.tokens,
)
WORDS = Family(
    "ModernBERT",
    TokenClassifierConfig,
    always(f"AutoModel{OF_WORDS}"),
    words_from_hf,
    words_to_hf,
    lambda config: tuple(_rules(config.encoder)),
    head=HEAD,
    kind=OF_WORDS,
    whole=modernbert.whole,
    made=_made,
    tokens=modernbert.FAMILY.tokens,
)
