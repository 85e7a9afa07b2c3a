"""The laws that a bare encoder must keep."""

from collections.abc import Sequence

from torch import Tensor

from heedful.data.frame import rectangle
from heedful.models import Encoder
from heedful.tasks.shared.embed import TextEncoder
from heedful.tasks.shared.probes import Probe, framed_rows
from heedful.tasks.shared.served import on_device


class VectorProbe(Probe[Encoder]):
    """An encoder without a head: its hidden states."""

    def __init__(self, encoder: TextEncoder, texts: Sequence[str]) -> None:
        model = encoder.body
        assert isinstance(model, Encoder)  # it has no head
        context = model.config.embed.context_length
        self.rows = framed_rows(encoder.tokenizer, encoder.frame, context - 7, texts)
        tokens, segments, types = rectangle(self.rows)
        super().__init__(model, (tokens, segments, types), segments > 0)

    def read(self, *inputs: Tensor) -> Tensor:
        return self.model.hidden(*on_device(inputs, self.device)).cpu()

    def alone(self, row: int) -> Tensor:
        return self.read(*rectangle([self.rows[row]]))
