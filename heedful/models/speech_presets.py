"""Presets of models of speech and other sounds, a style and a size each, as in `heedful.models.presets`."""

from dataclasses import dataclass, replace
from typing import Literal

from heedful.core.attention import AttentionConfig
from heedful.core.block import BlockConfig, StackConfig
from heedful.core.embed import EmbedConfig
from heedful.models.speech import CTCConfig, SoundEncoderConfig, SpeechClassifierConfig, SpeechToTextConfig


@dataclass(frozen=True, kw_only=True)
class SoundSize:
    """The size of an encoder of sound. Data and recipe replace `positions` by half the frames of a window."""

    d_model: int
    n_heads: int
    encoder_layers: int
    d_ff: int | None = None  # None: four times the width
    mels: int = 80
    positions: int = 1500
    dropout: float = 0.0


@dataclass(frozen=True, kw_only=True)
class SpeechSize(SoundSize):
    """The size of a model that turns speech into text. Data replace `vocab_size`."""

    style: Literal["decoder", "ctc"] = "decoder"
    decoder_layers: int = 0
    vocab_size: int = 51865
    context_length: int = 448  # tokens of a target


@dataclass(frozen=True, kw_only=True)
class SoundClassifierSize(SoundSize):
    """The size of a classifier of sounds. Data replace `n_classes`."""

    n_classes: int = 10


def whisper_size(n_layers: int, d_model: int, n_heads: int) -> SpeechSize:
    """A row of table 1 of Radford et al. 2023."""
    return SpeechSize(d_model=d_model, n_heads=n_heads, encoder_layers=n_layers, decoder_layers=n_layers)


_NANO = SpeechSize(
    d_model=128, n_heads=4, encoder_layers=3, decoder_layers=2, positions=200, vocab_size=300, dropout=0.1
)
SPEECH: dict[str, SpeechSize] = {
    # For words and short sentences, learnt from nothing on a CPU.
    "speech-nano": _NANO,
    "speech-micro": replace(_NANO, d_model=192, encoder_layers=4, decoder_layers=3),
    "ctc-nano": replace(_NANO, style="ctc", encoder_layers=4, decoder_layers=0),
    "whisper-tiny": whisper_size(4, 384, 6),
    "whisper-base": whisper_size(6, 512, 8),
    "whisper-small": whisper_size(12, 768, 12),
    "whisper-medium": whisper_size(24, 1024, 16),
    "whisper-large": whisper_size(32, 1280, 20),
}
SOUND_CLASSIFIERS = {
    "sounds-nano": SoundClassifierSize(d_model=128, n_heads=4, encoder_layers=4, positions=200, dropout=0.1)
}


def _encoder(row: SoundSize, positions: int | None) -> SoundEncoderConfig:
    """For windows of so many positions: pre-norm, without biases of keys (Radford et al. 2023; their code)."""
    attention = AttentionConfig(n_heads=row.n_heads, key_bias=False, dropout=row.dropout)
    block = BlockConfig(
        attention=attention,
        d_ff=row.d_ff or 4 * row.d_model,
        order="pre",
        activation="gelu",
        mlp_dropout=row.dropout,
        dropout=row.dropout,
    )
    return SoundEncoderConfig(
        mels=row.mels,
        context_length=positions or row.positions,
        stack=StackConfig(n_layers=row.encoder_layers, block=block, final_norm=True),
        dropout=row.dropout,
    )


def classifier_config(
    row: SoundClassifierSize, *, n_classes: int | None = None, positions: int | None = None
) -> SpeechClassifierConfig:
    C, encoder = row.d_model, _encoder(row, positions)
    return SpeechClassifierConfig(d_model=C, encoder=encoder, d_projected=C, n_classes=n_classes or row.n_classes)


def speech_config(
    row: SpeechSize, *, vocab_size: int | None = None, positions: int | None = None
) -> SpeechToTextConfig | CTCConfig:
    """The configuration of a model of this size, for windows of so many positions (Radford et al. 2023)."""
    encoder = _encoder(row, positions)
    vocab_size = vocab_size or row.vocab_size
    if row.style == "ctc":
        return CTCConfig(d_model=row.d_model, encoder=encoder, vocab_size=vocab_size)
    target = EmbedConfig(
        vocab_size=vocab_size,
        scaled=False,
        position_embeddings="learned",
        context_length=row.context_length,
        dropout=row.dropout,
    )
    block = encoder.stack.block
    block = replace(block, cross=block.attention)
    decoder = StackConfig(n_layers=row.decoder_layers, block=block, final_norm=True)
    return SpeechToTextConfig(d_model=row.d_model, encoder=encoder, target=target, decoder=decoder)
