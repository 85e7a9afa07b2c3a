"""The recurrent translator that attention was invented for (Bahdanau, Cho and Bengio 2015): a bidirectional GRU
encoder, and a GRU decoder that looks back at it before each word; and its predecessor, whose decoder gets only the
encoder's last state (Cho et al. 2014).

B batch, S source tokens, T target tokens, E embedding width, N hidden width, M width of the memory,
V target vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from heedful.core.attention import masked_softmax
from heedful.core.dropout import Dropout
from heedful.core.embed import Table
from heedful.core.init import xavier
from heedful.errors import InputError


@dataclass(frozen=True, kw_only=True)
class RNNConfig:
    source_vocab: int
    target_vocab: int
    d_embed: int = 620
    d_hidden: int = 1000
    d_align: int = 1000
    d_readout: int = 500
    dropout: float = 0.0  # of embeddings and readout; the paper has none
    tied: bool = False  # one embedding matrix for source and target
    attention: bool = True  # False: the encoder reads once, from start to end, and its last state is all that is known


class Keys(NamedTuple):
    """What the decoder attends to: the encoder's states, their projection (computed once), and which are not
    padding."""

    states: Float[Tensor, "B S M"]
    projected: Float[Tensor, "B S A"]
    valid: Bool[Tensor, "B S"]

    def pick(self, rows: Int[Tensor, "R"]) -> "Keys":
        return Keys(self.states[rows], self.projected[rows], self.valid[rows])


class AdditiveAttention(nn.Module):
    """score(q, k) = v' tanh(W q + U k) (Bahdanau et al. 2015, appendix A.1.2)."""

    def __init__(self, d_query: int, d_key: int, d_align: int) -> None:
        super().__init__()
        self.query = nn.Linear(d_query, d_align)
        self.key = nn.Linear(d_key, d_align, bias=False)
        self.score = nn.Linear(d_align, 1, bias=False)

    def keys(self, states: Float[Tensor, "B S M"], valid: Bool[Tensor, "B S"]) -> Keys:
        return Keys(states, self.key(states), valid)

    def forward(self, query: Float[Tensor, "B N"], keys: Keys) -> Float[Tensor, "B M"]:
        """The context."""
        return (self.weights(query, keys)[:, 0] @ keys.states)[:, 0]

    def asks(self, query: Float[Tensor, "B N"], keys: Keys) -> tuple[int, int]:
        """One head, and one query at a time."""
        return 1, 1

    def weights(
        self,
        query: Float[Tensor, "B N"],
        keys: Keys,
        *,
        heads: Sequence[int] | None = None,
        queries: Sequence[int] | None = None,
    ) -> Float[Tensor, "B 1 1 S"]:
        """The weights of the context; there is only one vector to choose."""
        scores = self.score(torch.tanh(self.query(query)[:, None] + keys.projected)).mT  # (B, 1, S)
        return masked_softmax(scores, keys.valid[:, None])[:, None]


class ThoughtVector(nn.Module):
    """Instead of attention, the same vector at every step: the encoder's state after the last word (Cho et al. 2014,
    section 2.2; Sutskever et al. 2014, section 2). The keys of a sentence are this one vector."""

    def keys(self, states: Float[Tensor, "B S N"], valid: Bool[Tensor, "B S"]) -> Keys:
        rows, last = torch.arange(len(states), device=states.device), valid.sum(1) - 1
        vector = states[rows, last][:, None]
        return Keys(vector, vector[..., :0], torch.ones_like(valid[:, :1]))

    def forward(self, query: Float[Tensor, "B N"], keys: Keys) -> Float[Tensor, "B N"]:
        """The context, whatever the query."""
        return keys.states[:, 0]


@dataclass(frozen=True)
class RNNState:
    hidden: Float[Tensor, "B N"]
    keys: Keys

    def pick(self, rows: Int[Tensor, "R"]) -> "RNNState":
        return RNNState(self.hidden[rows], self.keys.pick(rows))


