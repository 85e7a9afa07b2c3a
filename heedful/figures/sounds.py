"""Figures of the families that turn speech into text."""

from heedful.figures.sequences import NEXT
from heedful.figures.stacks import Sizes, embedding, head, named, softmax, stack
from heedful.look.architecture import Add, Architecture, Column, Link, Part, Repeat
from heedful.models.speech import CTCConfig, SpeechToTextConfig


def _encoder(config: SpeechToTextConfig | CTCConfig, sizes: Sizes) -> tuple[Part | Repeat, ...]:
    C, encoder = config.d_model, config.encoder
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
    C, V = config.d_model, config.target.vocab_size
    encoder = Column(title="Encoder", reads=f"frames of {config.encoder.mels} mel bands", parts=_encoder(config, sizes))
    decoder = Column(
        title="Decoder",
        reads="tokens so far",
        parts=(
            *embedding(config.target, C, sizes, "target"),
            *stack(config.decoder, C, sizes, "decoder", causal=True),
            head("Linear", C, V, sizes.of("head"), "tied to the embedding"),
            softmax(""),
        ),
        gives=NEXT,
    )
    return Architecture(
        title=title,
        parameters=sizes.total,
        columns=(encoder, decoder),
        links=(Link("Encoder", "cross", "keys, values"),),
        notes=("One matrix is the embedding and the output.",),
    )


def ctc(config: CTCConfig, title: str, sizes: Sizes) -> Architecture:
    """Graves et al. 2006, with the encoder of Radford et al. 2023."""
    column = Column(
        title="Encoder",
        reads=f"frames of {config.encoder.mels} mel bands",
        parts=(
            *_encoder(config, sizes),
            head("Linear", config.d_model, config.vocab_size, sizes.of("head")),
            softmax(""),
        ),
        gives="what each moment says: a token, or nothing",
    )
    return Architecture(title=title, parameters=sizes.total, columns=(column,))
