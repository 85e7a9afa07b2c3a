"""A residual network (He et al. 2016, table 1): the picture's features that DETR reads.

B batch, H x W pixels of N channels, h x w positions of the map that comes out, C its channels.
"""

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from heedful.core.init import he
from heedful.errors import InputError
from heedful.models.patches import group_norm

# By fixed statistics, with a scale and a shift of each channel that stand still or ("affine") are learned; or in groups
# of channels.
Norm = Literal["batch", "affine", "group"]


@dataclass(frozen=True, kw_only=True)
class ResNetConfig:
    widths: tuple[int, ...] = (256, 512, 1024, 2048)  # of each stage; all but the first halve rows and columns
    depths: tuple[int, ...] = (3, 4, 6, 3)
    kind: Literal["basic", "bottleneck"] = "bottleneck"  # two maps of 3 x 3 in a block, or 1 x 1, 3 x 3, 1 x 1
    stem: int = 64
    channels: int = 3
    norm: Norm = "batch"

    def __post_init__(self) -> None:
        if not self.depths or len(self.depths) != len(self.widths):
            raise InputError(f"stages of widths {self.widths} and depths {self.depths}", fix="give one of each a stage")


class BatchNorm(nn.Module):
    """Batch normalization (Ioffe and Szegedy 2015, algorithm 2) by fixed statistics: those of the training that the
    weights come from. So the output for a picture does not depend on the others, and small batches equal a large one.

    In a new model the statistics change nothing. `learned` says whether scale and shift keep learning;
    DETR's do not (Carion et al. 2020, appendix A).
    """

    def __init__(self, channels: int, *, learned: bool, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(channels), requires_grad=learned)
        self.bias = nn.Parameter(torch.zeros(channels), requires_grad=learned)
        self.mean = nn.Parameter(torch.zeros(channels), requires_grad=False)
        self.variance = nn.Parameter(torch.ones(channels), requires_grad=False)

    def forward(self, x: Float[Tensor, "B C h w"]) -> Float[Tensor, "B C h w"]:
        return F.batch_norm(x, self.mean, self.variance, self.weight, self.bias, training=False, eps=self.eps)


def make_map_norm(kind: Norm, channels: int) -> nn.Module:
    """A norm of a map (B, C, h, w)."""
    return group_norm(channels) if kind == "group" else BatchNorm(channels, learned=kind == "affine")


class ConvNorm(nn.Module):
    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, norm: Norm) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride=stride, padding=kernel // 2, bias=False)
        self.norm = make_map_norm(norm, outputs)

    def forward(self, x: Float[Tensor, "B C H W"]) -> Float[Tensor, "B D h w"]:
        return self.norm(self.conv(x))


class ResNetBlock(nn.Module):
    """Figure 5. The stride is in the 3 x 3 convolution, as in the weights that torchvision publishes."""

    def __init__(self, config: ResNetConfig, inputs: int, width: int, *, stride: int) -> None:
        super().__init__()
        inner = width if config.kind == "basic" else width // 4
        maps = [(inputs, width, 3, stride), (width, width, 3, 1)]
        if config.kind == "bottleneck":
            maps = [(inputs, inner, 1, 1), (inner, inner, 3, stride), (inner, width, 1, 1)]
        self.maps = nn.ModuleList(ConvNorm(*sizes, config.norm) for sizes in maps)
        fits = inputs == width and stride == 1
        self.shortcut = None if fits else ConvNorm(inputs, width, 1, stride, config.norm)

    def forward(self, x: Float[Tensor, "B C H W"]) -> Float[Tensor, "B D h w"]:
        y = x
        for i, one in enumerate(self.maps):
            y = one(y if i == 0 else F.relu(y))
        return F.relu(y + (x if self.shortcut is None else self.shortcut(x)))


class ResNet(nn.Module):
    def __init__(self, config: ResNetConfig) -> None:
        super().__init__()
        self.stem = ConvNorm(config.channels, config.stem, 7, 2, config.norm)
        self.stages = nn.ModuleList()
        inputs = config.stem
        for width, depth in zip(config.widths, config.depths, strict=True):
            first = ResNetBlock(config, inputs, width, stride=2 if len(self.stages) else 1)
            others = (ResNetBlock(config, width, width, stride=1) for _ in range(depth - 1))
            self.stages.append(nn.Sequential(first, *others))
            inputs = width
        he(self)

    def forward(self, pixels: Float[Tensor, "B N H W"]) -> Float[Tensor, "B C h w"]:
        """The last stage's map: of four stages, one position for 32 x 32 pixels."""
        x = F.max_pool2d(F.relu(self.stem(pixels)), 3, stride=2, padding=1)
        for stage in self.stages:
            x = stage(x)
        return x
