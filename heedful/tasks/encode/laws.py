"""The laws of a bare encoder."""

from collections.abc import Sequence

from torch import Tensor

from heedful.models import Encoder
from heedful.tasks.shared.embed import TextEncoder
from heedful.tasks.shared.probes import FramedProbe, framed_rows
from heedful.tasks.shared.served import on_device


class VectorProbe(FramedProbe[Encoder]):
    """An encoder without a head: its hidden states."""

    def __init__(self, encoder: TextEncoder, texts: Sequence[str]) -> None:
        model = encoder.body
        assert isinstance(model, Encoder)  # it has no head
        context = model.config.embed.context_length
        super().__init__(model, framed_rows(encoder.tokenizer, encoder.frame, context - 7, texts))

    def read(self, *inputs: Tensor) -> Tensor:
        return self.model.hidden(*on_device(inputs, self.device)).cpu()
