"""What is to be said of a text: a body that reads it, and a linear map of what it makes of one position: of a language
model the last token (Radford et al. 2018, section 3.2 and figure 1), of an encoder the first, through its pooler where
it has one (Devlin et al. 2019, section 4.1; Liu et al. 2019 begin the same two maps anew).

B examples, N sequences an example (of two texts to compare, both orders; of a multiple choice, one a choice),
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
    """Raises InputError for no body, and for two."""

    lm: LMConfig | None = None
    encoder: EncoderConfig | None = None
    answers: int | None  # None: each sequence is a choice
    dropout: float = 0.1  # of what the linear map is given
    bias: bool = True  # of the linear map
    mean: bool = False  # of an encoder's hidden states, in place of the first

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
        """The logits of the answers. Segment 0 is padding; a sequence that is all padding is no choice (-inf). Types
        are for an encoder's eyes alone."""
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
        """From one token of each sequence: summed over the sequences, or each the score of its choice."""
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
        read = self.dropout(read)
        if self.config.answers is None:
            return self.out(read).squeeze(-1).masked_fill(lengths == 0, -torch.inf)
        return self.out((read * (lengths > 0)[..., None]).sum(1))
