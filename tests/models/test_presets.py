"""Every row of the presets is guarded by its parameter count: from a formula written without the code, and where
Hugging Face has the family, by theirs."""

import dataclasses
from typing import Any

import pytest
import torch
from torch import nn
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    MarianConfig,
    MarianMTModel,
    T5Config,
    T5ForConditionalGeneration,
)

from heedful.core.init import uninitialised
from heedful.errors import InputError
from heedful.models import make_model
from heedful.models.presets import (
    ENCODERS,
    LANGUAGE_MODELS,
    PAINTERS,
    TRANSLATORS,
    DecoderOnlySize,
    RNNSize,
    TransformerSize,
    decoder_only_config,
    encoder_config,
    lm_config,
    translator_config,
)
from heedful.models.seq2seq_presets import Seq2SeqSize
from heedful.verbs.info import describe


def of_transformer(
    *, d: int, ff: int, layers: int, vocabularies: int, final_norms: int, decoder_layers: int | None = None
) -> int:
    """Vaswani et al. 2017: attention is four square maps without bias, the MLP two maps with, a norm two vectors."""
    attention, mlp, norm = 4 * d * d, d * ff + ff + ff * d + d, 2 * d
    encoder = layers * (attention + mlp + 2 * norm)
    decoder = (decoder_layers or layers) * (2 * attention + mlp + 3 * norm)
    return vocabularies * d + encoder + decoder + final_norms * norm


def of_decoder_only(*, d: int, ff: int, layers: int, vocabulary: int, final_norms: int) -> int:
    """Liu et al. 2018: the same without the encoder and what looks at it."""
    attention, mlp, norm = 4 * d * d, d * ff + ff + ff * d + d, 2 * d
    return vocabulary * d + layers * (attention + mlp + 2 * norm) + final_norms * norm


def of_recurrent(*, e: int, n: int, a: int, r: int, source: int, target: int, matrices: int) -> int:
    """Bahdanau et al. 2015, appendix A; torch's gated unit has two biases where one would do. Without an alignment
    (a = 0), Cho et al. 2014: one direction, whose last state is given to each step."""

    def gated(inputs: int) -> int:
        return 3 * (n * inputs + n * n + 2 * n)

    embeddings = source * e + (target * e if matrices == 2 else 0)
    directions = 2 if a else 1
    encoder = directions * gated(e)
    first = n * n + n
    align = (a * n + a) + a * 2 * n + a
    decoder = gated(e + directions * n)
    readout = 2 * r * (n + e + directions * n) + 2 * r
    return embeddings + encoder + first + align + decoder + readout + r * target + target


def count(name: str, source: int, target: int, *, joint: bool) -> int:
    with torch.device("meta"), uninitialised():
        model = make_model(translator_config(TRANSLATORS[name], source_vocab=source, target_vocab=target, joint=joint))
    return sum(weight.numel() for weight in model.parameters())


