"""Figures of the families that read text: translators, language models, encoders, and classifiers on them."""

from heedful.figures.stacks import Sizes, embedding, head, named, softmax, stack
from heedful.look.architecture import Architecture, Beside, Box, Column, Link, Part, Repeat
from heedful.models.classifier import ClassifierConfig
from heedful.models.decoder_only import DecoderOnlyTranslatorConfig
from heedful.models.encoder import EncoderConfig
from heedful.models.image_to_text import ImageToTextConfig
from heedful.models.lm import LMConfig
from heedful.models.seq2seq import Seq2SeqConfig
from heedful.models.speech import SpeechToTextConfig
from heedful.models.token_classifier import TokenClassifierConfig

NEXT = "probabilities of the next token"


def seq2seq(config: Seq2SeqConfig, title: str, sizes: Sizes) -> Architecture:
    """Figure 1 of Vaswani et al. 2017."""
    joint, tied = config.tied in ("all", "inputs"), config.tied in ("all", "output")
    d_model, vocab = config.d_model, config.target.vocab_size
    encoder = Column(
        title="Encoder",
        reads="source tokens",
        parts=(
            *embedding(config.source, d_model, sizes, "source"),
            *stack(config.encoder, d_model, sizes, "encoder", causal=False),
        ),
    )
    scaled = "of input / √d_model" if config.scaled_output else ""
    output = head("Linear", d_model, vocab, sizes.of("head"), scaled, "tied to the embedding" if tied else "")
    decoder = Column(
        title="Decoder",
        reads="target tokens, shifted right",
        parts=(
            *embedding(config.target, d_model, sizes, "target", shared="the encoder's" if joint else ""),
            *stack(config.decoder, d_model, sizes, "decoder", causal=True),
            output,
            softmax(""),
        ),
        gives=NEXT,
    )
    shared = {
        "all": "One matrix is the embedding of source and target and the output.",
        "output": "One matrix is the embedding of the target and the output.",
        "inputs": "One matrix is the embedding of source and target.",
        "none": "No matrix is shared.",
    }
    return Architecture(
        title=title,
        parameters=sizes.total,
        columns=(encoder, decoder),
        links=(Link("Encoder", "cross", "keys, values"),),
        notes=(shared[config.tied],),
    )


def writing(
    config: SpeechToTextConfig | ImageToTextConfig, encoder: Column, title: str, sizes: Sizes, *, reads: str, tied: bool
) -> Architecture:
    """A decoder that looks at what is encoded, which is no text."""
    C, V = config.d_model, config.target.vocab_size
    decoder = Column(
        title="Decoder",
        reads=reads,
        parts=(
            *embedding(config.target, C, sizes, "target"),
            *stack(config.decoder, C, sizes, "decoder", causal=True),
            head("Linear", C, V, sizes.of("head"), "tied to the embedding" if tied else ""),
            softmax(""),
        ),
        gives=NEXT,
    )
    return Architecture(
        title=title,
        parameters=sizes.total,
        columns=(encoder, decoder),
        links=(Link("Encoder", "cross", "keys, values"),),
        notes=tied_note(tied),
    )


def lm_parts(config: LMConfig, sizes: Sizes, at: str = "") -> tuple[Part | Repeat, ...]:
    embed = embedding(config.embed, config.d_model, sizes, f"{at}embed")
    return (*embed, *stack(config.stack, config.d_model, sizes, f"{at}stack", causal=True))


def lm_head(config: LMConfig, sizes: Sizes, at: str = "") -> Box:
    tied = "tied to the embedding" if config.tied else ""
    return head("Linear", config.d_model, config.embed.vocab_size, sizes.of(f"{at}head"), tied)


def tied_note(tied: bool) -> tuple[str, ...]:
    return ("One matrix is the embedding and the output.",) if tied else ()


def lm(config: LMConfig, title: str, sizes: Sizes) -> Architecture:
    """Figure 1 of Radford et al. 2018, the language model."""
    parts = (*lm_parts(config, sizes), lm_head(config, sizes), softmax(""))
    column = Column(title="Language model", reads="tokens", parts=parts, gives=NEXT)
    return Architecture(title=title, parameters=sizes.total, columns=(column,), notes=tied_note(config.tied))


def decoder_only(config: DecoderOnlyTranslatorConfig, title: str, sizes: Sizes) -> Architecture:
    """One stack that reads the source and the target as one sequence (Liu et al. 2018, section 4.2.3)."""
    parts = (*lm_parts(config.lm, sizes, "lm."), lm_head(config.lm, sizes, "lm."), softmax(""))
    column = Column(title="Decoder alone", reads="source, δ, target so far", parts=parts, gives=NEXT)
    seen = "the source sees all of itself" if config.prefix else "every token sees those before it"
    return Architecture(
        title=title,
        parameters=sizes.total,
        columns=(column,),
        notes=(f"Source and target are one sequence: {seen}.", *tied_note(config.lm.tied)),
    )


