"""Every row of the presets is guarded by its parameter count, from a formula written without the code."""

import dataclasses

import pytest
import torch

from heedful.models import make_model
from heedful.models.presets import (
    ENCODERS,
    LANGUAGE_MODELS,
    TRANSLATORS,
    Recurrent,
    Transformer,
    encoder,
    language_model,
    translator,
)


def of_transformer(*, d: int, ff: int, layers: int, vocabularies: int, final_norms: int) -> int:
    """Vaswani et al. 2017: attention is four square maps without bias, the MLP two maps with, a norm two vectors."""
    attention, mlp, norm = 4 * d * d, d * ff + ff + ff * d + d, 2 * d
    encoder = layers * (attention + mlp + 2 * norm)
    decoder = layers * (2 * attention + mlp + 3 * norm)
    return vocabularies * d + encoder + decoder + final_norms * norm


def of_recurrent(*, e: int, n: int, a: int, r: int, source: int, target: int, matrices: int) -> int:
    """Bahdanau et al. 2015, appendix A; torch's gated unit has two biases where one would do."""

    def gated(inputs: int) -> int:
        return 3 * (n * inputs + n * n + 2 * n)

    embeddings = source * e + (target * e if matrices == 2 else 0)
    encoder = 2 * gated(e)
    first = n * n + n
    align = (a * n + a) + a * 2 * n + a
    decoder = gated(e + 2 * n)
    readout = 2 * r * (n + e + 2 * n) + 2 * r
    return embeddings + encoder + first + align + decoder + readout + r * target + target


def count(name: str, source: int, target: int, *, joint: bool) -> int:
    with torch.device("meta"):
        model = make_model(translator(TRANSLATORS[name], source_vocab=source, target_vocab=target, joint=joint))
    return sum(weight.numel() for weight in model.parameters())


JOINT = {  # with the paper's 37,000 tokens for both sides
    "transformer-tiny": ({"d": 128, "ff": 512, "layers": 2, "final_norms": 2}, 5_659_136),
    "transformer-small": ({"d": 256, "ff": 1024, "layers": 3, "final_norms": 2}, 14_993_408),
    "transformer-base": ({"d": 512, "ff": 2048, "layers": 6, "final_norms": 0}, 63_045_632),  # the paper: 65 million
    "transformer-base-pre": ({"d": 512, "ff": 2048, "layers": 6, "final_norms": 2}, 63_047_680),
    "transformer-big": ({"d": 1024, "ff": 4096, "layers": 6, "final_norms": 0}, 214_171_648),  # the paper: 213 million
}


@pytest.mark.parametrize("name", sorted(JOINT))
def test_transformers(name: str) -> None:
    sizes, total = JOINT[name]
    assert of_transformer(**sizes, vocabularies=37_000) == total
    assert count(name, 37_000, 37_000, joint=True) == total
    assert count(name, 900, 700, joint=False) == of_transformer(**sizes, vocabularies=1_600)


RECURRENT = {
    "rnn-small": {"e": 256, "n": 256, "a": 256, "r": 256},
    "rnn-bahdanau": {"e": 620, "n": 1000, "a": 1000, "r": 500},
}


@pytest.mark.parametrize("name", sorted(RECURRENT))
def test_recurrent(name: str) -> None:
    sizes = RECURRENT[name]
    assert count(name, 900, 700, joint=False) == of_recurrent(**sizes, source=900, target=700, matrices=2)
    assert count(name, 900, 900, joint=True) == of_recurrent(**sizes, source=900, target=900, matrices=1)


def test_bahdanau_with_the_papers_vocabularies() -> None:
    total = of_recurrent(**RECURRENT["rnn-bahdanau"], source=30_000, target=30_000, matrices=2)
    assert count("rnn-bahdanau", 30_000, 30_000, joint=False) == total == 80_452_000


def test_every_row_is_guarded() -> None:
    assert set(TRANSLATORS) == set(JOINT) | set(RECURRENT)


@pytest.mark.parametrize("name", sorted(TRANSLATORS))
def test_what_a_row_says_arrives(name: str) -> None:
    row = TRANSLATORS[name]
    config = translator(row, source_vocab=9, target_vocab=9, joint=True)
    if isinstance(row, Recurrent):
        for key, value in dataclasses.asdict(row).items():
            assert getattr(config, key) == value
        assert config.tied
        return
    assert (config.d_model, config.tied) == (row.d_model, "all")
    for stack, layers in ((config.encoder, row.encoder_layers), (config.decoder, row.decoder_layers)):
        block = stack.block
        assert (stack.n_layers, stack.final_norm) == (layers, row.order != "post")
        assert (block.d_ff, block.order, block.dropout) == (row.d_ff, row.order, row.dropout)
        assert block.attention.n_heads == row.n_heads
    assert config.encoder.block.cross is None
    assert config.decoder.block.cross == config.decoder.block.attention
    for embed in (config.source, config.target):
        assert (embed.scaled, embed.places.kind, embed.dropout) == (True, "sinusoidal", row.dropout)


def test_every_field_of_a_row_changes_the_model() -> None:
    """A field that is not passed on is an option that is silently ignored."""
    row = TRANSLATORS["transformer-base"]
    assert isinstance(row, Transformer)
    other = Transformer(
        d_model=64,
        n_heads=2,
        d_ff=32,
        encoder_layers=1,
        decoder_layers=2,
        dropout=0.7,
        attention_dropout=0.6,
        order="pre",
        norm="rms",
        activation="silu",
        gated=True,
    )
    configs = {translator(row, source_vocab=9, target_vocab=9, joint=True)}
    for field in dataclasses.fields(Transformer):
        changed = dataclasses.replace(row, **{field.name: getattr(other, field.name)})
        configs.add(translator(changed, source_vocab=9, target_vocab=9, joint=True))
    assert len(configs) == 1 + len(dataclasses.fields(Transformer))


