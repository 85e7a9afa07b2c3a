"""The teacher of a training: the frozen model of a run, whose answers a student learns beside those of the data."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from heedful.errors import InputError
from heedful.models.classifier import ClassifierConfig
from heedful.models.token_classifier import TokenClassifierConfig
from heedful.models.vit import ViTConfig
from heedful.run.recipe import DistilSection
from heedful.training.distillation import Outputs, cosine_distance, divergence
from heedful.training.loss import Loss, Sum

if TYPE_CHECKING:
    from heedful.data.tokenizer import Tokenizer

SPEC = ("answer", "labels", "frame", "preparation")  # keys of task.json that must be the student's too
KL = "teacher_kl"  # in metrics.jsonl


@dataclass(frozen=True)
class Teacher:
    """A run's model, in evaluation, and how much is learnt of it."""

    run: Path
    model: Any
    about: dict[str, Any]  # task.json
    tokenizer: "Tokenizer | None"
    hash: str  # the sha256 of its weights
    plan: DistilSection

    def check(self, config: Any, spec: Mapping[str, Any], tokenizer: str) -> None:
        """Raises InputError where it answers in other tokens, classes or pictures than a student of this configuration,
        task.json and hash of a tokenizer."""
        theirs = self.model.config
        if self.tokenizer is not None and self.tokenizer.fingerprint != tokenizer:
            self._refuse("the tokenizer of the student is another than that of its teacher")
        spec = json.loads(json.dumps(spec))
        for key in SPEC:
            if spec.get(key) != self.about.get(key):
                self._refuse(f"its {key} is {self.about.get(key)!r}, and of the student {spec.get(key)!r}"[:300])
        if isinstance(config, ClassifierConfig) and type(config.body) is not type(theirs.body):
            self._refuse("of language model and encoder, the teacher is built on one and the student on the other")
        if not isinstance(config, ViTConfig):
            tokens, most = theirs.embed.vocab_size, theirs.embed.context_length
            if config.embed.vocab_size != tokens:
                self._refuse(f"it knows {tokens:,} tokens, and the student {config.embed.vocab_size:,}")
            if config.embed.context_length > most:
                what = f"its context_length is {most}, and that of the student {config.embed.context_length}"
                self._refuse(what, fix=f"--set model.context_length={most}")
        if self.plan.hidden_weight and _width(config) != _width(theirs):
            what = f"the teacher has {_width(theirs)} features and the student {_width(config)}, which have no angle"
            raise InputError(what, where="distil.hidden_weight", fix="leave it out, or give model.d_model")

    def _refuse(self, what: str, fix: str = "train the student on its teacher's data, from a preset") -> None:
        raise InputError(what, where=str(self.run), fix=fix)

    def mixed(self, loss: Loss, student: Outputs, outputs: Callable[[Any], Outputs]) -> Loss:
        """The loss on the data, mixed with the distance from what `outputs` gives for the teacher's model. The
        divergence counts the temperature's square times, so that its gradients stay as large (Hinton et al. 2015,
        section 2). What is reported as the loss stays that of the data."""
        plan = self.plan
        with torch.no_grad():
            taught = outputs(self.model)
        apart = divergence(student.softened(plan.temperature), taught.softened(plan.temperature))
        total = (1 - plan.teacher_weight) * loss.total + plan.teacher_weight * plan.temperature**2 * apart
        if plan.hidden_weight:
            total = total + plan.hidden_weight * cosine_distance(student.hidden, taught.hidden)
        extra = total.detach() - (loss.total.detach() - loss.extra)
        beside = {**loss.beside, KL: Sum(float(apart.detach()), loss.count)}
        return replace(loss, total=total, extra=extra, beside=beside)


def _width(config: Any) -> int:
    """The features that a head reads."""
    match config:
        case ViTConfig():
            return config.d_out
        case ClassifierConfig():
            return config.body.d_model
        case TokenClassifierConfig():
            return config.encoder.d_model
    return int(config.d_model)
