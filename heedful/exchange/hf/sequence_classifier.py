"""Classifiers of texts on BERT (Devlin et al. 2019, section 4.1), RoBERTa (Liu et al. 2019), XLM-R (Conneau et al.
2020) and DistilBERT (Sanh et al. 2019), as the Hub holds them.

BERT's head is one `classifier` on what its pooler sums up. The others have no pooler, and two maps for a head, of which
the first is our pooler: `dense` and `out_proj` in their `classifier`, or DistilBERT's `pre_classifier`, which is
followed by a ReLU, and `classifier`.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

import torch

from heedful.errors import InputError
from heedful.exchange.hf import bert, distilbert, keys, roberta, xlm_roberta
from heedful.exchange.hf.family import Family
from heedful.exchange.hf.rules import Recast, Rule, always, within
from heedful.models.classifier import ClassifierConfig
from heedful.models.encoder import EncoderConfig

Body = Literal["bert", "roberta", "xlm-roberta", "distilbert"]
FAMILIES: dict[Body, Family[EncoderConfig]] = {
    "roberta": roberta.FAMILY,
    "xlm-roberta": xlm_roberta.FAMILY,
    "bert": bert.FAMILY,
    "distilbert": distilbert.FAMILY,
}
NAMES = {"bert": "Bert", "roberta": "Roberta", "xlm-roberta": "XLMRoberta", "distilbert": "DistilBert"}
TRUNKS: dict[Body, tuple[str, int]] = {  # what begins their names, and how many rows of positions nothing looks up
    "bert": ("bert.", 0),
    "roberta": ("roberta.", roberta.UNUSED),
    "xlm-roberta": ("roberta.", roberta.UNUSED),
    "distilbert": ("distilbert.", 0),
}
_TWO_MAPS = {"classifier.dense": "encoder.pooler", "classifier.out_proj": "out"}
HEADS = {
    "bert": {"classifier": "out"},
    "roberta": _TWO_MAPS,
    "xlm-roberta": _TWO_MAPS,
    "distilbert": {"pre_classifier": "encoder.pooler", "classifier": "out"},
}
# Where DistilBERT's file says how much is dropped before a head, by the end of its class, and what it is where it does
# not; the others say `classifier_dropout`.
DROPOUTS: dict[str, tuple[str, float | None]] = {
    "ForSequenceClassification": ("seq_classif_dropout", 0.2),
    "ForTokenClassification": ("dropout", None),
    "ForQuestionAnswering": ("qa_dropout", 0.1),
}


def family(body: Body) -> Family[ClassifierConfig]:
    """Classifiers on encoders of this family."""
    own, kind = FAMILIES[body], "ForSequenceClassification"
    pooled: Literal["relu", "tanh"] = "relu" if body == "distilbert" else "tanh"
    head = "pre_classifier" if body == "distilbert" else "classifier"

    def config_from_hf(
        theirs: dict[str, Any], names: Collection[str] = (), *, where: str = "config.json"
    ) -> ClassifierConfig:
        encoder, answers, dropout = below_head(theirs, body, head, kind, where)
        encoder = replace(encoder, pooler=True, pooler_kind=pooled)
        return ClassifierConfig(encoder=encoder, answers=answers, dropout=dropout)

    def config_to_hf(
        config: ClassifierConfig, *, pad: int, start: int, end: int, labels: Sequence[str], problem: str
    ) -> dict[str, Any]:
        encoder = _encoder(config)
        if not encoder.pooler:
            raise InputError(f"{NAMES[body]} cannot hold model.encoder.pooler = False")
        below = replace(encoder, pooler=body != "distilbert", pooler_kind="tanh")
        theirs = own.config_to_hf(below, pad=pad, start=start, end=end)
        told = {"architectures": [f"{NAMES[body]}{kind}"], "problem_type": problem}
        theirs |= told | {dropout_key(body, kind): config.dropout} | keys.labels_to_hf(labels)
        return keys.nothing_lost(theirs, config, config_from_hf(theirs), NAMES[body])

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
        recast=typed if body == "bert" else lambda config: Recast(config, dict),
        tokens=own.tokens,
        alias=own.alias,
    )


def typed(config: ClassifierConfig) -> Recast[ClassifierConfig]:
    """An equal model with a type of tokens, which adds nothing, on an encoder that has none."""
    encoder = config.encoder
    if encoder is None or encoder.embed.types:
        return Recast(config, dict)
    recast = replace(config, encoder=replace(encoder, embed=replace(encoder.embed, types=1)))
    return Recast(recast, lambda ours: {**ours, "encoder.embed.types.weight": torch.zeros(1, encoder.d_model)})


def trunk(encoder: EncoderConfig, body: Body) -> Iterator[Rule]:
    """The rules of the encoder below a head."""
    prefix, unused = TRUNKS[body]
    if body == "distilbert":
        return within("encoder", distilbert.trunk(prefix, written=True))
    return within("encoder", bert.trunk(encoder, prefix, written=True, unused=unused))


def dropout_key(body: Body, kind: str) -> str:
    """Where their file says how much is dropped before a head of their class `kind`."""
    return DROPOUTS[kind][0] if body == "distilbert" else "classifier_dropout"


def below_head(
    theirs: dict[str, Any], body: Body, head: str, kind: str, where: str
) -> tuple[EncoderConfig, int, float]:
    """The encoder, how many answers there are, and the dropout before they are told. `kind` is how the class of a model
    with this head ends. Raises InputError for a key that is not known, a value that we cannot build, or a head that is
    for something else."""
    keys.refuse_other_head(theirs, head, kind, where)
    encoder = FAMILIES[body].config_from_hf(theirs, (), where=where)
    key = dropout_key(body, kind)
    given = theirs.get(key, DROPOUTS[kind][1] if body == "distilbert" else None)
    dropout = encoder.stack.block.dropout if given is None else given
    if not isinstance(dropout, float | int):
        raise InputError(f"{key} is {dropout!r}, which is no number", where=where)
    return encoder, keys.n_labels("id2label", theirs.get("id2label"), where), float(dropout)


def _encoder(config: ClassifierConfig) -> EncoderConfig:
    """Raises InputError for a classifier on a language model."""
    if config.encoder is None:
        raise InputError("BERT, RoBERTa, XLM-R and DistilBERT cannot hold a classifier on a language model")
    return config.encoder
