"""Classifiers of texts on BERT (Devlin et al. 2019, section 4.1), RoBERTa (Liu et al. 2019) and XLM-R (Conneau et al.
2020), as the Hub holds them.

BERT's head is one `classifier` on what its pooler sums up. The others have no pooler, and two maps in their
`classifier`: `dense`, which is our pooler, and `out_proj`.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

from heedful.errors import InputError
from heedful.exchange.hf import bert, keys, roberta, xlm_roberta
from heedful.exchange.hf.family import Family
from heedful.exchange.hf.rules import Rule, always
from heedful.models.classifier import ClassifierConfig
from heedful.models.encoder import EncoderConfig

Body = Literal["bert", "roberta", "xlm-roberta"]
FAMILIES: dict[Body, Family[EncoderConfig]] = {
    "roberta": roberta.FAMILY,
    "xlm-roberta": xlm_roberta.FAMILY,
    "bert": bert.FAMILY,
}
NAMES = {"bert": "Bert", "roberta": "Roberta", "xlm-roberta": "XLMRoberta"}
TRUNKS: dict[Body, tuple[str, int]] = {  # what begins their names, and how many rows of positions nothing looks up
    "bert": ("bert.", 0),
    "roberta": ("roberta.", roberta.UNUSED),
    "xlm-roberta": ("roberta.", roberta.UNUSED),
}
_TWO_MAPS = {"classifier.dense": "encoder.pooler", "classifier.out_proj": "out"}
HEADS = {"bert": {"classifier": "out"}, "roberta": _TWO_MAPS, "xlm-roberta": _TWO_MAPS}


def family(body: Body) -> Family[ClassifierConfig]:
    """Classifiers on encoders of this family."""
    own = FAMILIES[body]
    head, kind = "classifier", "ForSequenceClassification"

    def config_from_hf(
        theirs: dict[str, Any], names: Collection[str] = (), *, where: str = "config.json"
    ) -> ClassifierConfig:
        encoder, answers, dropout = below_head(theirs, body, head, kind, where)
        return ClassifierConfig(encoder=replace(encoder, pooler=True), answers=answers, dropout=dropout)

    def config_to_hf(
        config: ClassifierConfig, *, pad: int, start: int, end: int, labels: Sequence[str], problem: str
    ) -> dict[str, Any]:
        encoder = _encoder(config)
        if not encoder.pooler:
            raise InputError(f"{NAMES[body]} cannot hold model.encoder.pooler = False")
        theirs = own.config_to_hf(encoder, pad=pad, start=start, end=end)
        told = {"architectures": [f"{NAMES[body]}{kind}"], "problem_type": problem}
        return theirs | told | {"classifier_dropout": config.dropout} | keys.labels_to_hf(labels)

    def rules(config: ClassifierConfig) -> tuple[Rule, ...]:
        return (*trunk(replace(_encoder(config), pooler=body == "bert"), body), *bert.modules(HEADS[body]))

    return Family(
        own.name,
        ClassifierConfig,
        always(f"AutoModel{kind}"),
        config_from_hf,
        config_to_hf,
        rules,
        suits=lambda config: config.encoder is not None,
        head=head,
        kind=kind,
        tokens=own.tokens,
        alias=own.alias,
    )


def trunk(encoder: EncoderConfig, body: Body) -> Iterator[Rule]:
    """The rules of the encoder below a head."""
    prefix, unused = TRUNKS[body]
    for rule in bert.trunk(encoder, prefix, written=True, unused=unused):
        yield rule if rule.ours is None else replace(rule, ours=f"encoder.{rule.ours}")


def below_head(
    theirs: dict[str, Any], body: Body, head: str, kind: str, where: str
) -> tuple[EncoderConfig, int, float]:
    """The encoder, how many answers there are, and the dropout before they are told. `kind` is how the class of a model
    with this head ends. Raises InputError for a key that is not known, a value that we cannot build, or a head that is
    for something else."""
    for name in theirs.get("architectures") or ():
        if not str(name).endswith(kind):
            raise InputError(f"architectures is {name!r}: its `{head}` is for something else", where=where)
    encoder = FAMILIES[body].config_from_hf(theirs, (), where=where)
    given = theirs.get("classifier_dropout")
    dropout = encoder.stack.block.dropout if given is None else given
    if not isinstance(dropout, float | int):
        raise InputError(f"classifier_dropout is {dropout!r}, which is no number", where=where)
    return encoder, keys.n_labels("id2label", theirs.get("id2label"), where), float(dropout)


def _encoder(config: ClassifierConfig) -> EncoderConfig:
    """Raises InputError for a classifier on a language model."""
    if config.encoder is None:
        raise InputError("BERT, RoBERTa and XLM-R cannot hold a classifier on a language model")
    return config.encoder
