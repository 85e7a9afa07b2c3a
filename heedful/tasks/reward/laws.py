"""The laws of a reward model."""

from collections.abc import Sequence

import torch
from torch import Tensor

from heedful.data.frame import Framed, rectangle
from heedful.models import Classifier
from heedful.tasks.reward.use import RewardModel
from heedful.tasks.shared.probes import FramedProbe, framed_rows


class RewardProbe(FramedProbe[Classifier]):
    """The rewards of rows of different lengths [rows, 1]."""

    def __init__(self, reward: RewardModel, texts: Sequence[str]) -> None:
        rows = framed_rows(reward.tokenizer, reward.reads.frame, reward.context - 7, texts)
        super().__init__(reward.model, rows, torch.ones(len(rows), 1, dtype=torch.bool))

    @staticmethod
    def inputs_of(rows: Sequence[Framed]) -> tuple[Tensor, ...]:
        """Each row is the only answer to its prompt."""
        tokens, segments, _ = rectangle(rows)
        return tokens[:, None], segments[:, None]
