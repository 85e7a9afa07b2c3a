"""Classifiers of texts on GPT-2 (Radford et al. 2018, section 3.2, for the head), as the Hub holds them: a map without
a bias of what the model makes of the last token."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor
from torch.linalg import pinv

from heedful.errors import InputError
from heedful.exchange.hf import gpt2, keys
from heedful.exchange.hf.family import Family
from heedful.exchange.hf.rules import Recast, Rule, always, within
from heedful.models.classifier import ClassifierConfig
from heedful.models.lm import LMConfig

EXACT = 1e-5  # of the largest bias


def rules(config: ClassifierConfig) -> tuple[Rule, ...]:
    """The table, which is one for all of them."""
    return (*within("lm", gpt2.RULES), Rule("score.weight", "out.weight"))


def config_from_hf(
    theirs: dict[str, Any], names: Collection[str] = (), *, where: str = "config.json"
) -> ClassifierConfig:
    answers = keys.n_labels("id2label", theirs.get("id2label"), where)
    return ClassifierConfig(lm=gpt2.config_from_hf(theirs, where=where), answers=answers, bias=False, dropout=0.0)


def config_to_hf(
    config: ClassifierConfig, *, pad: int, start: int, end: int, labels: Sequence[str], problem: str
) -> dict[str, Any]:
    theirs = gpt2.config_to_hf(_body(config), start=start, end=end) | keys.labels_to_hf(labels)
    kind = {"architectures": ["GPT2ForSequenceClassification"], "problem_type": problem}
    theirs |= kind | {"pad_token_id": pad}
    return keys.nothing_lost(theirs, config, config_from_hf(theirs), "GPT-2")


def unbiased(config: ClassifierConfig) -> Recast[ClassifierConfig]:
    """An equal model whose map has no bias: what it would add is in the bias of the last norm."""
    if not config.bias:
        return Recast(replace(config, dropout=0.0), dict)

    def tensors(ours: Mapping[str, Tensor]) -> dict[str, Tensor]:
        weight, bias = ours["out.weight"].double(), ours["out.bias"].double()
        shift = pinv(weight) @ bias
        if float((weight @ shift - bias).abs().max()) > EXACT * float(bias.abs().max()):
            what = "GPT-2 cannot hold the biases of so many answers, whose weights follow from each other"
            raise InputError(what, where="model.out.bias")
        norm = ours["lm.stack.norm.bias"]
        found = {name: tensor for name, tensor in ours.items() if name != "out.bias"}
        return found | {"lm.stack.norm.bias": (norm.double() + shift).to(norm.dtype)}

    return Recast(replace(config, bias=False, dropout=0.0), tensors)


def _body(config: ClassifierConfig) -> LMConfig:
    """Raises InputError for a classifier on an encoder, or on a body whose output matrix is another than its
    embeddings."""
    if config.lm is None or not config.lm.tied:
        raise InputError("GPT-2 cannot hold a classifier on an encoder, or on a language model that is not tied")
    return config.lm


FAMILY = Family(
    "GPT-2",
    ClassifierConfig,
    always("AutoModelForSequenceClassification"),
    config_from_hf,
    config_to_hf,
    rules,
    suits=lambda config: config.lm is not None,
    head="score",
    kind="ForSequenceClassification",
    recast=unbiased,
    tokens=gpt2.FAMILY.tokens,
)
