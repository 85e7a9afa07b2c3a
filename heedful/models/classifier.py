"""What is to be said of a text: a body that reads it, and a linear map of what it makes of one place (Radford et al.
2018, section 3.2 and figure 1).

B examples, N sequences an example (of two texts to compare, both orders; of a multiple choice, one a choice),
T tokens, C model width, L answers.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.core.dropout import Dropout
from heedful.models.lm import LM, LMConfig


@dataclass(frozen=True, kw_only=True)
class ClassifierConfig:
    lm: LMConfig
    answers: int | None  # None: each sequence is a choice
    dropout: float = 0.1  # of what the linear map is given


class Classifier(nn.Module):
    def __init__(self, config: ClassifierConfig) -> None:
        super().__init__()
        self.config = config
        self.lm = LM(config.lm)
        self.dropout = Dropout(config.dropout)
        self.out = nn.Linear(config.lm.d_model, config.answers or 1)
        nn.init.normal_(self.out.weight, std=0.02)
        nn.init.zeros_(self.out.bias)

    def forward(self, tokens: Int[Tensor, "B N T"], segments: Int[Tensor, "B N T"]) -> Float[Tensor, "B L"]:
        """The logits of the answers. Segment 0 is padding; a sequence that is all padding is no choice (-inf)."""
        return self.answer(self.hidden(tokens, segments), segments)

    def hidden(self, tokens: Int[Tensor, "B N T"], segments: Int[Tensor, "B N T"]) -> Float[Tensor, "B N T C"]:
        return self.lm.hidden(tokens.flatten(0, 1), segments.flatten(0, 1)).unflatten(0, tokens.shape[:2])

    def answer(self, hidden: Float[Tensor, "B N T C"], segments: Int[Tensor, "B N T"]) -> Float[Tensor, "B L"]:
        """From the last token of each sequence: summed over the sequences, or each the score of its choice."""
        lengths = segments.count_nonzero(dim=-1)
        last = (lengths - 1).clamp(min=0)[..., None, None].expand(-1, -1, 1, hidden.shape[-1])
        read = self.dropout(hidden.gather(2, last).squeeze(2))
        if self.config.answers is None:
            return self.out(read).squeeze(-1).masked_fill(lengths == 0, -torch.inf)
        return self.out((read * (lengths > 0)[..., None]).sum(1))
