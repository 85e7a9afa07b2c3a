"""The laws of a model of pictures and texts."""

from collections.abc import Sequence

import torch
from torch import Tensor

from heedful.models import CLIP
from heedful.tasks.match.use import Matcher
from heedful.tasks.shared.probes import Probe, random_sentences


class MatchProbe(Probe[CLIP]):
    """The similarities of random pixels and texts."""

    def __init__(self, matcher: Matcher, texts: Sequence[str]) -> None:
        self.layout, prepared = matcher.layout, matcher.spec.preparation
        room = self.layout.context - 9
        sentences = matcher.layout.encode(list(texts)[:8]) or random_sentences(matcher.tokenizer.size)
        self.rows = [ids[:room] for ids in sentences]
        draw = torch.Generator().manual_seed(0)
        pixels = torch.randn(4, prepared.channels, *prepared.size, generator=draw)
        real = torch.ones(len(pixels), len(self.rows), dtype=torch.bool)
        super().__init__(matcher.model, (pixels, self.layout.rows(self.rows)), real)

    @torch.no_grad()
    def padded(self) -> Tensor:
        pixels, tokens = self.inputs
        return self.read(pixels, torch.nn.functional.pad(tokens, (0, 7), value=4))

    def alone(self, row: int) -> Tensor:
        pixels, alone = self.inputs[0][row][None], [self.layout.rows([ids]) for ids in self.rows]
        return torch.cat([self.read(pixels, tokens) for tokens in alone], dim=1)