def of_decoder(*, d: int, layers: int, vocabulary: int, places: int, final_norm: bool) -> int:
    """Radford et al. 2018 and 2019: biases everywhere, learned places, the output is the embedding."""
    attention, mlp, norm = 4 * (d * d + d), 8 * d * d + 5 * d, 2 * d
    return (vocabulary + places) * d + layers * (attention + mlp + 2 * norm) + (norm if final_norm else 0)


GPT = {  # width, layers, vocabulary, places, parameters
    "gpt-1": (768, 12, 40478, 512, 116_534_784),
    "gpt2": (768, 12, 50257, 1024, 124_439_808),
    "gpt2-medium": (1024, 24, 50257, 1024, 354_823_168),
    "gpt2-large": (1280, 36, 50257, 1024, 774_030_080),
    "gpt2-xl": (1600, 48, 50257, 1024, 1_557_611_200),
    "gpt3-small": (768, 12, 50257, 2048, 125_226_240),  # the paper: 125 million
    "gpt3-medium": (1024, 24, 50257, 2048, 355_871_744),  # 350
    "gpt3-large": (1536, 24, 50257, 2048, 760_300_032),  # 760
    "gpt3-xl": (2048, 24, 50257, 2048, 1_315_723_264),  # 1.3 billion
    "gpt3-2.7b": (2560, 32, 50257, 2048, 2_651_553_280),
    "gpt3-6.7b": (4096, 32, 50257, 2048, 6_658_404_352),
    "gpt3-13b": (5120, 40, 50257, 2048, 12_853_386_240),
    "gpt3-175b": (12288, 96, 50257, 2048, 174_604_259_328),
    "gpt-nano": (128, 4, 256, 64, 834_304),
    "gpt-micro": (384, 6, 8000, 256, 13_817_856),
}
LLAMA = {"llama-nano": 771_200, "tinyllama-1.1b": 1_100_048_384}  # the second as published


@pytest.mark.parametrize("name", sorted(LANGUAGE_MODELS))
def test_language_models(name: str) -> None:
    with torch.device("meta"):
        model = make_model(language_model(LANGUAGE_MODELS[name]))
    total = sum(weight.numel() for weight in model.parameters())
    if name in LLAMA:
        assert total == LLAMA[name]
        return
    d, layers, vocabulary, places, expected = GPT[name]
    assert total == expected
    assert of_decoder(d=d, layers=layers, vocabulary=vocabulary, places=places, final_norm=name != "gpt-1") == expected


def of_encoder(*, d: int, layers: int, vocabulary: int, places: int, types: int) -> dict[str, int]:
    """Devlin et al. 2019: biases everywhere, learned places, norms behind each sum; and what each head adds."""
    attention, mlp, norm, square = 4 * (d * d + d), 8 * d * d + 5 * d, 2 * d, d * d + d
    trunk = (vocabulary + places + types) * d + norm + layers * (attention + mlp + 2 * norm)
    return {"trunk": trunk, "words": square + norm + vocabulary, "pooler": square, "pairs": 2 * d + 2}


BERT = {  # width, layers, vocabulary, places, types; parameters with the head for words, and with the pooler alone
    "encoder-tiny": (128, 4, 8000, 128, 2, 1_858_752, 1_850_496),
    "encoder-small": (384, 6, 8000, 256, 2, 13_975_232, 13_966_464),
    "bert-base": (768, 12, 30522, 512, 2, 109_514_298, 109_482_240),  # the paper: 110 million
    "bert-large": (1024, 24, 30522, 512, 2, 335_174_458, 335_141_888),  # 340, and with all heads 336.2
    "roberta-base": (768, 12, 50265, 512, 1, 124_695_897, 124_644_096),  # 125
    "roberta-large": (1024, 24, 50265, 512, 1, 355_410_009, 355_357_696),  # 355
}


@pytest.mark.parametrize("name", sorted(ENCODERS))
def test_encoders(name: str) -> None:
    d, layers, vocabulary, places, types, wordy, pooled = BERT[name]
    parts = of_encoder(d=d, layers=layers, vocabulary=vocabulary, places=places, types=types)
    for heads, expected in (
        ({"words"}, wordy),
        ({"pooler"}, pooled),
        ({"words", "pooler", "pairs"}, sum(parts.values())),
    ):
        with torch.device("meta"):
            flags = {head: head in heads for head in ("words", "pooler", "pairs")}
            model = make_model(encoder(ENCODERS[name], **flags))
        assert sum(weight.numel() for weight in model.parameters()) == expected
        assert parts["trunk"] + sum(parts[head] for head in heads) == expected


def test_what_a_row_of_an_encoder_says_arrives() -> None:
    row = dataclasses.replace(ENCODERS["bert-base"], order="pre", d_ff=7, dropout=0.3, n_heads=3)
    config = encoder(row, vocab_size=11, context=13)
    block = config.stack.block
    assert (block.order, block.d_ff, block.dropout, config.stack.final_norm) == ("pre", 7, 0.3, True)
    assert (block.attention.n_heads, block.attention.dropout, config.embed.dropout) == (3, 0.3, 0.3)
    assert (config.embed.vocab_size, config.embed.places.size) == (11, 13)
    eps = {name: encoder(ENCODERS[name]).embed.norm_eps for name in ("bert-base", "roberta-base")}
    assert eps == {"bert-base": 1e-12, "roberta-base": 1e-5}
