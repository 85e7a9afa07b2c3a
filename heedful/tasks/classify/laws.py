"""The laws of a text classifier."""

from collections.abc import Sequence

import torch
from torch import Tensor

from heedful.data.frame import Framed, rectangle
from heedful.models import Classifier
from heedful.tasks.classify.use import TextClassifier
from heedful.tasks.shared.probes import FramedProbe, framed_rows


class AnswerProbe(FramedProbe[Classifier]):
    """A classifier's logits [rows, answers]; every other row is a pair of texts."""

    def __init__(self, classifier: TextClassifier, texts: Sequence[str]) -> None:
        layout = classifier.layout
        rows = framed_rows(classifier.tokenizer, layout.frame, layout.context - 7, texts)
        real = torch.ones(len(rows), classifier.model.out.out_features, dtype=torch.bool)
        super().__init__(classifier.model, rows, real)

    @staticmethod
    def inputs_of(rows: Sequence[Framed]) -> tuple[Tensor, ...]:
        """Each row is the only sequence of its example."""
        return tuple(part[:, None] for part in rectangle(rows))