JOINT = {  # with the paper's 37,000 tokens for both sides
    "transformer-tiny": ({"d": 128, "ff": 512, "layers": 2, "final_norms": 2}, 5_659_136),
    "transformer-small": ({"d": 256, "ff": 1024, "layers": 3, "final_norms": 2}, 14_993_408),
    "transformer-deep-shallow": (
        {"d": 256, "ff": 1024, "layers": 6, "decoder_layers": 1, "final_norms": 2},
        15_256_832,
    ),
    "transformer-deep-shallow-base": (
        {"d": 512, "ff": 2048, "layers": 12, "decoder_layers": 1, "final_norms": 2},
        60_950_016,
    ),
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


ALONE = {  # with the same tokens
    "decoder-tiny": ({"d": 128, "ff": 512, "layers": 2, "final_norms": 1}, 5_131_776),
    "decoder-small": ({"d": 256, "ff": 1024, "layers": 3, "final_norms": 1}, 11_838_720),
    "decoder-base": ({"d": 512, "ff": 2048, "layers": 6, "final_norms": 0}, 37_846_016),
}


@pytest.mark.parametrize("name", sorted(ALONE))
def test_decoders_alone(name: str) -> None:
    sizes, total = ALONE[name]
    assert of_decoder_only(**sizes, vocabulary=37_000) == total
    assert count(name, 37_000, 37_000, joint=True) == total == describe(name)["parameters"]


COMPRESSED = {
    "t-dmca-tiny": ({"d": 128, "ff": 512, "layers": 3, "final_norms": 1}, 1),
    "t-dmca": ({"d": 512, "ff": 2048, "layers": 5, "final_norms": 0}, 1),
    "t-dmca-moe-128": ({"d": 512, "ff": 2048, "layers": 5, "final_norms": 0}, 128),
    "t-dmca-moe-256": ({"d": 512, "ff": 2048, "layers": 5, "final_norms": 0}, 256),
}


@pytest.mark.parametrize("name", sorted(COMPRESSED))
def test_memory_compressed(name: str) -> None:
    """Every second layer has two convolutions of kernel 3; each layer as many MLPs as experts, and their router."""
    sizes, experts = COMPRESSED[name]
    d, ff, layers = sizes["d"], sizes["ff"], sizes["layers"]
    total = of_decoder_only(**sizes, vocabulary=37_000) + layers // 2 * 2 * (3 * d * d + d)
    if experts > 1:
        total += layers * ((experts - 1) * (2 * d * ff + ff + d) + experts * d)
    assert count(name, 37_000, 37_000, joint=True) == total == describe(name)["parameters"]
    row = TRANSLATORS[name]
    assert isinstance(row, DecoderOnlySize)
    pattern = decoder_only_config(row, vocab_size=9).lm.stack.layers
    assert [(layer.block, layer.compress) for layer in pattern] == [(row.block, None), (None, 3)] * (layers // 2) + [
        (row.block, None)
    ]


@pytest.mark.parametrize("size", ["tiny", "small", "base"])
def test_a_decoder_alone_has_three_sevenths_of_the_weights(size: str) -> None:
    """An encoder's layer has 12 d^2 weights, a decoder's 16 d^2, a layer of the decoder alone 12 d^2: 12/28, without
    the embeddings. The paper says "almost half" of the parameters are gone."""
    row, other = TRANSLATORS[f"decoder-{size}"], TRANSLATORS[f"transformer-{size}"]
    assert isinstance(row, DecoderOnlySize)
    assert isinstance(other, TransformerSize)
    assert (row.n_layers, row.d_model) == (other.encoder_layers, other.d_model)
    words = 37_000
    without = [
        count(f"{kind}-{size}", words, words, joint=True) - words * row.d_model for kind in ("decoder", "transformer")
    ]
    assert without[0] / without[1] == pytest.approx(3 / 7, abs=1e-3)
    assert round(without[0] / without[1], 2) == 0.43


def test_a_decoder_alone_has_one_vocabulary() -> None:
    with pytest.raises(InputError, match=r"data\.joint = false: a decoder alone reads source and target with one"):
        translator_config(TRANSLATORS["decoder-tiny"], source_vocab=9, target_vocab=9, joint=False)


RECURRENT = {
    "rnn-small": {"e": 256, "n": 256, "a": 256, "r": 256},
    "rnn-plain": {"e": 256, "n": 256, "a": 0, "r": 256},
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


def of(layers: int, heads: int, ff: int, width: int) -> dict[str, Any]:
    """Sizes in the words of BartConfig and MarianConfig."""
    sizes = {"layers": layers, "attention_heads": heads, "ffn_dim": ff}
    both = {f"{side}_{key}": value for side in ("encoder", "decoder") for key, value in sizes.items()}
    return both | {"d_model": width}


def of_t5(layers: int, heads: int, ff: int, width: int) -> dict[str, Any]:
    return {"num_layers": layers, "num_heads": heads, "d_ff": ff, "d_model": width}


# Sizes, and how many parameters the published models have. A bias on the logits is no parameter there, and one here;
# BART's two tables of places have two rows there that nothing looks up.
PUBLISHED: dict[str, tuple[str, dict[str, Any], int]] = {
    "marian": ("marian", of(6, 8, 2048, 512), 73_886_208),
    "bart-base": ("bart", of(6, 12, 3072, 768), 139_420_416),
    "bart-large": ("bart", of(12, 16, 4096, 1024), 406_291_456),
    "t5-small": ("t5", of_t5(6, 8, 2048, 512), 60_506_624),
    "t5-base": ("t5", of_t5(12, 12, 3072, 768), 222_903_552),
    "t5-large": ("t5", of_t5(24, 16, 4096, 1024), 737_668_096),
    "t5-v1.1-small": ("t5", of_t5(8, 6, 1024, 512), 76_961_152),
    "t5-v1.1-base": ("t5", of_t5(12, 12, 2048, 768), 247_577_856),
    "t5-v1.1-large": ("t5", of_t5(24, 16, 2816, 1024), 783_150_080),
}


NEWER = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}


def theirs_of(family: str, sizes: dict[str, Any], *, newer: bool) -> nn.Module:
    with torch.device("meta"), uninitialised():
        match family:
            case "marian":
                return MarianMTModel(MarianConfig(**sizes, vocab_size=58101, pad_token_id=58100))
            case "bart":
                return BartForConditionalGeneration(BartConfig(**sizes))
            case _:
                theirs = T5ForConditionalGeneration(T5Config(**sizes, **(NEWER if newer else {})))
                if newer:  # which their class parts only when it reads a file
                    theirs.lm_head = nn.Linear(sizes["d_model"], 32128, bias=False)
                return theirs


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_families_of_the_hub(name: str) -> None:
    family, sizes, total = PUBLISHED[name]
    vocabulary = {"marian": 58101, "bart": 50265, "t5": 32128}[family]
    theirs = theirs_of(family, sizes, newer="v1.1" in name)
    learned = [part for part in theirs.parameters() if part.requires_grad]  # sines are not
    assert sum(part.numel() for part in learned) == total
    bias, unused = 0 if family == "t5" else vocabulary, 4 * sizes["d_model"] if family == "bart" else 0
    assert count(name, vocabulary, vocabulary, joint=True) == total + bias - unused


def test_every_row_is_guarded() -> None:
    assert set(TRANSLATORS) == set(JOINT) | set(ALONE) | set(COMPRESSED) | set(RECURRENT) | set(PUBLISHED)


@pytest.mark.parametrize("name", sorted(TRANSLATORS))
def test_what_a_row_says_arrives(name: str) -> None:
    row = TRANSLATORS[name]
    config = translator_config(row, source_vocab=9, target_vocab=9, joint=True)
    if isinstance(row, RNNSize):
        for key, value in dataclasses.asdict(row).items():
            assert getattr(config, key) == value
        assert config.tied
        return
    if isinstance(row, Seq2SeqSize):
        return
    if isinstance(row, DecoderOnlySize):
        assert (config.lm.d_model, config.lm.tied) == (row.d_model, True)
        assert (config.input_loss, config.prefix) == (1.0, False)
        stacks, embeds = [(config.lm.stack, row.n_layers)], [config.lm.embed]
        assert config.lm.stack.block.cross is None
    else:
        assert (config.d_model, config.tied) == (row.d_model, "all")
        stacks, embeds = [(config.encoder, row.encoder_layers)], [config.source, config.target]
        stacks.append((config.decoder, row.decoder_layers))
        assert config.encoder.block.cross is None
        assert config.decoder.block.cross == config.decoder.block.attention
    for stack, layers in stacks:
        block = stack.block
        assert (stack.n_layers, stack.final_norm) == (layers, row.order != "post")
        assert (block.d_ff, block.order, block.dropout) == (row.d_ff, row.order, row.dropout)
        assert block.attention.n_heads == row.n_heads
    for embed in embeds:
        assert (embed.scaled, embed.position_embeddings, embed.dropout) == (True, "sinusoidal", row.dropout)


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_vocabularies_of_their_own(name: str) -> None:
    """Then the target's matrix is the output's, or none is another's."""
    config = translator_config(TRANSLATORS[name], source_vocab=9, target_vocab=8, joint=False)
    assert (config.source.vocab_size, config.target.vocab_size) == (9, 8)
    assert config.tied == ("none" if "v1.1" in name else "output")


@pytest.mark.parametrize("name", ["bart-base", "t5-small"])
def test_every_field_of_a_later_row_changes_the_model(name: str) -> None:
    row = TRANSLATORS[name]
    assert isinstance(row, Seq2SeqSize)
    other = {"d_model": 96, "n_heads": 4, "head_dim": 5, "d_ff": 32, "encoder_layers": 1, "decoder_layers": 2}
    other |= {"dropout": 0.7, **({"context_length": 7} if row.style == "bart" else {"style": "t5-v1.1"})}
    rows = [row, *(dataclasses.replace(row, **{key: value}) for key, value in other.items())]
    configs = {translator_config(each, source_vocab=9, target_vocab=9, joint=True) for each in rows}
    assert len(configs) == 1 + len(other)


def test_only_learned_places_have_a_last_one() -> None:
    for name, context in (("t5-small", 7), ("marian", 7), ("bart-base", None)):
        with pytest.raises(InputError, match=f"context_length = {context} in the style of"):
            dataclasses.replace(TRANSLATORS[name], context_length=context)


ROW = TRANSLATORS["decoder-base"]
LAYERS = {"encoder_layers": 1, "decoder_layers": 2}
OTHER = {
    "d_model": 64,
    "n_heads": 2,
    "d_ff": 32,
    "dropout": 0.7,
    "attention_dropout": 0.6,
    "order": "pre",
    "norm": "rms",
    "activation": "silu",
    "gated": True,
    "position": "shaw",
    "context_length": 7,
    "window": 3,
    "dilation": 2,
    "block": 4,
    "stride": 5,
    "global_tokens": 2,
}
EXPERTS = {"experts": 3, "experts_used": 1, "experts_balance": 0.5}


@pytest.mark.parametrize(
    ("row", "other"),
    [
        (dataclasses.replace(TRANSLATORS["transformer-base"], window=9), OTHER | LAYERS),
        (
            dataclasses.replace(ROW, input_loss=0.0, window=9, experts=4),
            OTHER | EXPERTS | {"n_layers": 1, "input_loss": 0.5, "prefix": True, "compress": 3},
        ),
    ],
)
def test_every_field_of_a_row_changes_the_model(
    row: TransformerSize | DecoderOnlySize, other: dict[str, object]
) -> None:
    """A field that is not passed on is an option that is silently ignored."""
    assert set(other) == {field.name for field in dataclasses.fields(row)}
    configs = {translator_config(row, source_vocab=9, target_vocab=9, joint=True)}
    for name, value in other.items():
        changed = dataclasses.replace(row, **{name: value})
        configs.add(translator_config(changed, source_vocab=9, target_vocab=9, joint=True))
    assert len(configs) == 1 + len(other)


def of_decoder(*, d: int, layers: int, vocabulary: int, places: int, final_norm: bool) -> int:
    """Radford et al. 2018 and 2019: biases everywhere, learned positions, the output is the embedding."""
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
    "gpt-mini": (256, 4, 8000, 256, 5273088),
    "gpt-micro": (384, 6, 8000, 256, 13_817_856),
    "image-gpt-nano": (128, 4, 17, 784, 895_872),
    "image-gpt-s": (512, 24, 513, 1024, 76_445_184),  # the paper: 76 million
    "image-gpt-m": (1024, 36, 513, 1024, 455_040_000),  # 455 million
    "image-gpt-l": (1536, 48, 513, 1024, 1_362_276_864),  # 1.4 billion
}
OTHERS = {
    "llama-nano": 771_200,
    "tinyllama-1.1b": 1_100_048_384,  # as published
    # Embeddings; of 4 layers the attention, the router, 8 gated experts and two norms; the last norm.
    # Of each layer the attention, with biases, and the MLP and two norms; of two of the five two convolutions of three.
    "t-dmca-nano": 512 * 128 + 5 * (4 * 128 * 129 + 8 * 128**2 + 9 * 128) + 4 * (3 * 128**2 + 128) + 2 * 128,
    "mixtral-nano": 256 * 128 + 4 * (3 * 128**2 + 128 * 8 + 8 * 3 * 128 * 192 + 2 * 128) + 128,
}


