"""A preset is a style and a size: a function per style defines a family, a row the size of a member.

Each row is checked by its parameter count (`tests/models/test_presets.py`). A recipe changes a row with
`--set model.KEY=VALUE`, where KEY is a field of the row.
"""

from dataclasses import dataclass, replace
from typing import Literal

from heedful.core.attention import AttentionConfig
from heedful.core.block import BlockConfig
from heedful.core.embed import EmbedConfig
from heedful.core.experts import ExpertsConfig
from heedful.core.sparsity import Sparsity
from heedful.errors import InputError
from heedful.models.decoder_only import DecoderOnlyTranslatorConfig
from heedful.models.encoder import EncoderConfig
from heedful.models.lm import LMConfig
from heedful.models.positions import FIXED, Positions, embedded, stack_of, taking_turns
from heedful.models.rnn import RNNConfig
from heedful.models.seq2seq import Seq2SeqConfig
from heedful.models.seq2seq_presets import Seq2SeqSize, bart_config, seq2seq_size, t5_config


@dataclass(frozen=True, kw_only=True)
class _Layers(Sparsity):
    """The layers of the Transformer."""

    d_model: int
    n_heads: int
    d_ff: int
    dropout: float = 0.1
    attention_dropout: float = 0.0
    order: Literal["post", "pre", "sandwich"] = "post"
    norm: Literal["layer", "rms"] = "layer"
    activation: Literal["relu", "gelu", "gelu_tanh", "silu"] = "relu"
    gated: bool = False
    position: Positions = "sinusoidal"
    context_length: int = 512  # where positions are learned: how many


@dataclass(frozen=True, kw_only=True)
class TransformerSize(_Layers):
    """A row of table 3 of Vaswani et al. 2017."""

    encoder_layers: int
    decoder_layers: int


@dataclass(frozen=True, kw_only=True)
class DecoderOnlySize(_Layers):
    """One stack for source and target (Liu et al. 2018, section 4.2.3), with the Transformer's own layers."""

    n_layers: int
    input_loss: float = 1.0
    prefix: bool = False
    compress: int | None = None  # in every second layer keys and values of so many tokens become one
    experts: int | None = None  # as in `LMSize`
    experts_used: int = 2
    experts_balance: float = 0.01


@dataclass(frozen=True, kw_only=True)
class RNNSize:
    """Appendix A.2.3 of Bahdanau et al. 2015."""

    d_embed: int
    d_hidden: int
    d_align: int
    d_readout: int
    dropout: float = 0.0
    attention: bool = True  # False: one vector for the whole sentence, and `d_align` is not used


@dataclass(frozen=True, kw_only=True)
class LMSize(Sparsity):
    """A language model's size. Data and recipe replace the published `vocab_size` and `context_length`."""

    style: Literal["gpt1", "gpt2", "llama"] = "gpt2"
    n_layers: int
    d_model: int
    n_heads: int
    vocab_size: int = 50257
    context_length: int = 1024
    d_ff: int | None = None  # None: four times the width
    kv_heads: int | None = None
    activation: Literal["gelu", "gelu_tanh", "silu"] | None = None  # None: as published
    dropout: float = 0.0
    tied: bool = True
    position: Positions | None = None  # None: as published
    compress: int | None = None  # in every second layer keys and values of so many tokens become one
    experts: int | None = None  # so many MLPs of width `d_ff` in place of one, of which a token uses `experts_used`
    experts_used: int = 2
    experts_balance: float = 0.01  # weight of the loss that keeps them equally busy


@dataclass(frozen=True, kw_only=True)
class EncoderSize(Sparsity):
    """An encoder's size. Data and recipe replace the published `vocab_size` and `context_length`."""

    style: Literal["bert", "roberta", "modern"] = "bert"
    n_layers: int
    d_model: int
    n_heads: int
    vocab_size: int = 30522
    context_length: int = 512
    d_ff: int | None = None  # None: four times the width
    order: Literal["post", "pre", "sandwich"] = "post"
    dropout: float = 0.1
    position: Positions | None = None  # None: as published


TranslatorSize = TransformerSize | Seq2SeqSize | DecoderOnlySize | RNNSize


