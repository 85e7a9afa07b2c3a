"""Trains a classifier of sounds, from scratch or from another's weights."""

from collections.abc import Collection, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import torch.nn.functional as F

from heedful.core.config import from_json, to_json
from heedful.data.images.labelled import in_order
from heedful.data.sound.features import Hearing, varied
from heedful.data.sound.files import RATE, Sounds
from heedful.data.sound.utterances import Utterance, Utterances, read_labelled_sounds
from heedful.errors import InputError, counted
from heedful.metrics.labels import by_luck, entropy, most_frequent
from heedful.models.speech import SpeechClassifier, SpeechClassifierConfig
from heedful.models.speech_presets import SOUND_CLASSIFIERS, classifier_config
from heedful.run.card import CardText, Scores, fingerprint, score_table
from heedful.run.job import Job, Measurement
from heedful.run.recipe import row_of
from heedful.run.start import begun_with, copy_weights, started_from
from heedful.store import files
from heedful.tasks.classify_images.use import targets_of
from heedful.tasks.classify_sounds.recipe import ClassifySoundsRecipe
from heedful.tasks.classify_sounds.use import SoundClassifier, SoundLabelSpec
from heedful.tasks.shared.pictures import PictureBatch, picture_batches
from heedful.tasks.transcribe.train import LONGEST_WINDOW
from heedful.training.loss import Loss

SHOWN = 8  # sounds in a sample


class SoundStart(NamedTuple):
    """The model that the training starts from: its configuration, how it hears, and the labels that it has."""

    model: dict[str, Any]
    hearing: dict[str, Any]
    labels: list[str]

    def facts(self) -> dict[str, object]:
        return {"start": [*self]}


class ClassifySoundsTask:
    """Batches of labelled sounds, which are changed anew in every epoch."""

    def __init__(self, job: "ClassifySoundsJob") -> None:
        self.job, self.plan = job, job.recipe
        self.targets = targets_of([row.text for row in job.corpus.train], job.answers.labels)

    def batches(self, epoch: int, model: object) -> list[PictureBatch]:
        plan = self.plan
        return picture_batches(len(self.targets), plan.sound.batch, seed=plan.train.seed, epoch=epoch)

    def loss(self, model: SpeechClassifier, batch: PictureBatch) -> Loss:
        weight, hearing = model.head.weight, self.job.answers.hearing
        keys = [(self.plan.train.seed, batch.epoch, i) for i in batch.pictures if self.plan.sound.augment]
        sounds = [self.job.sounds[i][: hearing.samples] for i in batch.pictures]
        features, lengths = varied(hearing, sounds, keys)
        logits = model(features.to(weight), None if lengths is None else lengths.to(weight.device)).float()
        target, smoothing = self.targets[batch.pictures].to(logits.device), self.plan.train.smoothing or 0.0
        return Loss(F.cross_entropy(logits, target, reduction="sum", label_smoothing=smoothing), len(target))