@pytest.mark.parametrize("name", sorted(LANGUAGE_MODELS | PAINTERS))
def test_language_models(name: str) -> None:
    with torch.device("meta"), uninitialised():
        model = make_model(lm_config((LANGUAGE_MODELS | PAINTERS)[name]))
    total = sum(weight.numel() for weight in model.parameters())
    if name in OTHERS:
        assert total == OTHERS[name]
        return
    d, layers, vocabulary, places, expected = GPT[name]
    assert total == expected
    assert of_decoder(d=d, layers=layers, vocabulary=vocabulary, places=places, final_norm=name != "gpt-1") == expected


def of_encoder(*, d: int, layers: int, vocabulary: int, places: int, types: int) -> dict[str, int]:
    """Devlin et al. 2019: biases everywhere, learned positions, norms behind each sum; and what each head adds."""
    attention, mlp, norm, square = 4 * (d * d + d), 8 * d * d + 5 * d, 2 * d, d * d + d
    trunk = (vocabulary + places + types) * d + norm + layers * (attention + mlp + 2 * norm)
    return {"trunk": trunk, "mlm_head": square + norm + vocabulary, "pooler": square, "nsp_head": 2 * d + 2}


BERT = {  # width, layers, vocabulary, places, types; parameters with the head for words, and with the pooler alone
    "encoder-tiny": (128, 4, 8000, 128, 2, 1_858_752, 1_850_496),
    "encoder-small": (384, 6, 8000, 256, 2, 13_975_232, 13_966_464),
    "bert-base": (768, 12, 30522, 512, 2, 109_514_298, 109_482_240),  # the paper: 110 million
    "bert-large": (1024, 24, 30522, 512, 2, 335_174_458, 335_141_888),  # 340, and with all heads 336.2
    "roberta-base": (768, 12, 50265, 512, 1, 124_695_897, 124_644_096),  # 125
    "roberta-large": (1024, 24, 50265, 512, 1, 355_410_009, 355_357_696),  # 355
}