def t_dmca_size(experts: int | None = None) -> DecoderOnlySize:
    return DecoderOnlySize(d_model=512, n_heads=8, d_ff=2048, n_layers=5, block=256, compress=3, experts=experts)


TRANSLATORS: dict[str, TranslatorSize] = {
    "transformer-tiny": TransformerSize(
        d_model=128, n_heads=4, d_ff=512, encoder_layers=2, decoder_layers=2, order="pre"
    ),
    "transformer-small": TransformerSize(
        d_model=256, n_heads=4, d_ff=1024, encoder_layers=3, decoder_layers=3, order="pre"
    ),
    # Kasai et al. 2021, section 3: as many layers, but one of them in the decoder, which alone runs for every token.
    "transformer-deep-shallow": TransformerSize(
        d_model=256, n_heads=4, d_ff=1024, encoder_layers=6, decoder_layers=1, order="pre"
    ),
    "transformer-deep-shallow-base": TransformerSize(
        d_model=512, n_heads=8, d_ff=2048, encoder_layers=12, decoder_layers=1, order="pre"
    ),
    "transformer-base": TransformerSize(d_model=512, n_heads=8, d_ff=2048, encoder_layers=6, decoder_layers=6),
    "transformer-base-pre": TransformerSize(
        d_model=512, n_heads=8, d_ff=2048, encoder_layers=6, decoder_layers=6, order="pre"
    ),
    "transformer-big": TransformerSize(
        d_model=1024, n_heads=16, d_ff=4096, encoder_layers=6, decoder_layers=6, dropout=0.3
    ),
    "decoder-tiny": DecoderOnlySize(d_model=128, n_heads=4, d_ff=512, n_layers=2, order="pre"),
    "decoder-small": DecoderOnlySize(d_model=256, n_heads=4, d_ff=1024, n_layers=3, order="pre"),
    "decoder-base": DecoderOnlySize(d_model=512, n_heads=8, d_ff=2048, n_layers=6),
    # Liu et al. 2018, section 4.2.4: five layers, local and memory-compressed by turns; and its numbers of experts.
    "t-dmca-tiny": DecoderOnlySize(d_model=128, n_heads=4, d_ff=512, n_layers=3, order="pre", block=64, compress=3),
    "t-dmca": t_dmca_size(),
    "t-dmca-moe-128": t_dmca_size(experts=128),
    "t-dmca-moe-256": t_dmca_size(experts=256),
    "marian": seq2seq_size("marian", 512, 8, 2048, 6),  # the size of OPUS-MT (Tiedemann and Thottingal 2020)
    "bart-base": seq2seq_size("bart", 768, 12, 3072, 6),  # Lewis et al. 2020
    "bart-large": seq2seq_size("bart", 1024, 16, 4096, 12),
    "t5-small": seq2seq_size("t5", 512, 8, 2048, 6),  # Raffel et al. 2020
    "t5-base": seq2seq_size("t5", 768, 12, 3072, 12),
    "t5-large": seq2seq_size("t5", 1024, 16, 4096, 24),
    "t5-v1.1-small": seq2seq_size("t5-v1.1", 512, 6, 1024, 8),
    "t5-v1.1-base": seq2seq_size("t5-v1.1", 768, 12, 2048, 12),
    "t5-v1.1-large": seq2seq_size("t5-v1.1", 1024, 16, 2816, 24),
    "rnn-small": RNNSize(d_embed=256, d_hidden=256, d_align=256, d_readout=256, dropout=0.2),
    "rnn-plain": RNNSize(d_embed=256, d_hidden=256, d_align=256, d_readout=256, dropout=0.2, attention=False),
    "rnn-bahdanau": RNNSize(d_embed=620, d_hidden=1000, d_align=1000, d_readout=500),
}


