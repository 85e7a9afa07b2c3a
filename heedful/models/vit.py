"""The Vision Transformer (Dosovitskiy et al. 2021, figure 1): a picture is cut into squares and read like a sentence.

With `stages` it is a hierarchy (Liu et al. 2021, Swin Transformer, figure 3).

B batch, H x W pixels of N channels, P patches, T tokens (those before the picture, then the patches), C model width
(of the last stage in what comes out), K classes, R read-outs.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.core.block import BLOCKS, Context, Stack, StackConfig
from heedful.core.dropout import Dropout
from heedful.core.init import he, normal
from heedful.core.mask import EVERYONE
from heedful.core.norm import make_norm
from heedful.errors import InputError
from heedful.models.patches import GridPositionEmbeddings, Patches, PatchesConfig
from heedful.models.windows import WINDOWS, Merge


@dataclass(frozen=True, kw_only=True)
class ViTConfig:
    d_model: int
    patches: PatchesConfig
    stack: StackConfig
    n_classes: int  # 0: no heads, the read-out itself
    readout: Literal["cls", "mean"] = "cls"  # a token before the picture, or the mean of the patches
    teacher: bool = False  # one more token and head, which learn from a teacher (Touvron et al. 2021, DeiT, section 4)
    input_norm: bool = False  # a norm before the first block (Radford et al. 2021, CLIP)
    dropout: float = 0.0  # of the embeddings
    stages: tuple[StackConfig, ...] = ()  # behind the stack: before each, 2 x 2 patches become one of twice the width

    @property
    def d_out(self) -> int:
        """The width of what comes out."""
        return self.d_model << len(self.stages)


class ViT(nn.Module):
    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        if config.teacher and config.readout != "cls":
            raise InputError("a teacher's token beside the mean of the patches", fix='readout = "cls"')
        if config.readout == "cls" and (config.stages or any(layer.kind in WINDOWS for layer in config.stack.layers)):
            what = "merged with none of its patches" if config.stages else "in none of its windows"
            raise InputError(f"a token before the picture is {what}", fix='readout = "mean"')
        self.config = config
        C, K, block = config.d_model, config.n_classes, config.stack.block
        first = 0 if config.readout == "mean" else 2 if config.teacher else 1
        self.patches = Patches(C, config.patches)
        self.cls = nn.Parameter(torch.zeros(C)) if first > 0 else None
        self.teacher = nn.Parameter(torch.zeros(C)) if first > 1 else None
        self.position_embeddings = GridPositionEmbeddings(C, config.patches, first=first)
        self.dropout = Dropout(config.dropout)
        self.input_norm = make_norm(block.norm, C, block.norm_eps) if config.input_norm else nn.Identity()
        self.stack = Stack(C, config.stack, {**BLOCKS, **WINDOWS})
        widths = [C << i for i in range(len(config.stages))]  # before each further stage
        self.merges = nn.ModuleList(map(Merge, widths))
        later = zip(widths, config.stages, strict=True)
        self.stages = nn.ModuleList(Stack(2 * width, stage, {**BLOCKS, **WINDOWS}) for width, stage in later)
        self.head = nn.Linear(config.d_out, K) if K else None
        self.teacher_head = nn.Linear(config.d_out, K) if K and config.teacher else None
        normal(self)
        he(self.patches.stem)

    def forward(self, pixels: Float[Tensor, "B N H W"]) -> Float[Tensor, "B K"]:
        """The logits of each class: the mean of both heads where there is one for a teacher. Without heads, the
        read-out."""
        return self.each(pixels).mean(dim=1)

    def each(self, pixels: Float[Tensor, "B N H W"]) -> Float[Tensor, "B R K"]:
        """The logits of each head alone, for a loss that has a target for each: the label, and the teacher's."""
        return self.by_head(self.read_out(self.hidden(pixels)))

    def by_head(self, read: Float[Tensor, "B R C"]) -> Float[Tensor, "B R K"]:
        """The same of the input of the heads."""
        heads = [head for head in (self.head, self.teacher_head) if head is not None]
        return torch.stack([head(read[:, i]) for i, head in enumerate(heads)], dim=1) if heads else read

    def hidden(self, pixels: Float[Tensor, "B N H W"]) -> Float[Tensor, "B T C"]:
        """The hidden states of all tokens, for pictures of any size: positions are interpolated. Raises InputError for
        a picture smaller than a patch, or whose patches cannot be parted into windows or merged."""
        x, grid = self.patches(pixels)
        first = [token.expand(x.shape[0], 1, -1) for token in (self.cls, self.teacher) if token is not None]
        x = self.dropout(self.position_embeddings(torch.cat([*first, x], dim=1), grid))
        x = self.stack(self.input_norm(x), Context(mask=EVERYONE, grid=grid))
        for merge, stage in zip(self.merges, self.stages, strict=True):
            x, grid = merge(x, grid)
            x = stage(x, Context(mask=EVERYONE, grid=grid))
        return x

    def read_out(self, hidden: Float[Tensor, "B T C"]) -> Float[Tensor, "B R C"]:
        """The input of the heads."""
        if self.cls is None:
            return hidden.mean(dim=1, keepdim=True)
        return hidden[:, : 1 if self.teacher is None else 2]
