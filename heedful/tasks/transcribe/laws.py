"""The laws of a model that turns speech into text, on windows of noise."""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from heedful.models import SpeechToText
from heedful.run.task import Law
from heedful.tasks.shared.probes import PictureProbe, Probe, WritingProbe
from heedful.tasks.transcribe.use import Transcriber

WINDOWS = 3


class SoundProbe(PictureProbe):
    """A probe of a model that hears alone."""

    def __init__(self, transcriber: Transcriber, sound: Tensor) -> None:
        model = transcriber.model
        real = torch.ones(len(sound), model.config.encoder.context_length, dtype=torch.bool)
        Probe.__init__(self, model, (sound,), real)


def transcriber_laws(transcriber: Transcriber, texts: Sequence[str]) -> Iterable[Law]:
    hearing, draw = transcriber.spec.hearing, torch.Generator().manual_seed(0)
    noise = torch.randn(WINDOWS, hearing.samples, generator=draw) / 10
    sound = hearing([row[: hearing.samples // (n + 1)] for n, row in enumerate(noise)])
    if isinstance(transcriber.model, SpeechToText):
        return WritingProbe(transcriber.model, transcriber.tokenizer, sound, longest=transcriber.longest)
    return SoundProbe(transcriber, sound)
