"""The teacher of a training: the frozen model of a run, whose answers a student learns beside those of the data."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from heedful.errors import InputError
from heedful.models.classifier import ClassifierConfig
from heedful.models.token_classifier import TokenClassifierConfig
from heedful.models.vit import ViTConfig
from heedful.run.folder import read_textless_run, task_name
from heedful.run.recipe import DistilledRecipe, DistilSection, Recipe
from heedful.run.tokenizers import read_tokenizers
from heedful.store import files
from heedful.store.model import MODEL
from heedful.training.distillation import Outputs, cosine_distance, divergence
from heedful.training.loss import Loss, Sum

if TYPE_CHECKING:
    from heedful.run.job import Job

SPEC = ("answer", "labels", "frame", "preparation")  # keys of task.json that must be the student's too
KL = "teacher_kl"  # in metrics.jsonl


class Teacher:
    """Raises MissingError, StorageError or InputError where `run` holds no model for this task."""

    def __init__(self, run: str, task: str, plan: DistilSection) -> None:
        self.run, self.plan = Path(run), plan
        name, self.about = task_name(self.run)
        if name != task:
            what = f"a model for {name!r} does not teach one for {task!r}"
            raise InputError(what, where=run, fix=f"name a run of heed train {task}")
        self.model = read_textless_run(self.run)[0].eval()
        tokenizers = read_tokenizers(self.run)
        self.tokenizer = None if tokenizers is None else tokenizers[0]

    @cached_property
    def hash(self) -> str:
        """The sha256 of its weights."""
        return files.size_and_sha256(self.run / MODEL)[1]

    def check(self, job: "Job[Any, Any, Any]") -> None:
        """Raises InputError where it answers in other tokens, classes or pictures than the student of this job."""
        theirs, own = self.model.config, job.config
        if self.tokenizer is not None and self.tokenizer.fingerprint != job.tokenizer_hash:
            self._refuse("the tokenizer of the student is another than that of its teacher")
        spec = json.loads(json.dumps(job.spec()))
        for key in SPEC:
            if spec.get(key) != self.about.get(key):
                self._refuse(f"its {key} is {self.about.get(key)!r}, and of the student {spec.get(key)!r}"[:300])
        if isinstance(own, ClassifierConfig) and type(own.body) is not type(theirs.body):
            self._refuse("of language model and encoder, the teacher is built on one and the student on the other")
        if not isinstance(own, ViTConfig):
            tokens, most = theirs.embed.vocab_size, theirs.embed.context_length
            if own.embed.vocab_size != tokens:
                self._refuse(f"it knows {tokens:,} tokens, and the student {own.embed.vocab_size:,}")
            if own.embed.context_length > most:
                what = f"its context_length is {most}, and that of the student {own.embed.context_length}"
                self._refuse(what, fix=f"--set model.context_length={most}")
        if self.plan.hidden_weight and _width(own) != _width(theirs):
            what = f"the teacher has {_width(theirs)} features and the student {_width(own)}, which have no angle"
            raise InputError(what, where="distil.hidden_weight", fix="leave it out, or give model.d_model")

    def _refuse(self, what: str, fix: str = "train the student on its teacher's data, from a preset") -> None:
        raise InputError(what, where=str(self.run), fix=fix)

    def mixed(self, loss: Loss, student: Outputs, outputs: Callable[[Any], Outputs]) -> Loss:
        """The loss on the data, mixed with the distance from what `outputs` gives for the teacher's model. What is
        reported as the loss stays that of the data."""
        plan = self.plan
        with torch.no_grad():
            taught = outputs(self.model)
        apart = divergence(student, taught, plan.temperature)
        total = (1 - plan.teacher_weight) * loss.total + plan.teacher_weight * apart
        if plan.hidden_weight:
            total = total + plan.hidden_weight * cosine_distance(student.hidden, taught.hidden)
        nats = apart.detach() / plan.temperature**2
        extra = total.detach() - (loss.total.detach() - loss.extra)
        return replace(loss, total=total, extra=extra, beside={**loss.beside, KL: Sum(float(nats), loss.count)})


def teacher_of(recipe: Recipe) -> Teacher | None:
    """The teacher that the recipe names, if any."""
    if not isinstance(recipe, DistilledRecipe) or not recipe.distil.teacher:
        return None
    return Teacher(recipe.distil.teacher, recipe.task, recipe.distil)


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
