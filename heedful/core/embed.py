"""From symbols and pixels to vectors: tokens, patches, where they stand, and what kind of text they belong to.

B batch, T tokens, H x W pixels of K channels, P patches, C model width.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.core.dropout import Dropout
from heedful.errors import InputError


@dataclass(frozen=True, kw_only=True)
class PlacesConfig:
    kind: Literal["none", "sinusoidal", "learned", "binary"] = "sinusoidal"
    size: int = 512  # how many places there are; but for learned ones, how many the model was made for
    halves: bool = False  # sinusoidal: all sines, then all cosines, in place of taking turns


@dataclass(frozen=True, kw_only=True)
class EmbedConfig:
    vocab_size: int
    scaled: bool = True  # multiply by sqrt(d_model) (Vaswani et al. 2017, section 3.4)
    places: PlacesConfig = PlacesConfig()
    types: int = 0  # kinds of token, such as those of a first and a second sentence, with a vector each
    norm_eps: float | None = None  # the sum goes through a LayerNorm with this epsilon; None: through none
    dropout: float = 0.0


@dataclass(frozen=True, kw_only=True)
class PatchesConfig:
    size: tuple[int, ...]  # rows and columns of pixels that the places are made for
    patch: int  # rows, and columns, of pixels in one patch
    channels: int = 3
    bias: bool = True
    places: Literal["learned", "sinusoidal"] = "learned"
    stem: tuple[int, ...] = ()  # widths of 3 x 3 convolutions before, which halve rows and columns as patches allow

    def __post_init__(self) -> None:
        if len(self.size) != 2 or min(*self.size, self.patch) < 1 or min(self.size) < self.patch:
            raise InputError(f"pictures of {self.size} pixels in patches of {self.patch}", fix="give rows and columns")

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of patches."""
        return self.size[0] // self.patch, self.size[1] // self.patch