def translator_config(
    row: TranslatorSize, *, source_vocab: int, target_vocab: int, joint: bool
) -> Seq2SeqConfig | DecoderOnlyTranslatorConfig | RNNConfig:
    """The configuration of a translator of this size. `joint`: both sides share one vocabulary and its matrix. Raises
    InputError where it is False and one stack reads both sides."""
    if isinstance(row, TransformerSize):
        return transformer_config(row, source_vocab=source_vocab, target_vocab=target_vocab, joint=joint)
    if isinstance(row, DecoderOnlySize):
        if not joint:
            what = "a decoder alone reads source and target with one vocabulary"
            raise InputError(what, where="data.joint = false", fix="--set data.joint=true")
        return decoder_only_config(row, vocab_size=source_vocab)
    if isinstance(row, Seq2SeqSize):
        style = bart_config if row.style in ("marian", "bart") else t5_config
        return style(row, source_vocab=source_vocab, target_vocab=target_vocab, joint=joint)
    return RNNConfig(
        source_vocab=source_vocab,
        target_vocab=target_vocab,
        d_embed=row.d_embed,
        d_hidden=row.d_hidden,
        d_align=row.d_align,
        d_readout=row.d_readout,
        dropout=row.dropout,
        tied=joint,
        attention=row.attention,
    )


def transformer_config(row: TransformerSize, *, source_vocab: int, target_vocab: int, joint: bool) -> Seq2SeqConfig:
    """Scaled embeddings that are also the output matrix, no biases in attention."""
    block = _block(row)
    return Seq2SeqConfig(
        d_model=row.d_model,
        source=_embed(row, source_vocab),
        target=_embed(row, target_vocab),
        encoder=stack_of(block, row.encoder_layers, row.position),
        decoder=stack_of(replace(block, cross=block.attention), row.decoder_layers, row.position, causal=True),
        tied="all" if joint else "output",
    )


def decoder_only_config(row: DecoderOnlySize, *, vocab_size: int) -> DecoderOnlyTranslatorConfig:
    """The same without an encoder."""
    block = replace(_block(row), experts=_experts(row))
    stack = taking_turns(stack_of(block, row.n_layers, row.position, causal=not row.prefix), row.compress)
    lm = LMConfig(d_model=row.d_model, embed=_embed(row, vocab_size), stack=stack)
    return DecoderOnlyTranslatorConfig(lm=lm, input_loss=row.input_loss, prefix=row.prefix)


def _embed(row: _Layers, vocab_size: int) -> EmbedConfig:
    return EmbedConfig(
        vocab_size=vocab_size,
        position_embeddings=embedded(row.position),
        context_length=row.context_length,
        dropout=row.dropout,
    )


def _block(row: _Layers) -> BlockConfig:
    return BlockConfig(
        attention=AttentionConfig(n_heads=row.n_heads, bias=False, dropout=row.attention_dropout),
        **vars(row.sparsity),
        d_ff=row.d_ff,
        order=row.order,
        norm=row.norm,
        activation=row.activation,
        gated=row.gated,
        dropout=row.dropout,
    )


def gpt3_size(n_layers: int, d_model: int, n_heads: int) -> LMSize:
    """A row of table 2.1 of Brown et al. 2020. (Every second layer of theirs is sparse; here all are dense.)"""
    return LMSize(n_layers=n_layers, d_model=d_model, n_heads=n_heads, context_length=2048)


