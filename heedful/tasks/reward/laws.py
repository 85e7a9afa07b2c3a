"""The laws that a reward must keep."""

from collections.abc import Sequence

import torch
from torch import Tensor

from heedful.data.frame import Framed, rectangle
from heedful.models import Classifier
from heedful.tasks.reward.use import RewardModel
from heedful.tasks.shared.probes import Probe, framed_rows


class RewardProbe(Probe[Classifier]):
    """The rewards of rows of different lengths [rows, 1]."""

    def __init__(self, reward: RewardModel, texts: Sequence[str]) -> None:
        self.rows = framed_rows(reward.tokenizer, reward.reads.frame, reward.context - 7, texts)
        super().__init__(reward.model, self._read(self.rows), torch.ones(len(self.rows), 1, dtype=torch.bool))

    def alone(self, row: int) -> Tensor:
        return self.read(*self._read([self.rows[row]]))

    @staticmethod
    def _read(rows: Sequence[Framed]) -> tuple[Tensor, ...]:
        """Each is the only answer to its prompt."""
        tokens, segments, _ = rectangle(rows)
        return tokens[:, None], segments[:, None]
