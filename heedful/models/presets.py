"""Presets are style times size: a style function says what makes a family, a row says how big its member is.

Each row is guarded by its parameter count (`tests/models/test_presets.py`). A recipe changes a row with
`--set model.KEY=VALUE`, where KEY is a field of the row.
"""

from dataclasses import dataclass
from typing import Literal

from heedful.core.attention import AttentionConfig
from heedful.core.block import BlockConfig, StackConfig
from heedful.core.embed import EmbedConfig, PlacesConfig
from heedful.models.rnn import RNNConfig
from heedful.models.seq2seq import Seq2SeqConfig


@dataclass(frozen=True, kw_only=True)
class Transformer:
    """A row of table 3 of Vaswani et al. 2017."""

    d_model: int
    n_heads: int
    d_ff: int
    encoder_layers: int
    decoder_layers: int
    dropout: float = 0.1
    attention_dropout: float = 0.0
    order: Literal["post", "pre", "sandwich"] = "post"
    norm: Literal["layer", "rms"] = "layer"
    activation: Literal["relu", "gelu", "gelu_tanh", "silu"] = "relu"
    gated: bool = False


@dataclass(frozen=True, kw_only=True)
class Recurrent:
    """Appendix A.2.3 of Bahdanau et al. 2015."""

    d_embed: int
    d_hidden: int
    d_align: int
    d_readout: int
    dropout: float = 0.0


Row = Transformer | Recurrent

TRANSLATORS: dict[str, Row] = {
    "transformer-tiny": Transformer(d_model=128, n_heads=4, d_ff=512, encoder_layers=2, decoder_layers=2, order="pre"),
    "transformer-small": Transformer(
        d_model=256, n_heads=4, d_ff=1024, encoder_layers=3, decoder_layers=3, order="pre"
    ),
    "transformer-base": Transformer(d_model=512, n_heads=8, d_ff=2048, encoder_layers=6, decoder_layers=6),
    "transformer-base-pre": Transformer(
        d_model=512, n_heads=8, d_ff=2048, encoder_layers=6, decoder_layers=6, order="pre"
    ),
    "transformer-big": Transformer(
        d_model=1024, n_heads=16, d_ff=4096, encoder_layers=6, decoder_layers=6, dropout=0.3
    ),
    "rnn-small": Recurrent(d_embed=256, d_hidden=256, d_align=256, d_readout=256, dropout=0.2),
    "rnn-bahdanau": Recurrent(d_embed=620, d_hidden=1000, d_align=1000, d_readout=500),
}


def translator(row: Row, *, source_vocab: int, target_vocab: int, joint: bool) -> Seq2SeqConfig | RNNConfig:
    """The configuration of a translator of this size. `joint`: both sides share one vocabulary, and its matrix."""
    if isinstance(row, Transformer):
        return vaswani(row, source_vocab=source_vocab, target_vocab=target_vocab, joint=joint)
    return RNNConfig(
        source_vocab=source_vocab,
        target_vocab=target_vocab,
        d_embed=row.d_embed,
        d_hidden=row.d_hidden,
        d_align=row.d_align,
        d_readout=row.d_readout,
        dropout=row.dropout,
        tied=joint,
    )


def vaswani(row: Transformer, *, source_vocab: int, target_vocab: int, joint: bool) -> Seq2SeqConfig:
    """Sinusoidal places, scaled embeddings that are also the output matrix, no biases in attention."""
    attention = AttentionConfig(n_heads=row.n_heads, bias=False, dropout=row.attention_dropout)

    def stack(n_layers: int, cross: AttentionConfig | None) -> StackConfig:
        block = BlockConfig(
            attention=attention,
            cross=cross,
            d_ff=row.d_ff,
            order=row.order,
            norm=row.norm,
            activation=row.activation,
            gated=row.gated,
            dropout=row.dropout,
        )
        return StackConfig(n_layers=n_layers, block=block, final_norm=row.order != "post")

    def embed(vocab_size: int) -> EmbedConfig:
        return EmbedConfig(vocab_size=vocab_size, places=PlacesConfig(kind="sinusoidal"), dropout=row.dropout)

    return Seq2SeqConfig(
        d_model=row.d_model,
        source=embed(source_vocab),
        target=embed(target_vocab),
        encoder=stack(row.encoder_layers, None),
        decoder=stack(row.decoder_layers, attention),
        tied="all" if joint else "output",
    )