def sinusoidal(
    positions: Int[Tensor, "*B T"] | Float[Tensor, "*B T"], d_model: int, *, halves: bool = False
) -> Float[Tensor, "*B T C"]:
    """PE(t, 2i) = sin(t / 10000^(2i/d)) and PE(t, 2i+1) = cos of the same (Vaswani et al. 2017, section 3.5); with
    `halves`, the same numbers with the sines first, as Marian lays them out. Places in double precision keep it."""
    exponent = torch.arange(0, d_model, 2, device=positions.device, dtype=torch.float64) / d_model
    angle = positions[..., None] * 10_000.0**-exponent
    parts = (angle.sin(), angle.cos()[..., : d_model // 2])
    both = torch.cat(parts, dim=-1) if halves else _take_turns(*parts)
    return both if positions.dtype == torch.float64 else both.float()


def sinusoidal_2d(rows: Float[Tensor, "*B T"], columns: Float[Tensor, "*B T"], d_model: int) -> Float[Tensor, "*B T C"]:
    """Half of the features tell the row, half the column (Parmar et al. 2018; Carion et al. 2020, appendix A.4)."""
    if d_model % 2:
        raise InputError(f"d_model {d_model} cannot be halved for rows and columns")
    return torch.cat([sinusoidal(rows, d_model // 2), sinusoidal(columns, d_model // 2)], dim=-1)


def binary(positions: Int[Tensor, "*B T"], d_model: int) -> Float[Tensor, "*B T C"]:
    """The place as a binary number, lowest bit first."""
    bits = min(d_model, 62)
    code = (positions[..., None] >> torch.arange(bits, device=positions.device)) & 1
    return F.pad(code.float(), (0, d_model - bits))


def _take_turns(even: Tensor, odd: Tensor) -> Tensor:
    out = even.new_empty(*even.shape[:-1], even.shape[-1] + odd.shape[-1])
    out[..., 0::2], out[..., 1::2] = even, odd
    return out


class Table(nn.Embedding):
    """A vector for each number, whose gradient is summed in float32 also where the table is bf16.

    A frequent token's gradient is a sum of hundreds. torch adds them up in the table's own dtype on a CPU, and in bf16
    a sum stops growing at about 256 times what is added: a small translator then needs twice the steps.
    """

    def forward(self, numbers: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape C"]:
        if self.weight.device.type == "cpu" and self.weight.dtype in (torch.bfloat16, torch.float16):
            return _LookUp.apply(self.weight, numbers)
        return super().forward(numbers)


class _LookUp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, numbers: Tensor) -> Tensor:
        ctx.save_for_backward(numbers)
        ctx.like = weight
        return F.embedding(numbers, weight)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, None]:
        (numbers,) = ctx.saved_tensors
        total = torch.zeros_like(ctx.like, dtype=torch.float32)
        total.index_add_(0, numbers.flatten(), grad_outputs[0].reshape(-1, total.shape[1]).float())
        return total.to(ctx.like.dtype), None


class Places(nn.Module):
    """Absolute positions as vectors to add to the embeddings."""

    def __init__(self, d_model: int, config: PlacesConfig) -> None:
        super().__init__()
        self.d_model, self.config = d_model, config
        self.table = Table(config.size, d_model) if config.kind == "learned" else None

    def forward(self, positions: Int[Tensor, "B T"]) -> Float[Tensor, "B T C"]:
        """Raises InputError for a place beyond those that a learned table has."""
        if self.config.kind == "none":
            return torch.zeros(*positions.shape, self.d_model, device=positions.device)
        if self.table is not None:
            size = self.table.num_embeddings
            # Looking at numbers would part a compiled graph in two.
            if not torch.compiler.is_compiling() and positions.numel() and int(positions.max()) >= size:
                raise InputError(f"{int(positions.max()) + 1} tokens, but the model has {size} places")
            return self.table(positions)
        size = 1 << max(6, int(positions.max() if positions.numel() else 0).bit_length())
        return _vectors(self.config.kind, size, self.d_model, self.config.halves, positions.device)[positions]


@lru_cache(maxsize=16)
@torch.inference_mode(mode=False)
def _vectors(kind: str, size: int, d_model: int, halves: bool, device: torch.device) -> Float[Tensor, "T C"]:
    """Of the first places. They are kept, as sines in double precision are slow and every step needs them."""
    places = torch.arange(size, device=device)
    return binary(places, d_model) if kind == "binary" else sinusoidal(places, d_model, halves=halves)


class Embed(nn.Module):
    """Token vectors plus place vectors, then dropout (Vaswani et al. 2017, sections 3.4, 3.5 and 5.4); with vectors of
    types in the sum, and a norm over it, where the configuration asks (Devlin et al. 2019, figure 2, and their code).
    """

    def __init__(self, d_model: int, config: EmbedConfig, tokens: nn.Embedding | None = None) -> None:
        super().__init__()
        self.tokens = Table(config.vocab_size, d_model) if tokens is None else tokens
        self.places = Places(d_model, config.places)
        self.types = Table(config.types, d_model) if config.types else None
        self.norm = nn.Identity() if config.norm_eps is None else nn.LayerNorm(d_model, eps=config.norm_eps)
        self.dropout = Dropout(config.dropout)
        self.scale = math.sqrt(d_model) if config.scaled else 1.0

    def forward(
        self, tokens: Int[Tensor, "B T"], positions: Int[Tensor, "#B T"], types: Int[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B T C"]:
        """Without `types`, all tokens are of type 0."""
        x = self.tokens(tokens) * self.scale
        x = x + self.places(positions).to(x.dtype)
        if self.types is not None:
            x = x + self.types(torch.zeros_like(tokens) if types is None else types)
        elif types is not None:
            raise ValueError("an embedding without types was given some")
        return self.dropout(self.norm(x))


def group_norm(channels: int) -> nn.GroupNorm:
    """Of a map (B, C, h, w), in groups of about 16 channels (Wu and He 2018, section 4.1). A channel that were a group
    by itself would forget how bright, or how red, a picture is."""
    return nn.GroupNorm(math.gcd(channels, max(1, channels // 16)), channels)


class Patches(nn.Module):
    """A picture as a row of vectors, one for each square of pixels (Dosovitskiy et al. 2021, section 3.1), perhaps
    behind a few convolutions (Xiao et al. 2021, section 4). Pixels at the right and the lower edge that fill no square
    are left out."""

    def __init__(self, d_model: int, config: PatchesConfig) -> None:
        super().__init__()
        self.patch, inputs = config.patch, config.channels
        halvings = min(len(config.stem), (config.patch & -config.patch).bit_length() - 1)  # the last so many halve
        layers: list[nn.Module] = []
        for i, width in enumerate(config.stem):
            stride = 2 if i >= len(config.stem) - halvings else 1
            layers += [nn.Conv2d(inputs, width, 3, stride=stride, padding=1, bias=False)]
            layers += [group_norm(width), nn.ReLU()]
            inputs = width
        self.stem = nn.Sequential(*layers)
        # One linear map of a square's pixels; a convolution that steps by its own width is that.
        square = config.patch >> halvings
        self.map = nn.Conv2d(inputs, d_model, square, stride=square, bias=config.bias)

    def forward(self, pixels: Float[Tensor, "B K H W"]) -> tuple[Float[Tensor, "B P C"], tuple[int, int]]:
        """The vectors row by row, and how many rows and columns of them there are."""
        (H, W), patch = pixels.shape[2:], self.patch
        if min(H, W) < patch:
            raise InputError(f"a picture of {H} x {W} pixels has no patch of {patch}", fix="make the picture larger")
        x = self.map(self.stem(pixels[:, :, : H - H % patch, : W - W % patch]))
        return x.flatten(2).mT, (x.shape[2], x.shape[3])


class GridPlaces(nn.Module):
    """The places of a grid of patches, row by row, behind those of `first` tokens that stand before the picture.

    A grid of another size gets the places between: learned ones by interpolation, sines at fractions of a place.
    """

    def __init__(self, d_model: int, config: PatchesConfig, *, first: int) -> None:
        super().__init__()
        self.grid, self.first = config.grid, first
        rows, columns = config.grid
        self.table = Table(first + rows * columns, d_model) if config.places == "learned" else None

    def forward(self, x: Float[Tensor, "B T C"], grid: tuple[int, int]) -> Float[Tensor, "B T C"]:
        """`x` with its places added, where `grid` says how many rows and columns of patches it has."""
        if self.table is None:
            axes = (_centres(own, other, x.device) for own, other in zip(self.grid, grid, strict=True))
            rows, columns = torch.meshgrid(*axes, indexing="ij")
            places = sinusoidal_2d(rows.flatten(), columns.flatten(), x.shape[-1])
            return x + F.pad(places, (0, 0, self.first, 0)).to(x.dtype)
        return x + places_between(self.table.weight, self.grid, grid, first=self.first)


def places_between(
    table: Float[Tensor, "T C"], own: tuple[int, int], grid: tuple[int, int], *, first: int
) -> Float[Tensor, "U C"]:
    """A table of places for `first` tokens and an `own` grid, row by row, as one for another grid, by bicubic
    interpolation (Dosovitskiy et al. 2021, section 3.2)."""
    if grid == own:
        return table
    picture = F.interpolate(table[first:].mT.unflatten(1, own)[None], size=grid, mode="bicubic")[0]
    return torch.cat([table[:first], picture.flatten(1).mT])


def _centres(own: int, other: int, device: torch.device) -> Float[Tensor, "T"]:
    """Where the centres of `other` patches lie along an edge whose places were made for `own`."""
    return (torch.arange(other, device=device) + 0.5) * (own / other) - 0.5


def places_in_segments(segments: Int[Tensor, "B T"]) -> Int[Tensor, "B T"]:
    """Where each token stands in its own sentence, for rows that hold several, be it in several pieces. Padding, 0,
    stands at 0."""
    order = segments.argsort(dim=1, stable=True)  # brings the pieces of a sentence together
    sorted_ = segments.gather(1, order)
    here = torch.arange(segments.shape[1], device=segments.device).expand_as(segments)
    begins = torch.ones_like(segments, dtype=torch.bool)
    begins[:, 1:] = sorted_[:, 1:] != sorted_[:, :-1]
    places = here - torch.where(begins, here, 0).cummax(dim=1).values
    return torch.zeros_like(segments).scatter(1, order, places) * (segments > 0)
