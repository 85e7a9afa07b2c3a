"""Sizes and styles of the later encoder-decoders: Marian, BART, T5."""

from dataclasses import dataclass, replace
from typing import Literal

from heedful.core.attention import AttentionConfig
from heedful.core.block import BlockConfig, StackConfig
from heedful.core.embed import EmbedConfig
from heedful.errors import InputError
from heedful.models.positions import stack_of
from heedful.models.seq2seq import Seq2SeqConfig

Style = Literal["marian", "bart", "t5", "t5-v1.1"]


@dataclass(frozen=True, kw_only=True)
class Seq2SeqSize:
    """An encoder and a decoder of a later family; everything but its size depends on the style."""

    style: Style
    d_model: int
    n_heads: int
    head_dim: int | None = None  # None: d_model / n_heads
    d_ff: int
    encoder_layers: int
    decoder_layers: int
    context_length: int | None = None  # bart: how many positions there are; the others have no last one
    dropout: float = 0.1

    def __post_init__(self) -> None:
        if (self.style == "bart") != (self.context_length is not None):
            what = f"context_length = {self.context_length!r} in the style of {self.style}"
            raise InputError(what, fix="give it in the style of bart, which learns its positions, and there alone")


def seq2seq_size(style: Style, d_model: int, n_heads: int, d_ff: int, layers: int) -> Seq2SeqSize:
    """A published size: both sides are equally deep, all heads of T5 have a width of 64, BART has 1024 positions."""
    return Seq2SeqSize(
        style=style,
        d_model=d_model,
        n_heads=n_heads,
        head_dim=64 if style in ("t5", "t5-v1.1") else None,
        d_ff=d_ff,
        encoder_layers=layers,
        decoder_layers=layers,
        context_length=1024 if style == "bart" else None,
    )


def bart_config(row: Seq2SeqSize, *, source_vocab: int, target_vocab: int, joint: bool) -> Seq2SeqConfig:
    """Post-norm, with biases in attention and on the logits. "bart": learned positions, a norm of the embeddings, GELU
    (Lewis et al. 2020); "marian": scaled embeddings and sinusoidal positions, sines first, SiLU (Junczys-Dowmunt et al.
    2018)."""
    bart = row.style == "bart"
    dropout = row.dropout if bart else 0.0
    attention = AttentionConfig(n_heads=row.n_heads, head_dim=row.head_dim, dropout=dropout)
    block = BlockConfig(
        attention=attention,
        d_ff=row.d_ff,
        activation="gelu" if bart else "silu",
        mlp_dropout=dropout,
        dropout=row.dropout,
    )
    embed = EmbedConfig(
        vocab_size=source_vocab,
        scaled=not bart,
        position_embeddings="sinusoidal" if row.context_length is None else "learned",
        context_length=row.context_length or 512,
        sines_first=row.context_length is None,
        norm_eps=1e-5 if bart else None,
        dropout=row.dropout,
    )
    return Seq2SeqConfig(
        d_model=row.d_model,
        source=embed,
        target=replace(embed, vocab_size=target_vocab),
        encoder=StackConfig(n_layers=row.encoder_layers, block=block),
        decoder=StackConfig(n_layers=row.decoder_layers, block=replace(block, cross=attention)),
        tied="all" if joint else "output",
        output_bias=True,
        init="normal" if bart else "xavier",
    )


def t5_config(row: Seq2SeqSize, *, source_vocab: int, target_vocab: int, joint: bool) -> Seq2SeqConfig:
    """Pre-norm with RMSNorm, no biases, no scale of the scores, relative positions that all layers share (Raffel et al.
    2020). "t5": the output matrix is that of the embeddings, and its input is scaled; "t5-v1.1": it is a separate
    one, and the MLP is gated, with GELU (Shazeer 2020)."""
    newer = row.style == "t5-v1.1"
    attention = AttentionConfig(n_heads=row.n_heads, head_dim=row.head_dim, scale=1.0, bias=False, dropout=row.dropout)
    block = BlockConfig(
        attention=attention,
        d_ff=row.d_ff,
        order="pre",
        norm="rms",
        norm_eps=1e-6,
        activation="gelu_tanh" if newer else "relu",
        gated=newer,
        bias=False,
        mlp_dropout=row.dropout,
        dropout=row.dropout,
    )
    encoder = stack_of(block, row.encoder_layers, "buckets")
    decoder = stack_of(replace(block, cross=attention), row.decoder_layers, "buckets", causal=True)
    embed = EmbedConfig(vocab_size=source_vocab, scaled=False, position_embeddings="none", dropout=row.dropout)
    return Seq2SeqConfig(
        d_model=row.d_model,
        source=embed,
        target=replace(embed, vocab_size=target_vocab),
        encoder=replace(encoder, dropout=row.dropout),
        decoder=replace(decoder, dropout=row.dropout),
        tied=("inputs" if joint else "none") if newer else ("all" if joint else "output"),
        scaled_output=not newer,
        init="t5",
    )
