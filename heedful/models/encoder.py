"""An encoder: one stack in which every token sees all others, before and after it (Devlin et al. 2019, figure 3;
Liu et al. 2019).

B batch, T tokens, N positions picked out of a batch, R residues, A maps of attention, V vocabulary, C model width.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.core.block import ACTIVATIONS, BLOCKS, Block, BlockConfig, Context, Stack, StackConfig
from heedful.core.embed import Embed, EmbedConfig, positions_of
from heedful.core.init import normal, xavier
from heedful.core.mask import EVERYONE, Mask
from heedful.core.norm import make_norm
from heedful.errors import InputError
from heedful.models.longformer import LONGFORMER, LongformerBlock


@dataclass(frozen=True, kw_only=True)
class EncoderConfig:
    d_model: int
    embed: EmbedConfig
    stack: StackConfig
    mlm_head: bool = True  # predicts the token at each position
    tied: bool = True  # its output matrix is the embedding's
    pooler: bool = False  # makes one vector of a text from its first token
    pooler_kind: Literal["tanh", "relu", "transform"] = "tanh"  # what follows its map, or a `Transform`
    nsp_head: bool = False  # predicts from that vector whether the second of two texts follows the first
    dropped: int | None = None  # a token, the mask, that counts as dropped out (`token_dropout`)
    contact_head: bool = False  # predicts from all maps of attention which residues of a protein touch


class UnnormedBlock(Block):
    """A block without a norm before its self-attention: the first of a pre-norm stack, where the embeddings have just
    been through a norm (Warner et al. 2024, their code)."""

    def __init__(self, d_model: int, config: BlockConfig) -> None:
        super().__init__(d_model, config)
        self.self_residual.in_norm = nn.Identity()


UNNORMED = "unnormed"  # its `kind` in a configuration
DROPPED = 0.15 * 0.8  # the share of tokens that are masked in training


class Transform(nn.Module):
    """The map of a hidden state before it is compared with every word (Devlin et al. 2019, their code)."""

    def __init__(self, d_model: int, config: BlockConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(d_model, d_model)
        self.activation = ACTIVATIONS[config.activation]
        self.norm = make_norm(config.norm, d_model, config.norm_eps)

    def forward(self, x: Float[Tensor, "*N C"]) -> Float[Tensor, "*N C"]:
        return self.norm(self.activation(self.dense(x)))


def token_dropout(
    tokens: Int[Tensor, "B T"], segments: Int[Tensor, "B T"] | None, dropped: int
) -> Float[Tensor, "B T 1"]:
    """What to multiply token vectors by, so that the token `dropped` counts as dropped out: by 0 there, and elsewhere
    by the share of tokens that stay in training over the share that stay in this text (Meier et al. 2021, their code).
    """
    stays = tokens != dropped
    if segments is None:
        share = stays.float().mean(1, keepdim=True)
    else:
        text = segments[:, :, None] == segments[:, None]
        share = (text & stays[:, None]).sum(2) / text.sum(2)
    return torch.where(stays, (1 - DROPPED) / share, 0.0)[:, :, None]


def product_corrected(x: Float[Tensor, "*B R R"]) -> Float[Tensor, "*B R R"]:
    """Without what the means of row and column explain (Dunn et al. 2008, equation 5: APC)."""
    rows, columns = x.sum(-1, keepdim=True), x.sum(-2, keepdim=True)
    return x - rows * columns / x.sum((-1, -2), keepdim=True)


class Encoder(nn.Module):
    """A stack without a causal mask, and the heads that its configuration asks for. Its weights begin like BERT's, or
    where token vectors are scaled, like the Transformer's. Raises InputError for an `nsp_head` without a `pooler`."""

    packs = True  # several texts may share a row: segments keep them apart

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        if config.nsp_head and not config.pooler:
            raise InputError("an encoder tells pairs by what its pooler sums up", fix="pooler = true")
        d_model, vocab_size = config.d_model, config.embed.vocab_size
        self.config = config
        self.embed = Embed(d_model, config.embed)
        blocks = {**BLOCKS, UNNORMED: UnnormedBlock, LONGFORMER: LongformerBlock}
        self.stack = Stack(d_model, config.stack, blocks)
        self.transform = Transform(d_model, config.stack.block) if config.mlm_head else None
        self.head = nn.Linear(d_model, vocab_size) if config.mlm_head else None
        self.pooler = _pooler(config) if config.pooler else None
        self.nsp_head = nn.Linear(d_model, 2) if config.nsp_head else None
        maps = config.stack.n_layers * config.stack.block.attention.n_heads
        self.contact_head = nn.Linear(maps, 1) if config.contact_head else None
        (xavier if config.embed.scaled else normal)(self)
        if self.head is not None and config.tied:
            self.head.weight = self.embed.tokens.weight

    def forward(
        self,
        tokens: Int[Tensor, "B T"],
        segments: Int[Tensor, "B T"] | None = None,
        types: Int[Tensor, "B T"] | None = None,
    ) -> Float[Tensor, "B T V"]:
        """The logits of the token at each position. Raises InputError if it has no head for that.

        Segments: 0 is padding, the texts of a row are numbered from 1 and do not see each other; None where each row
        is one text. Types distinguish the first text of a pair (0) from the second (1), in a model that has both.
        """
        return self.predict_tokens(self.hidden(tokens, segments, types))

    def hidden(
        self,
        tokens: Int[Tensor, "B T"],
        segments: Int[Tensor, "B T"] | None = None,
        types: Int[Tensor, "B T"] | None = None,
    ) -> Float[Tensor, "B T C"]:
        """The hidden state of each token, from which all heads start."""
        positions = positions_of(tokens, segments)
        mask = EVERYONE if segments is None else Mask(segments=(segments, segments))
        types = types if self.config.embed.types > 1 else None
        context = Context(mask=mask, positions=positions)
        x = self.embed(tokens, positions, types)
        if self.config.dropped is not None:
            x = x * token_dropout(tokens, segments, self.config.dropped).to(x.dtype)
        return self.stack(x, context)

    def predict_tokens(self, hidden: Float[Tensor, "*N C"]) -> Float[Tensor, "*N V"]:
        """The logits of every token, from the hidden states of these positions."""
        if self.transform is None or self.head is None:
            raise InputError("this encoder has no head over the vocabulary", fix="mlm_head = true")
        return self.head(self.transform(hidden))

    def pool(self, first: Float[Tensor, "*N C"]) -> Float[Tensor, "*N C"]:
        """One vector of a text, from the hidden state of its first token; a "transform" is applied to any token."""
        if self.pooler is None:
            raise InputError("this encoder has no pooler", fix="pooler = true")
        pooled = self.pooler(first)
        match self.config.pooler_kind:
            case "tanh":
                return pooled.tanh()
            case "relu":
                return pooled.relu()
            case "transform":
                return pooled

    def next_sentence(self, first: Float[Tensor, "N C"]) -> Float[Tensor, "N 2"]:
        """The logits of a pair of texts, from the hidden state of its first token: 0 that the second follows the
        first, 1 that it does not (Devlin et al. 2019, section 3.1, task 2)."""
        if self.nsp_head is None:
            raise InputError("this encoder has no head for pairs", fix="nsp_head = true")
        return self.nsp_head(self.pool(first))

    def predict_contacts(self, weights: Float[Tensor, "B A T T"]) -> Float[Tensor, "B R R"]:
        """The logit of each two residues of a protein that they touch, from all layers' and heads' attention weights
        over it and the tokens around it (Rao et al. 2021, section 3.2)."""
        if self.contact_head is None:
            raise InputError("this encoder has no head for contacts", fix="contact_head = true")
        maps = weights[:, :, 1:-1, 1:-1]
        return self.contact_head(product_corrected(maps + maps.mT).movedim(1, -1))[..., 0]


def _pooler(config: EncoderConfig) -> nn.Module:
    if config.pooler_kind == "transform":
        return Transform(config.d_model, config.stack.block)
    return nn.Linear(config.d_model, config.d_model)