class ClassifySoundsJob(Job[ClassifySoundsRecipe, Utterances, SpeechClassifier]):
    unit: ClassVar = "sounds"
    kinds: ClassVar = "a .csv, .tsv or .jsonl file with a file of sound and a label on each line, or a folder of such"
    served: ClassVar = SoundClassifier
    score_names = ("accuracy",)
    answers: SoundLabelSpec
    start: SoundStart | None

    def __init__(
        self, recipe: ClassifySoundsRecipe, corpus: Utterances | None = None, begun: Path | None = None
    ) -> None:
        super().__init__(recipe, corpus, begun)
        train = self.corpus.train
        labels = in_order(row.text for row in train)
        if len(labels) < 2:
            raise InputError(f"one label alone: {labels[0]!r}", where=self.corpus.name, fix="give two or more")
        self.sounds = Sounds([row.file for row in train])
        self.lengths = [len(sound) for sound in self.sounds]  # reads each, so that a damaged one is reported now
        for part in (self.corpus.valid, *self.corpus.tests.values()):
            targets_of([row.text for row in part], labels)
        if self.start is None:
            row = row_of(SOUND_CLASSIFIERS, recipe)
            seconds = recipe.sound.seconds or min(LONGEST_WINDOW, -(-max(self.lengths) // RATE))
            hearing = Hearing(seconds=seconds, mels=row.mels)
            self.config = classifier_config(row, n_classes=len(labels), positions=hearing.positions)
        else:
            hearing = from_json(Hearing, self.start.hearing)
            config = self.start.model | {"n_classes": len(labels)}
            self.config = from_json(SpeechClassifierConfig, config, where=f"{recipe.start_from}/config.json")
        self.answers = SoundLabelSpec(labels=labels, hearing=hearing)
        self.fingerprint = fingerprint([*(row.text for row in train), *map(str, self.lengths)])
        if long := sum(length > hearing.samples for length in self.lengths):
            self.notes.append(f"of {counted(long, 'sound')} the first {hearing.seconds} s are learnt from")

    def read(self) -> Utterances:
        return read_labelled_sounds(self.recipe.data.path)

    def read_start(self) -> SoundStart | None:
        """Of a classifier, or of the encoder of a model that turns speech into text."""
        recipe = self.recipe
        if not recipe.start_from:
            return None
        if recipe.sound.seconds is not None:
            raise InputError("sound.seconds is that of the model that it starts from", fix="leave it out")
        if self.begun is not None:
            return SoundStart(*files.read_json(self.begun / "data.json")["start"])
        folder, about = started_from(recipe, "classify-sounds", "transcribe")
        model = begun_with(recipe, folder)["model"]
        kept = {key: model[key] for key in ("d_model", "encoder", "d_projected") if key in model}
        return SoundStart({"d_projected": model["d_model"]} | kept, about["hearing"], about.get("labels", []))

    def describe(self) -> str:
        sounds, labels = counted(len(self.lengths), "sound"), counted(len(self.answers.labels), "label")
        return f"{sounds} of {labels}, {sum(self.lengths) / RATE / 60:.1f} minutes"

    def own_facts(self) -> dict[str, object]:
        return {"labels": list(self.answers.labels), "hearing": to_json(self.answers.hearing)}

    def new_heads(self) -> Collection[str]:
        return () if self.start is not None and self.start.labels == [*self.answers.labels] else ("projection", "head")

    def begin(self, model: SpeechClassifier) -> None:
        if self.start is not None:
            new = tuple(f"{name}." for name in self.new_heads())
            copy_weights(model, self.recipe.start_from, without=(*new, "decoder.", "target."), new=new)

    @cached_property
    def valid_fingerprint(self) -> str:
        """Of labels and lengths: files may be elsewhere."""
        rows = self.corpus.valid
        sounds = Sounds([row.file for row in rows])
        return fingerprint(f"{row.text}\0{len(sound)}" for row, sound in zip(rows, sounds, strict=True))

    def task(self, model: SpeechClassifier) -> ClassifySoundsTask:
        return ClassifySoundsTask(self)

    def chance(self) -> float:
        return entropy([row.text for row in self.corpus.train])

    def floor(self) -> float:
        return by_luck(len(self.valid), most_frequent(row.text for row in self.valid))

    def measure(self, model: SpeechClassifier) -> Measurement:
        classifier, rows = SoundClassifier(model, self.spec()), list[Utterance](self.valid)
        scores = classifier.measure(rows)
        return Measurement(scores.pop("loss"), scores, scores["accuracy"], classifier.sample(rows, SHOWN))

    def tells(self, folder: Path, scores: Scores, best: Mapping[str, Any]) -> CardText:
        return CardText(
            what="Says what is heard in a sound.",
            learnt_on=f"{self.describe()}, from `{self.corpus.name}`",
            table=score_table("sounds", scores),
            how=f"Sound is heard in {self.answers.hearing.in_words}. Labels: {', '.join(self.answers.labels)}.",
            kept=f"step {best['step']:,}, the best on the validation sounds (accuracy {best['accuracy']:.4f})",
            use=[f"heed classify {folder} SOUND.wav", f"heed eval {folder} --data MORE.csv"],
            limits="It has heard only the sounds above: on others expect worse than the table says. Its probabilities "
            "are not calibrated.",
        )