@pytest.mark.parametrize("name", sorted(BERT))
def test_encoders(name: str) -> None:
    d, layers, vocabulary, places, types, wordy, pooled = BERT[name]
    parts = of_encoder(d=d, layers=layers, vocabulary=vocabulary, places=places, types=types)
    for heads, expected in (
        ({"mlm_head"}, wordy),
        ({"pooler"}, pooled),
        ({"mlm_head", "pooler", "nsp_head"}, sum(parts.values())),
    ):
        with torch.device("meta"), uninitialised():
            flags = {head: head in heads for head in ("mlm_head", "pooler", "nsp_head")}
            model = make_model(encoder_config(ENCODERS[name], **flags))
        assert sum(weight.numel() for weight in model.parameters()) == expected
        assert parts["trunk"] + sum(parts[head] for head in heads) == expected


@pytest.mark.parametrize(
    ("name", "width", "layers", "inner"), [("modern-tiny", 192, 4, 512), ("modern-small", 384, 6, 1024)]
)
def test_modern_encoders(name: str, width: int, layers: int, inner: int) -> None:
    """No biases but those of norms and heads, no table of places; and no other encoder is without a test."""
    assert ENCODERS.keys() == BERT.keys() | {"modern-tiny", "modern-small"}
    with torch.device("meta"), uninitialised():
        model = make_model(encoder_config(ENCODERS[name], mlm_head=False))
    layer = 4 * width**2 + 3 * width * inner + 4 * width
    expected = (8000 + 2) * width + 2 * width + layers * layer + 2 * width
    assert sum(weight.numel() for weight in model.parameters()) == expected


def test_what_a_row_of_an_encoder_says_arrives() -> None:
    row = dataclasses.replace(ENCODERS["bert-base"], order="pre", d_ff=7, dropout=0.3, n_heads=3)
    config = encoder_config(row, vocab_size=11, context_length=13)
    block = config.stack.block
    assert (block.order, block.d_ff, block.dropout, config.stack.final_norm) == ("pre", 7, 0.3, True)
    assert (block.attention.n_heads, block.attention.dropout, config.embed.dropout) == (3, 0.3, 0.3)
    assert (config.embed.vocab_size, config.embed.context_length) == (11, 13)
    eps = {name: encoder_config(ENCODERS[name]).embed.norm_eps for name in ("bert-base", "roberta-base")}
    assert eps == {"bert-base": 1e-12, "roberta-base": 1e-5}