LANGUAGE_MODELS: dict[str, LMSize] = {
    # The exact GELU: on a CPU the approximation takes three times as long.
    "gpt-nano": LMSize(n_layers=4, d_model=128, n_heads=4, vocab_size=256, context_length=64, activation="gelu"),
    "gpt-mini": LMSize(
        n_layers=4, d_model=256, n_heads=4, vocab_size=8000, context_length=256, activation="gelu", dropout=0.1
    ),
    "gpt-micro": LMSize(
        n_layers=6, d_model=384, n_heads=6, vocab_size=8000, context_length=256, activation="gelu", dropout=0.1
    ),
    "llama-nano": LMSize(
        style="llama", n_layers=4, d_model=128, n_heads=4, kv_heads=2, d_ff=352, vocab_size=256, context_length=64
    ),
    "gpt-1": LMSize(
        style="gpt1", n_layers=12, d_model=768, n_heads=12, vocab_size=40478, context_length=512, dropout=0.1
    ),
    "gpt2": LMSize(n_layers=12, d_model=768, n_heads=12, dropout=0.1),
    "gpt2-medium": LMSize(n_layers=24, d_model=1024, n_heads=16, dropout=0.1),
    "gpt2-large": LMSize(n_layers=36, d_model=1280, n_heads=20, dropout=0.1),
    "gpt2-xl": LMSize(n_layers=48, d_model=1600, n_heads=25, dropout=0.1),
    "gpt3-small": gpt3_size(12, 768, 12),
    "gpt3-medium": gpt3_size(24, 1024, 16),
    "gpt3-large": gpt3_size(24, 1536, 16),
    # The table prints 24 heads of 128 beside a width of 2048, and 24 x 128 is 3072: only 16 heads make the 1.3 billion.
    "gpt3-xl": gpt3_size(24, 2048, 16),
    "gpt3-2.7b": gpt3_size(32, 2560, 32),
    "gpt3-6.7b": gpt3_size(32, 4096, 32),
    # The table prints a width of 5140 beside 40 heads of 128, which are 5120: 12.85 billion, where it says 13.0.
    "gpt3-13b": gpt3_size(40, 5120, 40),
    "gpt3-175b": gpt3_size(96, 12288, 96),
    # Zhang et al. 2024, table 1: the architecture of LLaMA 2 with grouped heads.
    "tinyllama-1.1b": LMSize(
        style="llama",
        n_layers=22,
        d_model=2048,
        n_heads=32,
        kv_heads=4,
        d_ff=5632,
        vocab_size=32000,
        context_length=2048,
        tied=False,
    ),
    # The layers of T-DMCA (below `TRANSLATORS`), for texts that are longer than a block.
    "t-dmca-nano": LMSize(
        n_layers=5,
        d_model=128,
        n_heads=4,
        vocab_size=256,
        context_length=256,
        activation="gelu",
        block=32,
        compress=3,
    ),
    # Jiang et al. 2024, table 1, made small: a little more work than llama-nano, and four times its MLPs' weights.
    "mixtral-nano": LMSize(
        style="llama",
        n_layers=4,
        d_model=128,
        n_heads=4,
        kv_heads=2,
        d_ff=192,
        experts=8,
        vocab_size=256,
        context_length=64,
    ),
}

# Language models of pixels: 28 x 28 in 16 greys, and those of Chen et al. 2020, section 3.3, 32 x 32 in 512 colours; a
# token more begins a picture.
PAINTERS: dict[str, LMSize] = {
    "image-gpt-nano": LMSize(n_layers=4, d_model=128, n_heads=4, vocab_size=17, context_length=784, activation="gelu"),
    "image-gpt-s": LMSize(n_layers=24, d_model=512, n_heads=8, vocab_size=513),
    "image-gpt-m": LMSize(n_layers=36, d_model=1024, n_heads=8, vocab_size=513),
    "image-gpt-l": LMSize(n_layers=48, d_model=1536, n_heads=16, vocab_size=513),
}


def lm_config(row: LMSize, *, vocab_size: int | None = None, context_length: int | None = None) -> LMConfig:
    """The configuration of a language model of this size.

    "gpt1": post-norm (Radford et al. 2018); "gpt2": pre-norm (Radford et al. 2019); "llama": rotary positions, RMSNorm,
    a gated MLP, no biases (Touvron et al. 2023). GPT's GELU is the tanh approximation. With fixed position vectors,
    which none of them has, tokens are scaled as in the Transformer, or they would drown in those.
    """
    llama = row.style == "llama"
    position = row.position or ("rotary" if llama else "learned")
    dropout = 0.0 if llama else row.dropout  # of the embeddings, and of attention weights
    block = BlockConfig(
        attention=AttentionConfig(n_heads=row.n_heads, kv_heads=row.kv_heads, bias=not llama, dropout=dropout),
        **vars(row.sparsity),
        d_ff=row.d_ff or 4 * row.d_model,
        order="post" if row.style == "gpt1" else "pre",
        norm="rms" if llama else "layer",
        activation=row.activation or ("silu" if llama else "gelu_tanh"),
        gated=llama,
        bias=not llama,
        experts=_experts(row),
        dropout=row.dropout,
    )
    embed = EmbedConfig(
        vocab_size=vocab_size or row.vocab_size,
        scaled=position in FIXED,
        position_embeddings=embedded(position),
        context_length=context_length or row.context_length,
        dropout=dropout,
    )
    stack = taking_turns(stack_of(block, row.n_layers, position, causal=True), row.compress)
    return LMConfig(d_model=row.d_model, embed=embed, stack=stack, tied=row.tied)


