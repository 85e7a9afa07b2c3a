"""Embeddings of tokens, positions and types of tokens.

B batch, T tokens, C model width.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.core import kernels
from heedful.core.config import check_words
from heedful.core.dropout import Dropout
from heedful.errors import InputError


@dataclass(frozen=True, kw_only=True)
class EmbedConfig:
    vocab_size: int
    scaled: bool = True  # multiply by sqrt(d_model) (Vaswani et al. 2017, section 3.4)
    position_embeddings: Literal["none", "sinusoidal", "fairseq", "learned", "binary"] = "sinusoidal"
    context_length: int = 512  # how many positions a learned table has; of others, how many the model was made for
    sines_first: bool = False  # sinusoidal: all sines, then all cosines, in place of taking turns
    types: int = 0  # kinds of token, such as those of a first and a second sentence, with a vector each
    norm_eps: float | None = None  # the sum goes through a LayerNorm with this epsilon; None: through none
    dropout: float = 0.0

    def __post_init__(self) -> None:
        check_words(self)


def sinusoidal(
    positions: Int[Tensor, "*B T"] | Float[Tensor, "*B T"], d_model: int, *, sines_first: bool = False
) -> Float[Tensor, "*B T C"]:
    """PE(t, 2i) = sin(t / 10000^(2i/d)) and PE(t, 2i+1) = cos of the same (Vaswani et al. 2017, section 3.5); with
    `sines_first` the same numbers as Marian lays them out. Positions in double precision keep it."""
    exponent = torch.arange(0, d_model, 2, device=positions.device, dtype=torch.float64) / d_model
    angle = positions[..., None] * 10_000.0**-exponent
    parts = (angle.sin(), angle.cos()[..., : d_model // 2])
    both = torch.cat(parts, dim=-1) if sines_first else _take_turns(*parts)
    return both if positions.dtype == torch.float64 else both.float()


def sinusoidal_2d(rows: Float[Tensor, "*B T"], columns: Float[Tensor, "*B T"], d_model: int) -> Float[Tensor, "*B T C"]:
    """Half of the features tell the row, half the column (Parmar et al. 2018; Carion et al. 2020, appendix A.4)."""
    if d_model % 2:
        raise InputError(f"d_model {d_model} cannot be halved for rows and columns")
    return torch.cat([sinusoidal(rows, d_model // 2), sinusoidal(columns, d_model // 2)], dim=-1)


def fairseq_sinusoidal(positions: Int[Tensor, "*B T"], d_model: int) -> Float[Tensor, "*B T C"]:
    """sin((t + 2) / 10000^(i / (d/2 - 1))) for all i < d/2, then the cosines of the same, as fairseq (Ott et al. 2019)
    computes them: the wavelengths end at 10000 itself, and the numbers 0 and 1 belong to no position."""
    exponent = torch.arange(d_model // 2, device=positions.device, dtype=torch.float64) / (d_model // 2 - 1)
    angle = (positions[..., None] + 2) * 10_000.0**-exponent
    return F.pad(torch.cat([angle.sin(), angle.cos()], dim=-1), (0, d_model % 2)).float()


def binary(positions: Int[Tensor, "*B T"], d_model: int) -> Float[Tensor, "*B T C"]:
    """The position as a binary number, lowest bit first."""
    bits = min(d_model, 62)
    code = (positions[..., None] >> torch.arange(bits, device=positions.device)) & 1
    return F.pad(code.float(), (0, d_model - bits))


def _take_turns(even: Tensor, odd: Tensor) -> Tensor:
    out = even.new_empty(*even.shape[:-1], even.shape[-1] + odd.shape[-1])
    out[..., 0::2], out[..., 1::2] = even, odd
    return out


class Table(nn.Embedding):
    """An embedding table whose gradient is summed in float32 even if the table is bf16.

    A frequent token's gradient is a sum of hundreds. On a CPU torch sums in the table's own dtype, and in bf16 a sum
    stops growing at about 256 times a term: a small translator then needs twice the steps.
    """

    def forward(self, numbers: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape C"]:
        if kernels.sums_in_own_dtype(self.weight):
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


class PositionEmbeddings(nn.Module):
    """Absolute positions as vectors to add to the embeddings."""

    def __init__(self, d_model: int, config: EmbedConfig) -> None:
        super().__init__()
        self.d_model, self.kind, self.sines_first = d_model, config.position_embeddings, config.sines_first
        self.table = Table(config.context_length, d_model) if self.kind == "learned" else None

    def forward(self, positions: Int[Tensor, "B T"]) -> Float[Tensor, "B T C"]:
        """Raises InputError for a position beyond those that a learned table has."""
        if self.kind == "none":
            return torch.zeros(*positions.shape, self.d_model, device=positions.device)
        if self.table is not None:
            size = self.table.num_embeddings
            # Reading a value would break a compiled graph in two.
            if not torch.compiler.is_compiling() and positions.numel() and int(positions.max()) >= size:
                raise InputError(f"{int(positions.max()) + 1} tokens, but the model has {size} positions")
            return self.table(positions)
        size = 1 << max(6, int(positions.max() if positions.numel() else 0).bit_length())
        return _vectors(self.kind, size, self.d_model, self.sines_first, positions.device)[positions]


@lru_cache(maxsize=16)
@torch.inference_mode(mode=False)
def _vectors(kind: str, size: int, d_model: int, sines_first: bool, device: torch.device) -> Float[Tensor, "T C"]:
    """The vectors of the first positions. Cached: sines in double precision are slow, and every step needs them."""
    positions = torch.arange(size, device=device)
    match kind:
        case "binary":
            return binary(positions, d_model)
        case "fairseq":
            return fairseq_sinusoidal(positions, d_model)
        case _:
            return sinusoidal(positions, d_model, sines_first=sines_first)


class Embed(nn.Module):
    """Token vectors plus position vectors, then dropout (Vaswani et al. 2017, sections 3.4, 3.5 and 5.4); with vectors
    of types in the sum, and a norm over it, where the configuration asks (Devlin et al. 2019, figure 2 and their code).
    """

    def __init__(self, d_model: int, config: EmbedConfig, tokens: nn.Embedding | None = None) -> None:
        super().__init__()
        self.tokens = Table(config.vocab_size, d_model) if tokens is None else tokens
        self.position_embeddings = PositionEmbeddings(d_model, config)
        self.types = Table(config.types, d_model) if config.types else None
        self.norm = nn.Identity() if config.norm_eps is None else nn.LayerNorm(d_model, eps=config.norm_eps)
        self.dropout = Dropout(config.dropout)
        self.scale = math.sqrt(d_model) if config.scaled else 1.0

    def forward(
        self, tokens: Int[Tensor, "B T"], positions: Int[Tensor, "#B T"], types: Int[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B T C"]:
        """Without `types`, all tokens are of type 0."""
        x = self.tokens(tokens) * self.scale
        x = x + self.position_embeddings(positions).to(x.dtype)
        if self.types is not None:
            x = x + self.types(torch.zeros_like(tokens) if types is None else types)
        elif types is not None:
            raise InputError("types of tokens for an embedding without any", fix="give EmbedConfig(types=...)")
        return self.dropout(self.norm(x))


def positions_of(tokens: Int[Tensor, "B T"], segments: Int[Tensor, "B T"] | None) -> Int[Tensor, "#B T"]:
    """The position of each token in its own text: in its row, or, with segments, in its segment."""
    if segments is None:
        return torch.arange(tokens.shape[1], device=tokens.device)[None]
    return positions_in_segments(segments)


def positions_in_segments(segments: Int[Tensor, "B T"]) -> Int[Tensor, "B T"]:
    """The position of each token in its own sentence, for packed rows; a sentence may be in several pieces. Padding
    (segment 0) has the position 0."""
    order = segments.argsort(dim=1, stable=True)  # brings the pieces of a sentence together
    sorted_ = segments.gather(1, order)
    here = torch.arange(segments.shape[1], device=segments.device).expand_as(segments)
    begins = torch.ones_like(segments, dtype=torch.bool)
    begins[:, 1:] = sorted_[:, 1:] != sorted_[:, :-1]
    positions = here - torch.where(begins, here, 0).cummax(dim=1).values
    return torch.zeros_like(segments).scatter(1, order, positions) * (segments > 0)
