"""Sound without mel bands: convolutions over its samples, and a stack that is told positions by a convolution too
(Baevski et al. 2020, wav2vec 2.0, section 2).

B sounds, N samples, T frames between two convolutions, S positions, D channels, K positions of a kernel, C model width.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.core.block import Context, Stack, StackConfig
from heedful.core.config import check_words
from heedful.core.dropout import Dropout
from heedful.core.mask import EVERYONE, Mask
from heedful.core.norm import make_norm
from heedful.errors import InputError


@dataclass(frozen=True, kw_only=True)
class WaveEncoderConfig:
    channels: tuple[int, ...]  # of each convolution over samples
    kernels: tuple[int, ...]
    strides: tuple[int, ...]
    bias: bool = False  # of these convolutions
    norm: Literal["group", "layer"] = "group"  # over time, behind the first of them alone; or of each frame, behind all
    position_kernel: int = 128
    position_groups: int = 16
    stack: StackConfig  # without a final norm, what it reads is normed
    feature_dropout: float = 0.0
    dropout: float = 0.0

    def __post_init__(self) -> None:
        check_words(self)
        sizes = (self.channels, self.kernels, self.strides)
        if not self.channels or len({*map(len, sizes)}) > 1 or min(map(min, sizes)) < 1:
            what = f"convolutions of {self.channels} channels, kernels {self.kernels}, strides {self.strides}"
            raise InputError(what, fix="give as many of each, of 1 or more")

    @property
    def step(self) -> int:
        """Samples from one position to the next."""
        return math.prod(self.strides)


class WaveEncoder(nn.Module):
    def __init__(self, d_model: int, config: WaveEncoderConfig) -> None:
        super().__init__()
        self.config, block = config, config.stack.block
        widths = [1, *config.channels]
        sizes = zip(widths, config.channels, config.kernels, config.strides, strict=False)
        self.convolutions = nn.ModuleList(nn.Conv1d(*size, bias=config.bias) for size in sizes)
        over_time = [nn.GroupNorm(widths[1], widths[1])]
        self.norms = nn.ModuleList(over_time if config.norm == "group" else map(nn.LayerNorm, config.channels))
        self.feature_norm = make_norm("layer", widths[-1], block.norm_eps)
        self.features = nn.Linear(widths[-1], d_model)
        self.feature_dropout = Dropout(config.feature_dropout)
        self.position = PositionConvolution(d_model, config.position_kernel, config.position_groups)
        ends_in_norm = config.stack.final_norm
        self.input_norm = nn.Identity() if ends_in_norm else make_norm(block.norm, d_model, block.norm_eps)
        self.dropout = Dropout(config.dropout)
        self.stack = Stack(d_model, config.stack)

    def forward(self, sound: Float[Tensor, "B 1 N"], lengths: Int[Tensor, "B"] | None = None) -> Float[Tensor, "B S C"]:
        """`lengths`: the samples of each sound, behind which it is filled up; None: all. What is filled up changes
        nothing in front of it."""
        least = 1  # samples of the first position
        for kernel, stride in zip(self.config.kernels[::-1], self.config.strides[::-1], strict=True):
            least = (least - 1) * stride + kernel
        x = F.pad(sound, (0, max(0, least - sound.shape[2])))
        for number, convolution in enumerate(self.convolutions):
            x = convolution(x)
            if self.config.norm == "layer":
                x = self.norms[number](x.mT).mT
            elif number == 0:
                x = _normed_over_time(self.norms[0], x, None if lengths is None else self.frames(lengths, 1))
            x = F.gelu(x)
        x = self.feature_dropout(self.features(self.feature_norm(x.mT)))
        mask = EVERYONE
        if lengths is not None:
            valid = torch.arange(x.shape[1], device=x.device) < self.frames(lengths)[:, None]
            x, mask = x.masked_fill(~valid[..., None], 0.0), Mask(valid=valid)
        x = self.dropout(self.input_norm(x + self.position(x)))
        return self.stack(x, Context(mask=mask))

    def ends(self, x: Float[Tensor, "B S _"], lengths: Int[Tensor, "B"] | None = None) -> Int[Tensor, "B"]:
        """How many positions of each row, of what was made of these sounds, are no filling."""
        return torch.full(x.shape[:1], x.shape[1], device=x.device) if lengths is None else self.frames(lengths)

    def frames(self, lengths: Int[Tensor, "B"], convolutions: int | None = None) -> Int[Tensor, "B"]:
        """How many frames of sounds of these lengths come out of the first convolutions; of all, positions. At least
        one."""
        for kernel, stride in [*zip(self.config.kernels, self.config.strides, strict=True)][:convolutions]:
            lengths = ((lengths - kernel).div(stride, rounding_mode="floor") + 1).clamp(min=1)
        return lengths


def _normed_over_time(
    norm: nn.Module, x: Float[Tensor, "B D T"], frames: Int[Tensor, "B"] | None
) -> Float[Tensor, "B D T"]:
    """Each channel of each sound by its mean and variance over so many frames; None: over all."""
    if frames is None:
        return norm(x)
    assert isinstance(norm, nn.GroupNorm)
    real, count = (torch.arange(x.shape[2], device=x.device) < frames[:, None])[:, None], frames[:, None, None]
    x32 = x.float()
    mean = (x32 * real).sum(2, keepdim=True) / count
    variance = ((x32 - mean).square() * real).sum(2, keepdim=True) / count
    normed = ((x32 - mean) * (variance + norm.eps).rsqrt()).to(x.dtype)
    return normed * norm.weight[:, None] + norm.bias[:, None]


class PositionConvolution(nn.Module):
    """What each position is near to: a convolution in groups over the positions, whose weights have the norms `scale`
    at each place of the kernel (Salimans and Kingma 2016, equation 2)."""

    def __init__(self, d_model: int, kernel: int, groups: int) -> None:
        super().__init__()
        if kernel < 1 or groups < 1 or d_model % groups:
            raise InputError(f"{groups} groups of {d_model} features, {kernel} positions", fix="give a divisor")
        self.groups = groups
        self.direction = nn.Parameter(torch.empty(d_model, d_model // groups, kernel))
        nn.init.normal_(self.direction, std=2 / (kernel * d_model) ** 0.5)
        self.scale = nn.Parameter(self.direction.detach().norm(dim=(0, 1), keepdim=True))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "B S C"]) -> Float[Tensor, "B S C"]:
        weight = self.direction * (self.scale / self.direction.norm(dim=(0, 1), keepdim=True))
        near = F.conv1d(x.mT, weight, self.bias, padding=weight.shape[2] // 2, groups=self.groups)
        return F.gelu(near[..., : x.shape[1]]).mT
