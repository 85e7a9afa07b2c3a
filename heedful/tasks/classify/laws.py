"""The laws that a classifier of texts must keep."""

from collections.abc import Sequence

import torch
from torch import Tensor

from heedful.data.frame import Framed, rectangle
from heedful.models import Classifier
from heedful.tasks.classify.use import TextClassifier
from heedful.tasks.shared.probes import Probe, framed_rows


class AnswerProbe(Probe[Classifier]):
    """A classifier's logits [rows, answers]; every other row is a pair of texts."""

    def __init__(self, classifier: TextClassifier, texts: Sequence[str]) -> None:
        layout = classifier.layout
        self.rows = framed_rows(classifier.tokenizer, layout.frame, layout.context - 7, texts)
        real = torch.ones(len(self.rows), classifier.model.out.out_features, dtype=torch.bool)
        super().__init__(classifier.model, self._read(self.rows), real)

    def alone(self, row: int) -> Tensor:
        return self.read(*self._read([self.rows[row]]))

    @staticmethod
    def _read(rows: Sequence[Framed]) -> tuple[Tensor, ...]:
        """Each is the only sequence of its example."""
        return tuple(part[:, None] for part in rectangle(rows))