def _experts(row: LMSize | DecoderOnlySize) -> ExpertsConfig | None:
    if row.experts is None:
        return None
    return ExpertsConfig(number=row.experts, used=row.experts_used, balance=row.experts_balance)


def modern_size(n_layers: int, d_model: int, n_heads: int, d_ff: int) -> EncoderSize:
    size = EncoderSize(n_layers=n_layers, d_model=d_model, n_heads=n_heads, d_ff=d_ff)
    return replace(size, style="modern", order="pre", vocab_size=8000, context_length=256, dropout=0.0)


ENCODERS: dict[str, EncoderSize] = {
    "encoder-tiny": EncoderSize(n_layers=4, d_model=128, n_heads=4, vocab_size=8000, context_length=128),
    "encoder-small": EncoderSize(n_layers=6, d_model=384, n_heads=6, vocab_size=8000, context_length=256),
    "modern-tiny": modern_size(4, 192, 6, 512),
    "modern-small": modern_size(6, 384, 6, 1024),
    "bert-base": EncoderSize(n_layers=12, d_model=768, n_heads=12),
    "bert-large": EncoderSize(n_layers=24, d_model=1024, n_heads=16),
    "roberta-base": EncoderSize(style="roberta", n_layers=12, d_model=768, n_heads=12, vocab_size=50265),
    "roberta-large": EncoderSize(style="roberta", n_layers=24, d_model=1024, n_heads=16, vocab_size=50265),
}

# What texts are classified by; and what reads and writes with a vocabulary each.
READERS: dict[str, LMSize | EncoderSize] = {**LANGUAGE_MODELS, **ENCODERS}
PARSERS: dict[str, TranslatorSize] = {
    name: row for name, row in TRANSLATORS.items() if not isinstance(row, DecoderOnlySize)
}


def encoder_config(
    row: EncoderSize,
    *,
    vocab_size: int | None = None,
    context_length: int | None = None,
    mlm_head: bool = True,
    pooler: bool = False,
    nsp_head: bool = False,
) -> EncoderConfig:
    """The configuration of an encoder of this size, with these heads.

    "bert": two types of token, for the texts of a pair (Devlin et al. 2019); "roberta": one, since its rows are not
    pairs (Liu et al. 2019). Their norms differ in epsilon, and their GELU is the exact one. "modern": rotary positions,
    a gated MLP, and no biases (Warner et al. 2024, section 2.1.1), which learns to use its context much earlier. With
    fixed position vectors, which none of them has, tokens are scaled as in `lm_config`.
    """
    modern = row.style == "modern"
    eps = 1e-12 if row.style == "bert" else 1e-5
    position = row.position or ("rotary" if modern else "learned")
    block = BlockConfig(
        attention=AttentionConfig(n_heads=row.n_heads, bias=not modern, dropout=row.dropout),
        **vars(row.sparsity),
        d_ff=row.d_ff or 4 * row.d_model,
        order=row.order,
        norm_eps=eps,
        activation="gelu",
        gated=modern,
        bias=not modern,
        dropout=row.dropout,
    )
    embed = EmbedConfig(
        vocab_size=vocab_size or row.vocab_size,
        scaled=position in FIXED,
        position_embeddings=embedded(position),
        context_length=context_length or row.context_length,
        types=1 if row.style == "roberta" else 2,
        norm_eps=eps,
        dropout=row.dropout,
    )
    stack = stack_of(block, row.n_layers, position)
    return EncoderConfig(
        d_model=row.d_model, embed=embed, stack=stack, mlm_head=mlm_head, pooler=pooler, nsp_head=nsp_head
    )
