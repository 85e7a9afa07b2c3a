"""Figures of the families that turn speech into text."""

from heedful.figures.sequences import writing
from heedful.figures.stacks import Sizes, head, named, softmax, stack
from heedful.look.architecture import Add, Architecture, Column, Part, Repeat
from heedful.models.speech import CTCConfig, SoundEncoderConfig, SpeechClassifierConfig, SpeechToTextConfig
from heedful.models.wave import WaveEncoderConfig


def _wave_encoder(C: int, encoder: WaveEncoderConfig, sizes: Sizes) -> tuple[Part | Repeat, ...]:
    """Baevski et al. 2020, figure 1."""
    norms = "each frame normed" if encoder.norm == "layer" else "each channel normed over time"
    many = f"{len(encoder.channels)} convolutions, {encoder.channels[-1]:,} channels"
    position = sizes.of("encoder.position")
    return (
        named("Convolutions", "embed", sizes.of("encoder.convolutions", "encoder.norms"), many, norms, "GELU"),
        named("LayerNorm", "norm", sizes.of("encoder.feature_norm")),
        named("Linear", "linear", sizes.of("encoder.features"), f"{encoder.channels[-1]:,} → {C:,}"),
        Add(label="convolution", notes=(f"{encoder.position_kernel} positions", f"{position:,}"), parameters=position),
        *([] if encoder.stack.final_norm else [named("LayerNorm", "norm", sizes.of("encoder.input_norm"))]),
        *stack(encoder.stack, C, sizes, "encoder.stack", causal=False),
    )


def _encoder(C: int, encoder: SoundEncoderConfig | WaveEncoderConfig, sizes: Sizes) -> tuple[Part | Repeat, ...]:
    if isinstance(encoder, WaveEncoderConfig):
        return _wave_encoder(C, encoder, sizes)
    positions = sizes.of("encoder.position_embeddings")
    notes = f"begun as sines, {encoder.context_length:,}", f"{positions:,}"
    return (
        named("Convolution", "embed", sizes.of("encoder.frames"), f"{encoder.mels} → {C:,}, 3 frames"),
        named("Convolution", "embed", sizes.of("encoder.pairs"), f"{C:,} → {C:,}, 3 frames, every second"),
        Add(label="positions", notes=notes, parameters=positions),
        *stack(encoder.stack, C, sizes, "encoder.stack", causal=False),
    )


def speech_to_text(config: SpeechToTextConfig, title: str, sizes: Sizes) -> Architecture:
    """Radford et al. 2023, figure 1."""
    parts = _encoder(config.d_model, config.encoder, sizes)
    encoder = Column(title="Encoder", reads=f"frames of {config.encoder.mels} mel bands", parts=parts)
    return writing(config, encoder, title, sizes, reads="tokens so far", tied=True)


def ctc(config: CTCConfig, title: str, sizes: Sizes) -> Architecture:
    """Graves et al. 2006, with the encoder of Radford et al. 2023 or of Baevski et al. 2020."""
    linear = head("Linear", config.d_model, config.vocab_size, sizes.of("head"))
    return _alone(config, (linear,), "what each moment says: a token, or nothing", title, sizes)


def speech_classifier(config: SpeechClassifierConfig, title: str, sizes: Sizes) -> Architecture:
    C, D = config.d_model, config.d_projected
    mean = head("Linear", C, D, sizes.of("projection"), "then the mean over the sound")
    parts = (mean, head("Linear", D, config.n_classes, sizes.of("head")))
    return _alone(config, parts, "probabilities of the classes", title, sizes)


def _alone(
    config: CTCConfig | SpeechClassifierConfig, heads: tuple[Part, ...], gives: str, title: str, sizes: Sizes
) -> Architecture:
    """An encoder with these heads."""
    encoder = config.encoder
    heard = "samples" if isinstance(encoder, WaveEncoderConfig) else f"frames of {encoder.mels} mel bands"
    parts = (*_encoder(config.d_model, encoder, sizes), *heads, softmax(""))
    column = Column(title="Encoder", reads=heard, parts=parts, gives=gives)
    return Architecture(title=title, parameters=sizes.total, columns=(column,))
