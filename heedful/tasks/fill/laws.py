"""The laws of an encoder that fills masks."""

from collections.abc import Sequence

import torch
from torch import Tensor

from heedful.data.batches import pad
from heedful.models import Encoder
from heedful.tasks.fill.use import Filler
from heedful.tasks.shared.probes import Probe, a_few


class FillProbe(Probe[Encoder]):
    def __init__(self, filler: Filler, texts: Sequence[str]) -> None:
        own = filler.tokenizer
        sentences = a_few(own.encode_whole(list(texts)), own.size)
        self.rows = [[own.bos, *ids[: filler.context - 9], own.eos] for ids in sentences]
        tokens, segments = pad(self.rows, after=(), filler=own.pad)
        super().__init__(filler.model, (tokens, segments), segments > 0)

    def alone(self, row: int) -> Tensor:
        return self.read(torch.tensor([self.rows[row]]))