def encoder_body(config: EncoderConfig, sizes: Sizes, at: str = "") -> tuple[Part | Repeat, ...]:
    embed = embedding(config.embed, config.d_model, sizes, f"{at}embed")
    return (*embed, *stack(config.stack, config.d_model, sizes, f"{at}stack", causal=False))


def encoder_heads(config: EncoderConfig, sizes: Sizes, at: str = "", pooled: str = "first token") -> tuple[Box, ...]:
    block = config.stack.block
    d_model, tied = config.d_model, "tied to the embedding" if config.tied else ""
    made = []
    if config.mlm_head:
        size = sizes.of(f"{at}transform", f"{at}head")
        widths = f"{d_model:,} → {d_model:,} → {config.embed.vocab_size:,}"
        made.append(named("Masked tokens", "linear", size, widths, tied, name="mlm"))
    if config.pooler:
        says = f"{d_model:,} → {d_model:,}"
        after = f"{block.activation}, norm" if config.pooler_kind == "transform" else config.pooler_kind
        made.append(named(f"Pooler, {pooled}", "linear", sizes.of(f"{at}pooler"), says, after, name="pooler"))
    if config.nsp_head:
        made.append(head("Next sentence?", d_model, 2, sizes.of(f"{at}nsp_head"), "of the pooler"))
    return tuple(made)


def encoder(config: EncoderConfig, title: str, sizes: Sizes) -> Architecture:
    """Devlin et al. 2019, figure 3 left, with the pre-training heads (figure 1)."""
    heads = encoder_heads(config, sizes)
    above = (Beside(boxes=heads),) if len(heads) > 1 else heads
    gives = "the token at each masked position" if config.mlm_head else "a vector for each token"
    column = Column(title="Encoder", reads="tokens", parts=(*encoder_body(config, sizes), *above), gives=gives)
    return Architecture(
        title=title, parameters=sizes.total, columns=(column,), notes=tied_note(config.mlm_head and config.tied)
    )


def classifier(config: ClassifierConfig, title: str, sizes: Sizes) -> Architecture:
    """A body and a linear classifier of one of its positions (Radford et al. 2018, figure 1; Devlin et al. 2019, figure
    4), or of their mean."""
    answers = config.answers or 1
    if config.lm is not None:
        parts: tuple[Part | Repeat, ...] = lm_parts(config.lm, sizes, "lm.")
        left: tuple[Box, ...] = (lm_head(config.lm, sizes, "lm."),)
        read = "of the last token"
        name, d_model = "Language model", config.lm.d_model
    else:
        assert config.encoder is not None
        parts = encoder_body(config.encoder, sizes, "encoder.")
        left = encoder_heads(config.encoder, sizes, "encoder.", "mean of all" if config.mean else "first token")
        read = "of their mean" if config.mean else "of the first token"
        name, d_model = "Encoder", config.encoder.d_model
    says = "of each choice" if config.answers is None else ""
    own = head("Classifier", d_model, answers, sizes.of("out"), read, says)
    pooled = [box for box in left if box.name == "pooler"]
    unused = [box for box in left if box.name != "pooler" and box.parameters]
    above: tuple[Part, ...] = (*pooled, Beside(boxes=(own, *unused)) if unused else own)
    gives = "a score of each choice" if config.answers is None else "logits of the answers"
    column = Column(title=name, reads="tokens", parts=(*parts, *above), gives=gives)
    return Architecture(title=title, parameters=sizes.total, columns=(column,))


def token_classifier(config: TokenClassifierConfig, title: str, sizes: Sizes) -> Architecture:
    """Devlin et al. 2019, figure 4 d."""
    own = head("Classifier", config.encoder.d_model, config.answers, sizes.of("out"), "of each token")
    left = encoder_heads(config.encoder, sizes, "encoder.", "each token" if config.pools else "first token")
    pooled = [box for box in left if box.name == "pooler" and config.pools]
    unused = tuple(box for box in left if box not in pooled and box.parameters)
    above: tuple[Part, ...] = (*pooled, Beside(boxes=(own, *unused)) if unused else own)
    column = Column(
        title="Encoder",
        reads="tokens",
        parts=(*encoder_body(config.encoder, sizes, "encoder."), *above),
        gives="logits of the answers, token by token",
    )
    return Architecture(title=title, parameters=sizes.total, columns=(column,))