class RNN(nn.Module):
    """The model of section 3. Its gated units are torch's, which reset U h where the paper resets h (A.1.1)."""

    packs = False  # a recurrent state runs through the whole row, so a row is one sentence

    def __init__(self, config: RNNConfig) -> None:
        super().__init__()
        if config.tied and config.source_vocab != config.target_vocab:
            sizes = f"{config.source_vocab} and {config.target_vocab} tokens"
            raise InputError(f"vocabularies of {sizes} cannot share a matrix", fix="tied = false")
        self.config = config
        E, N = config.d_embed, config.d_hidden
        M = 2 * N if config.attention else N  # of what is looked at
        self.source = Table(config.source_vocab, E)
        self.target = self.source if config.tied else Table(config.target_vocab, E)
        self.encoder = nn.GRU(E, N, batch_first=True, bidirectional=config.attention)
        self.first = nn.Linear(N, N)
        self.attention = AdditiveAttention(N, M, config.d_align) if config.attention else ThoughtVector()
        self.cell = nn.GRUCell(E + M, N)
        self.readout = nn.Linear(N + E + M, 2 * config.d_readout)
        self.head = nn.Linear(config.d_readout, config.target_vocab)
        self.dropout = Dropout(config.dropout)
        xavier(self)
        for gru in (self.encoder, self.cell):
            for name, weight in gru.named_parameters():
                if "bias" in name:
                    nn.init.zeros_(weight)
                else:
                    nn.init.xavier_uniform_(weight)

    def forward(
        self,
        source: Int[Tensor, "B S"],
        target: Int[Tensor, "B T"],
        source_segments: Int[Tensor, "B S"] | None = None,
        target_segments: Int[Tensor, "B T"] | None = None,
    ) -> Float[Tensor, "B T V"]:
        """The logits of the token that follows each target token. A row is one sentence: segments are 1, or 0 for
        padding, which comes last."""
        return self.head(self.hidden(source, target, source_segments, target_segments))

    def hidden(
        self,
        source: Int[Tensor, "B S"],
        target: Int[Tensor, "B T"],
        source_segments: Int[Tensor, "B S"] | None = None,
        target_segments: Int[Tensor, "B T"] | None = None,
    ) -> Float[Tensor, "B T R"]:
        """The hidden states that `head` turns into logits."""
        state = self.start(source, source_segments)
        words = self.dropout(self.target(target))
        hidden, contexts = [], []
        for word in words.unbind(1):
            context, state = self._advance(word, state)
            hidden.append(state.hidden)
            contexts.append(context)
        return self._readout(torch.stack(hidden, 1), words, torch.stack(contexts, 1))

    def start(self, source: Int[Tensor, "B S"], segments: Int[Tensor, "B S"] | None = None) -> RNNState:
        valid = torch.ones_like(source, dtype=torch.bool) if segments is None else segments > 0
        lengths = valid.sum(1).cpu()
        words = pack_padded_sequence(self.dropout(self.source(source)), lengths, batch_first=True, enforce_sorted=False)
        states = pad_packed_sequence(self.encoder(words)[0], batch_first=True, total_length=source.shape[1])[0]
        keys = self.attention.keys(states, valid)
        # What has read the whole sentence: the backward state at its first word, or the thought vector.
        whole = states[:, 0, self.config.d_hidden :] if self.config.attention else keys.states[:, 0]
        return RNNState(torch.tanh(self.first(whole)), keys)

    def step(self, tokens: Int[Tensor, "B"], state: RNNState) -> tuple[Float[Tensor, "B V"], RNNState]:
        """The logits of what follows `tokens`, the newest of each row."""
        word = self.dropout(self.target(tokens))
        context, state = self._advance(word, state)
        return self.head(self._readout(state.hidden, word, context)), state

    def _advance(self, word: Float[Tensor, "B E"], state: RNNState) -> tuple[Float[Tensor, "B M"], RNNState]:
        """c_i from s_(i-1) and the encoder's states; then s_i from s_(i-1), y_(i-1) and c_i (section 3.1)."""
        context = self.attention(state.hidden, state.keys)
        hidden = self.cell(torch.cat([word, context], dim=-1), state.hidden)
        return context, replace(state, hidden=hidden)

    def _readout(self, hidden: Tensor, word: Tensor, context: Tensor) -> Float[Tensor, "*B R"]:
        """g(y_(i-1), s_i, c_i) of equation 4 as one maxout layer (appendix A.2.2, where s_(i-1) is printed)."""
        both = self.readout(torch.cat([hidden, word, context], dim=-1))
        return self.dropout(both.unflatten(-1, (-1, 2)).amax(dim=-1))
