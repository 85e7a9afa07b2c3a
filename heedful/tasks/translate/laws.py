"""The laws of a translator."""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from heedful.data.batches import pad
from heedful.decode.search import beam, greedy
from heedful.models import RNN, DecoderOnlyTranslator
from heedful.run.task import Law
from heedful.tasks.shared.probes import CausalProbe, a_few, device_of
from heedful.tasks.shared.served import on_device
from heedful.tasks.translate.use import Translator


class TranslationProbe(CausalProbe[Any]):
    """A probe on greedy translations. `options` are those of the two searches that must agree."""

    def __init__(self, model: Any, source: Tensor, segments: Tensor, *, filler: int, options: dict[str, Any]) -> None:
        self.source, self.segments = on_device((source, segments), device_of(model))
        self.options = options
        found = greedy(model, self.source, self.segments, **options)
        self.targets = [[options["bos"], *one.tokens] for one in found]
        target, said = pad(self.targets, after=(), filler=filler)
        match model:
            case DecoderOnlyTranslator():
                embedding = model.lm.embed.tokens
            case RNN():
                embedding = model.target
            case _:
                embedding = model.target.tokens
        inputs = (source, target, segments, said)
        super().__init__(model, inputs, target, said > 0, embedding)

    @torch.no_grad()
    def cached(self) -> Tensor:
        return torch.stack(self.stepped(self.model.start(self.source, self.segments), self.target), 1)

    def searched(self) -> tuple[str, float]:
        one = greedy(self.model, self.source, self.segments, **self.options)
        other = beam(self.model, self.source, self.segments, beam=1, **self.options)
        unequal = sum(a.tokens != b[0].tokens for a, b in zip(one, other, strict=True))
        return "beam 1 = greedy (different tokens)", float(unequal)

    def alone(self, row: int) -> Tensor:
        return self.read(self.source[row, self.segments[row] > 0][None], torch.tensor([self.targets[row]]))


def translator_laws(translator: Translator, texts: Sequence[str]) -> Iterable[Law]:
    source, segments = translator.padded(a_few(translator.encode(list(texts))[0], translator.source.size))
    own = translator.target
    options = {"bos": own.bos, "eos": own.eos, "longest": 30, "forbidden": translator.forbidden}
    return TranslationProbe(translator.model, source, segments, filler=own.pad, options=options)
