"""A classifier of texts: a body that reads the text, and a linear map of its hidden state at one position. That is the
last token for a language model (Radford et al. 2018, section 3.2 and figure 1), and the first for an encoder, through
its pooler where it has one (Devlin et al. 2019, section 4.1; Liu et al. 2019 initialize the same two maps anew).

B examples, N sequences per example (both orders of two texts to compare; one per choice of a multiple choice),
T tokens, C model width, L answers.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.core.dropout import Dropout
from heedful.core.embed import EmbedConfig
from heedful.errors import InputError
from heedful.models.encoder import Encoder, EncoderConfig
from heedful.models.lm import LM, LMConfig


@dataclass(frozen=True, kw_only=True)
class ClassifierConfig:
    """Raises InputError unless it has exactly one body."""

    lm: LMConfig | None = None
    encoder: EncoderConfig | None = None
    answers: int | None  # None: each sequence is a choice
    dropout: float = 0.1  # of the input of the linear map
    bias: bool = True  # of the linear map
    mean: bool = False  # of an encoder's hidden states, instead of the first

    def __post_init__(self) -> None:
        if (self.lm is None) == (self.encoder is None):
            raise InputError("a classifier has one body", fix="give lm, or encoder")

    @property
    def body(self) -> LMConfig | EncoderConfig:
        body = self.lm or self.encoder
        assert body is not None
        return body

    @property
    def embed(self) -> EmbedConfig:
        return self.body.embed


class Classifier(nn.Module):
    def __init__(self, config: ClassifierConfig) -> None:
        super().__init__()
        self.config = config
        self.lm = LM(config.lm) if config.lm else None
        self.encoder = Encoder(config.encoder) if config.encoder else None
        self.dropout = Dropout(config.dropout)
        self.out = nn.Linear(config.body.d_model, config.answers or 1, bias=config.bias)
        nn.init.normal_(self.out.weight, std=0.02)
        if config.bias:
            nn.init.zeros_(self.out.bias)

    def forward(
        self,
        tokens: Int[Tensor, "B N T"],
        segments: Int[Tensor, "B N T"],
        types: Int[Tensor, "B N T"] | None = None,
    ) -> Float[Tensor, "B L"]:
        """The logits of the answers. Segment 0 is padding; a sequence that is all padding is no choice (-inf). Only
        an encoder uses types."""
        return self.answer(self.hidden(tokens, segments, types), segments)

    def hidden(
        self,
        tokens: Int[Tensor, "B N T"],
        segments: Int[Tensor, "B N T"],
        types: Int[Tensor, "B N T"] | None = None,
    ) -> Float[Tensor, "B N T C"]:
        rows = tokens.flatten(0, 1), segments.flatten(0, 1)
        if self.lm is not None:
            return self.lm.hidden(*rows).unflatten(0, tokens.shape[:2])
        assert self.encoder is not None
        hidden = self.encoder.hidden(*rows, None if types is None else types.flatten(0, 1))
        return hidden.unflatten(0, tokens.shape[:2])

    def answer(self, hidden: Float[Tensor, "B N T C"], segments: Int[Tensor, "B N T"]) -> Float[Tensor, "B L"]:
        """The logits from one token of each sequence: summed over the sequences, or one score per choice."""
        return self.decide(self.read(hidden, segments), segments)

    def read(self, hidden: Float[Tensor, "B N T C"], segments: Int[Tensor, "B N T"]) -> Float[Tensor, "B N C"]:
        """What the linear map reads of each sequence; zeros of one that is all padding."""
        lengths = segments.count_nonzero(dim=-1)
        if self.encoder is None:
            last = (lengths - 1).clamp(min=0)[..., None, None].expand(-1, -1, 1, hidden.shape[-1])
            read = hidden.gather(2, last).squeeze(2)
        else:
            read = hidden[:, :, 0]
            if self.config.mean:
                real = segments > 0
                read = (hidden * real[..., None]).sum(2) / lengths.clamp(min=1)[..., None]
            read = read if self.encoder.pooler is None else self.encoder.pool(read)
        return self.dropout(read) * (lengths > 0)[..., None]

    def decide(self, read: Float[Tensor, "B N C"], segments: Int[Tensor, "B N T"]) -> Float[Tensor, "B L"]:
        """The logits from what `read` gave."""
        if self.config.answers is None:
            return self.out(read).squeeze(-1).masked_fill(segments.count_nonzero(dim=-1) == 0, -torch.inf)
        return self.out(read.sum(1))
