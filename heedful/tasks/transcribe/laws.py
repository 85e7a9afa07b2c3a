"""The laws of a model that turns speech into text, on windows of noise."""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from heedful.data.batches import pad
from heedful.decode.search import beam, greedy
from heedful.models import SpeechToText
from heedful.run.task import Law
from heedful.tasks.shared.probes import CausalProbe, PictureProbe, Probe, device_of
from heedful.tasks.transcribe.use import Heard, Transcriber

WINDOWS, TOKENS = 3, 12


class SpeechProbe(CausalProbe[SpeechToText]):
    """A probe on greedy texts of windows of noise."""

    def __init__(self, transcriber: Transcriber, sound: Tensor) -> None:
        model, tokenizer = transcriber.model, transcriber.tokenizer
        assert isinstance(model, SpeechToText)
        self.heard = Heard(model, sound.to(device_of(model)))
        self.source = torch.arange(len(sound), device=device_of(model))[:, None]
        longest = min(TOKENS, transcriber.longest)
        self.options: dict[str, Any] = {
            "bos": tokenizer.bos,
            "eos": tokenizer.eos,
            "longest": longest,
            "shortest": longest // 2,
        }
        texts = greedy(self.heard, self.source, **self.options)
        self.targets = [[tokenizer.bos, *text.tokens[: longest - 2 * n]] for n, text in enumerate(texts)]
        target, segments = pad(self.targets, after=(), filler=tokenizer.pad)
        super().__init__(model, (sound, target), target, segments > 0, model.target.tokens)

    def padded(self) -> Tensor:
        """Four more tokens behind each text."""
        sound, target = self.inputs
        more = target.new_full((len(target), min(4, self.model.config.target.context_length - target.shape[1])), 4)
        return self.read(sound, torch.cat([target, more], 1))[:, : target.shape[1]]

    @torch.no_grad()
    def cached(self) -> Tensor:
        return torch.stack(self.stepped(self.heard.start(self.source, None), self.target), 1)

    def searched(self) -> tuple[str, float]:
        greedily = greedy(self.heard, self.source, **self.options)
        by_beam = beam(self.heard, self.source, beam=1, **self.options)
        unequal = sum(a.tokens != b[0].tokens for a, b in zip(greedily, by_beam, strict=True))
        return "beam 1 = greedy (different tokens)", float(unequal)

    def alone(self, row: int) -> Tensor:
        return self.read(self.inputs[0][row][None], torch.tensor([self.targets[row]]))


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
    return (SpeechProbe if isinstance(transcriber.model, SpeechToText) else SoundProbe)(transcriber, sound)
