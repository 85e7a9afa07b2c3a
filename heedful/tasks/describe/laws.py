"""The laws of a model that writes texts about pictures, on noise."""

from collections.abc import Iterable, Sequence

import torch

from heedful.run.task import Law
from heedful.tasks.describe.use import Describer
from heedful.tasks.shared.probes import WritingProbe

PICTURES = 3


def describer_laws(describer: Describer, texts: Sequence[str]) -> Iterable[Law]:
    prepared = describer.spec.preparation
    noise = torch.randn(PICTURES, prepared.channels, *prepared.size, generator=torch.Generator().manual_seed(0))
    return WritingProbe(describer.model, describer.tokenizer, noise, longest=describer.longest)
