"""DETR (Carion et al. 2020, figure 2): a set of learned queries finds the things in a picture and where they are, all
at once.

B batch, H x W pixels of N channels, h x w positions of the map that is read, P of them in a row, Q queries, L decoder
layers, C model width, K classes and, as the last, "nothing".
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heedful.core.block import Context, Memory, Stack, StackConfig
from heedful.core.embed import Table, sinusoidal_2d
from heedful.core.init import xavier
from heedful.core.mask import EVERYONE, Mask
from heedful.errors import InputError
from heedful.models.resnet import ResNet, ResNetConfig


@dataclass(frozen=True, kw_only=True)
class DETRConfig:
    d_model: int
    backbone: ResNetConfig
    encoder: StackConfig
    decoder: StackConfig
    n_queries: int  # the maximum number of things found in a picture
    n_classes: int  # without "nothing"


class Detections(NamedTuple):
    """What the queries found after each decoder layer: the last is the answer, the others are for a loss."""

    logits: Float[Tensor, "L B Q K+1"]  # of each class, and of nothing
    boxes: Float[Tensor, "L B Q 4"]  # centre x and y, width, height, as shares of the picture


def grid_embeddings(valid: Bool[Tensor, "B h w"], d_model: int) -> Float[Tensor, "B P C"]:
    """The position of each element of a map: sines of its row and column, counted among the valid ones from 1 and
    scaled to 2 pi, so that pictures of all sizes end alike (Carion et al. 2020, appendix A). In double precision."""

    def stretched(dim: int) -> Float[Tensor, "B h w"]:
        counted = valid.cumsum(dim, dtype=torch.float64)
        whole = counted.narrow(dim, counted.shape[dim] - 1, 1)
        return counted / (whole + 1e-6) * (2 * math.pi)

    return sinusoidal_2d(stretched(1), stretched(2), d_model).flatten(1, 2)


class BoxHead(nn.Module):
    """Three linear maps with ReLU between; a sigmoid turns the output into shares of the picture."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.maps = nn.ModuleList(nn.Linear(d_model, outputs) for outputs in (d_model, d_model, 4))

    def forward(self, x: Float[Tensor, "*B C"]) -> Float[Tensor, "*B 4"]:
        first, second, last = self.maps
        return last(F.relu(second(F.relu(first(x))))).sigmoid()


class DETR(nn.Module):
    def __init__(self, config: DETRConfig) -> None:
        super().__init__()
        decoder = config.decoder.block
        looks = {"encoder": config.encoder.block.attention, "decoder": decoder.attention, "cross": decoder.cross}
        for name, attention in looks.items():
            if attention is None or attention.position.kind != "added":
                raise InputError(f"{name}: object queries need added positions", fix='kind = "added"')
        if {config.encoder.shared_position.kind, config.decoder.shared_position.kind} != {"none"}:
            raise InputError("a position bias that blocks share, beside positions that are added", fix="leave one out")
        self.config = config
        C = config.d_model
        self.backbone = ResNet(config.backbone)
        self.input = nn.Conv2d(config.backbone.widths[-1], C, 1)
        self.encoder = Stack(C, config.encoder)
        self.queries = Table(config.n_queries, C)
        self.decoder = Stack(C, config.decoder)
        self.class_head = nn.Linear(C, config.n_classes + 1)
        self.box_head = BoxHead(C)
        for part in (self.input, self.encoder, self.decoder, self.class_head, self.box_head):
            xavier(part)
        nn.init.normal_(self.queries.weight)  # far apart, since everything else is the same for every query

    def forward(self, pixels: Float[Tensor, "B N H W"], valid: Bool[Tensor, "B H W"] | None = None) -> Detections:
        """`valid`: which pixels belong to a picture, where smaller pictures were padded at the right and below."""
        x = self.hidden(pixels, valid)
        return Detections(self.class_head(x), self.box_head(x))

    def hidden(
        self, pixels: Float[Tensor, "B N H W"], valid: Bool[Tensor, "B H W"] | None = None
    ) -> Float[Tensor, "L B Q C"]:
        """The output of each decoder layer for the queries, after the norm that all layers share."""
        x, own, where = self.encode(pixels, valid)
        queries = self.queries.weight.expand(len(pixels), -1, -1)
        memory = Memory(x, Mask(valid=own), position_embeddings=where)
        context = Context(mask=EVERYONE, memory=memory, position_embeddings=queries)
        return torch.stack([*self.decoder.each(torch.zeros_like(queries), context)])

    def encode(
        self, pixels: Float[Tensor, "B N H W"], valid: Bool[Tensor, "B H W"] | None = None
    ) -> tuple[Float[Tensor, "B P C"], Bool[Tensor, "B P"], Float[Tensor, "B P C"]]:
        """The memory that the queries attend to, which of it is valid, and its positions."""
        x = self.input(self.backbone(pixels))
        if valid is None:
            valid = torch.ones_like(pixels[:, 0], dtype=torch.bool)
        # A position is valid if its first pixel is.
        own = F.interpolate(valid[None].float(), size=x.shape[2:], mode="nearest")[0] > 0
        where = grid_embeddings(own, self.config.d_model).to(x.dtype)
        own = own.flatten(1)
        context = Context(mask=Mask(valid=own), position_embeddings=where)
        return self.encoder(x.flatten(2).mT, context), own, where
