"""The laws of a model that turns speech into text, on windows of noise."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from heedful.data.sound.features import Hearing
from heedful.models import CTC, SpeechToText
from heedful.run.task import Law, Served
from heedful.tasks.shared.probes import PictureProbe, Probe, WritingProbe, device_of
from heedful.tasks.transcribe.use import Transcriber

WINDOWS = 3


@runtime_checkable
class Hears(Served, Protocol):
    """Hears sound alone, and answers for each position, or for the whole."""

    @property
    def spec(self) -> Any: ...


class SoundProbe(PictureProbe):
    """A probe on windows of noise: windows are filled up, sounds of samples padded."""

    def __init__(self, served: Hears, sounds: Sequence[Tensor]) -> None:
        model, hearing = served.model, served.spec.hearing
        sound, self.lengths = hearing(sounds), hearing.lengths(sounds)
        with torch.no_grad():
            logits = model(sound.to(device_of(model))).cpu()
        real = torch.ones(logits.shape[:2], dtype=torch.bool)
        if isinstance(model, CTC):
            real = torch.arange(logits.shape[1]) < model.encoder.ends(logits, self.lengths)[:, None]
        Probe.__init__(self, model, (sound,) if self.lengths is None else (sound, self.lengths), real)

    def __iter__(self) -> Iterator[Law]:
        return super().__iter__() if self.lengths is None else Probe.__iter__(self)

    @torch.no_grad()
    def padded(self) -> Tensor:
        if self.lengths is None:
            return self.full
        sound, *lengths = self.inputs
        return self.read(torch.nn.functional.pad(sound, (0, 4000), value=1.0), *lengths)[:, : self.full.shape[1]]

    def alone(self, row: int) -> Tensor:
        length = None if self.lengths is None else int(self.lengths[row])
        return self.read(self.inputs[0][row][None, :, :length])


def sound_laws(served: Hears, texts: Sequence[str]) -> Iterable[Law]:
    return SoundProbe(served, _noise(served.spec.hearing))


def transcriber_laws(transcriber: Transcriber, texts: Sequence[str]) -> Iterable[Law]:
    if not isinstance(transcriber.model, SpeechToText):
        return sound_laws(transcriber, texts)
    sound = transcriber.spec.hearing(_noise(transcriber.spec.hearing))
    return WritingProbe(transcriber.model, transcriber.tokenizer, sound, longest=transcriber.longest)


def _noise(hearing: Hearing) -> list[Tensor]:
    noise = torch.randn(WINDOWS, hearing.samples, generator=torch.Generator().manual_seed(0)) / 10
    return [row[: hearing.samples // (n + 1)] for n, row in enumerate(noise)]
