"""Classifies sounds with a trained model: files of any length, in windows.

B files, K labels.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.core.arguments import checks_arguments
from heedful.data.parts import scored_by_name
from heedful.data.sound.features import Hearing
from heedful.data.sound.files import read_sound
from heedful.data.sound.utterances import Utterance, read_test_sounds
from heedful.models.speech import SpeechClassifier
from heedful.run.folder import Saved
from heedful.run.task import Ask, Feed, NoOptions, Scored
from heedful.tasks.classify_images.use import classify_files, label_scores, ranked, targets_of
from heedful.tasks.shared.asked import refuse_nothing
from heedful.tasks.shared.one_or_many import one_or_many
from heedful.tasks.shared.options import DataOptions
from heedful.tasks.shared.served import TextlessModel, refuse_nan_answers, spec_of
from heedful.tasks.transcribe.use import READ

FILES = 32  # that are read together


@dataclass(frozen=True, kw_only=True)
class SoundLabelSpec:
    """The content of task.json besides the task's name: what a model's answers mean, and how it hears sound."""

    labels: tuple[str, ...]
    hearing: Hearing


class SoundClassifier(TextlessModel[SpeechClassifier]):
    """A trained classifier of sounds."""

    task: ClassVar = "classify-sounds"
    purpose: ClassVar = "classifying sounds"

    def __init__(self, model: SpeechClassifier, about: dict[str, Any]) -> None:
        super().__init__(model, about)
        self.spec = spec_of(SoundLabelSpec, about)

    @one_or_many()
    def classify(self, files: Sequence[str | Path]) -> list[list[tuple[str, float]]]:
        """The labels of each sound with their probabilities, the best first. Raises MissingError or InputError."""
        return ranked(self.spec.labels, self._logits(files))

    @checks_arguments
    def measure(self, part: Sequence[Utterance]) -> dict[str, float]:
        """As `label_scores`."""
        refuse_nothing(part)
        target = targets_of([row.text for row in part], self.spec.labels)
        return label_scores(self._logits([row.file for row in part]), target)

    def sample(self, part: Sequence[Utterance], shown: int) -> str:
        """The most likely label of each of the first sounds, after its own label, a line each."""
        best = [labels[0] for labels in self.classify([row.file for row in part[:shown]])]
        return "".join(f"{row.text}: {label} {p:.3f}\n" for row, (label, p) in zip(part, best, strict=False))

    @torch.inference_mode()
    def _logits(self, files: Sequence[str | Path]) -> Float[Tensor, "B K"]:
        """Logarithms of the probabilities: the means of a sound's windows."""
        hearing, device = self.spec.hearing, self.model.head.weight.device
        rows, together = [torch.empty(0, len(self.spec.labels))], max(1, READ // hearing.positions)
        for first in range(0, len(files), FILES):
            sounds = [*map(self._windows, files[first : first + FILES])]
            windows, counts = [window for sound in sounds for window in sound], [*map(len, sounds)]
            groups = [windows[i : i + together] for i in range(0, len(windows), together)]
            logits = torch.cat([self.model(*hearing.inputs(group, device)).float().cpu() for group in groups])
            refuse_nan_answers(logits)
            rows += [each.logsumexp(0)[None] - math.log(len(each)) for each in logits.log_softmax(1).split(counts)]
        return torch.cat(rows)

    def _windows(self, file: str | Path) -> Sequence[Float[Tensor, "_"]]:
        """The parts of a sound. Raises TooMuchError before the next is read."""
        windows = read_sound(file).split(self.spec.hearing.samples)
        self.spend(len(windows) * self.spec.hearing.positions, 0)
        return windows


ASK = Ask(classify_files, NoOptions, reads="sounds")


def score_sound_classifier(classifier: SoundClassifier, options: DataOptions) -> Iterator[Scored]:
    for name, part in scored_by_name(read_test_sounds(options.path), options.path).items():
        yield Scored(name, classifier.measure(part), examples=map(repr, part))


def sound_classifier_facts(saved: Saved) -> dict[str, Any]:
    spec = spec_of(SoundLabelSpec, dict(saved.about))
    answers = ", ".join(spec.labels) if len(spec.labels) <= 20 else f"{len(spec.labels):,} labels"
    return {"task": saved.about["task"], "answers": answers, "hears": spec.hearing.in_words}


def feed_sound(classifier: SoundClassifier, file: str, pair: str | None) -> Feed:
    """The first window of a file. Raises InputError or MissingError."""
    hearing = classifier.spec.hearing
    features = hearing([read_sound(file)[: hearing.samples]])
    return Feed([hearing.in_words], lambda: classifier.model(features)[0], classifier.spec.labels.__getitem__)
