"""The laws of a painter."""

from collections.abc import Sequence

import torch

from heedful.tasks.paint.use import Painter
from heedful.tasks.shared.probes import RowsProbe, random_sentences


class PaintProbe(RowsProbe):
    """Random pixels as the beginnings of pictures."""

    def __init__(self, painter: Painter, texts: Sequence[str]) -> None:
        self.painter, begin = painter, len(painter.spec.palette)
        rows = [[begin, *ids] for ids in random_sentences(begin, least=0)]
        super().__init__(painter.model, rows, filler=begin)

    def searched(self) -> tuple[str, float]:
        """Completes pictures that lack their last pixels, in batches that are too small for all, and each alone."""
        draw, painter = torch.Generator().manual_seed(0), self.painter
        begun = torch.randint(len(painter.spec.palette), (4, painter.spec.pixels - 20), generator=draw)
        together = painter.paint(begun, temperature=0.0, batch=3)
        alone = torch.cat([painter.paint(one[None], temperature=0.0) for one in begun])
        return "pictures of a batch = alone (different values)", float((together != alone).sum())
