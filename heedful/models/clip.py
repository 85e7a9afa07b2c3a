"""CLIP (Radford et al. 2021, figures 1 and 3): a picture and a text are mapped into one space, each by its own
tower, so that matching ones lie close together.

I pictures of H x W pixels and N channels, B texts of T tokens, D width of the common space.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.core.block import Context, Stack, StackConfig
from heedful.core.embed import Embed, EmbedConfig, positions_of
from heedful.core.init import gpt2
from heedful.core.mask import Mask
from heedful.errors import InputError
from heedful.models.vit import ViT, ViTConfig


@dataclass(frozen=True, kw_only=True)
class TextConfig:
    d_model: int
    embed: EmbedConfig
    stack: StackConfig
    end: int  # the token that ends a text, and has attended to all of it


@dataclass(frozen=True, kw_only=True)
class CLIPConfig:
    d_common: int
    image: ViTConfig
    text: TextConfig
    log_scale: float = 2.6592  # the logarithm of 1 / 0.07, the temperature at the start of a training (section 2.5)

    @property
    def embed(self) -> EmbedConfig:
        return self.text.embed


class TextTower(nn.Module):
    """A causal stack whose output is taken at the end of the text (section 2.4)."""

    def __init__(self, config: TextConfig) -> None:
        super().__init__()
        self.end = config.end
        self.embed = Embed(config.d_model, config.embed)
        self.stack = Stack(config.d_model, config.stack)
        gpt2(self, n_layers=config.stack.n_layers)

    def forward(self, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B C"]:
        """The vector at the first `end` of each text; what follows is padding that it cannot see. Raises InputError for
        a text without `end`."""
        ends = tokens == self.end
        if not bool(ends.any(dim=1).all()):
            raise InputError(f"a text without its last token {self.end}", fix="cut long texts before it, not after")
        return self.hidden(tokens)[torch.arange(len(tokens), device=tokens.device), ends.int().argmax(dim=1)]

    def hidden(self, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T C"]:
        positions = positions_of(tokens, None)
        context = Context(mask=Mask(causal=True), positions=positions)
        return self.stack(self.embed(tokens, positions), context)


class CLIP(nn.Module):
    def __init__(self, config: CLIPConfig) -> None:
        super().__init__()
        if config.image.n_classes:
            raise InputError(f"a picture's tower with {config.image.n_classes} classes", fix="n_classes = 0")
        self.config = config
        self.image = ViT(config.image)
        self.text = TextTower(config.text)
        self.image_out = nn.Linear(config.image.d_out, config.d_common, bias=False)
        self.text_out = nn.Linear(config.text.d_model, config.d_common, bias=False)
        for out in (self.image_out, self.text_out):
            nn.init.normal_(out.weight, std=out.in_features**-0.5)
        self.log_scale = nn.Parameter(torch.tensor(config.log_scale))

    def forward(self, pixels: Float[Tensor, "I N H W"], tokens: Int[Tensor, "B T"]) -> Float[Tensor, "I B"]:
        """The similarity of each picture to each text: logits, along both axes."""
        return self.similarity(self.encode_image(pixels), self.encode_text(tokens))

    def encode_image(self, pixels: Float[Tensor, "I N H W"]) -> Float[Tensor, "I D"]:
        """Of length 1."""
        return F.normalize(self.image_out(self.image(pixels)), dim=-1)

    def encode_text(self, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B D"]:
        """Of length 1."""
        return F.normalize(self.text_out(self.text(tokens)), dim=-1)

    def similarity(self, images: Float[Tensor, "I D"], texts: Float[Tensor, "B D"]) -> Float[Tensor, "I B"]:
        """Cosines divided by the temperature, which is learned. The paper keeps it above 1/100 in training."""
        return self.log_scale.exp() * images @ texts.mT
