"""A classifier of each token of a text: an encoder, and a linear map of each hidden state (Devlin et al. 2019,
figure 4 c and d), or of its transform (Warner et al. 2024, their code).

B rows, T tokens, C model width, L answers.
"""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.core.dropout import Dropout
from heedful.core.embed import EmbedConfig
from heedful.models.encoder import Encoder, EncoderConfig


@dataclass(frozen=True, kw_only=True)
class TokenClassifierConfig:
    encoder: EncoderConfig
    answers: int
    dropout: float = 0.1  # of what the linear map is given

    @property
    def pools(self) -> bool:
        """Whether the linear map takes the output of the encoder's pooler, a transform of each token."""
        return self.encoder.pooler and self.encoder.pooler_kind == "transform"

    @property
    def embed(self) -> EmbedConfig:
        return self.encoder.embed


class TokenClassifier(nn.Module):
    def __init__(self, config: TokenClassifierConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = Encoder(config.encoder)
        self.dropout = Dropout(config.dropout)
        self.out = nn.Linear(config.encoder.d_model, config.answers)
        nn.init.normal_(self.out.weight, std=0.02)
        nn.init.zeros_(self.out.bias)

    def forward(
        self,
        tokens: Int[Tensor, "B T"],
        segments: Int[Tensor, "B T"] | None = None,
        types: Int[Tensor, "B T"] | None = None,
    ) -> Float[Tensor, "B T L"]:
        """The logits of the answers at each token; segments and types as in `Encoder`."""
        return self.out(self.hidden(tokens, segments, types))

    def hidden(
        self,
        tokens: Int[Tensor, "B T"],
        segments: Int[Tensor, "B T"] | None = None,
        types: Int[Tensor, "B T"] | None = None,
    ) -> Float[Tensor, "B T C"]:
        """What the linear map reads of each token."""
        hidden = self.encoder.hidden(tokens, segments, types)
        return self.dropout(self.encoder.pool(hidden) if self.config.pools else hidden)
