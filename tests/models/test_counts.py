"""What is said of a model's size without making one is what its parameters add up to."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from heedful.core.init import uninitialised
from heedful.models import KINDS, kind_of_config, make_model
from heedful.models.actor_critic import ActorCriticConfig
from heedful.models.classifier import ClassifierConfig
from heedful.models.counts import PARAMETERS, VOCABULARY
from heedful.models.decision import DECISIONS, DecisionTransformerConfig, decision_config
from heedful.models.evoformer import EvoformerConfig
from heedful.models.fold import FOLDS, FoldSize, fold_config
from heedful.models.presets import (
    ENCODERS,
    LANGUAGE_MODELS,
    PAINTERS,
    TRANSLATORS,
    DecoderOnlySize,
    EncoderSize,
    LMSize,
    RNNSize,
    TransformerSize,
    encoder_config,
    lm_config,
    translator_config,
)
from heedful.models.resnet import ResNetConfig
from heedful.models.seq2seq_presets import Seq2SeqSize
from heedful.models.speech import CTCConfig, SpeechClassifierConfig
from heedful.models.speech_presets import SOUND_CLASSIFIERS, SPEECH, SpeechSize, classifier_config, speech_config
from heedful.models.token_classifier import TokenClassifierConfig
from heedful.models.vectors import VECTORS, VectorsConfig, vectors_config
from heedful.models.vision_presets import (
    DESCRIBERS,
    DETECTORS,
    PAIRS,
    SEGMENTERS,
    VISION_TRANSFORMERS,
    ClipSize,
    DescribeSize,
    DetrSize,
    SegformerSize,
    ViTSize,
    clip_config,
    describe_config,
    detr_config,
    segformer_config,
    vit_config,
)
from heedful.models.wave import WaveEncoderConfig
from heedful.run.folder import parameters, read_saved, write_model
from heedful.verbs.info import describe, presets

V, C, H, L = 11, 8, 2, 3  # vocabulary, width, heads, layers


def config_of_preset(name: str) -> Any:
    if name in TRANSLATORS:
        return translate(TRANSLATORS[name], VOCABULARY)
    if name in (language_models := LANGUAGE_MODELS | PAINTERS):
        return lm_config(language_models[name])
    if name in ENCODERS:
        return encoder_config(ENCODERS[name])
    if name in VISION_TRANSFORMERS:
        return vit_config(VISION_TRANSFORMERS[name])
    if name in PAIRS:
        return clip_config(PAIRS[name])
    if name in VECTORS:
        return vectors_config(VECTORS[name], vocab_size=VOCABULARY)
    if name in DECISIONS:
        return decision_config(DECISIONS[name])
    if name in FOLDS:
        return fold_config(FOLDS[name])
    if name in SEGMENTERS:
        return segformer_config(SEGMENTERS[name])
    if name in DESCRIBERS:
        return describe_config(DESCRIBERS[name])
    if name in SPEECH:
        return speech_config(SPEECH[name])
    if name in SOUND_CLASSIFIERS:
        return classifier_config(SOUND_CLASSIFIERS[name])
    return detr_config(DETECTORS[name])


def translate(row: Any, vocabulary: int = V) -> Any:
    return translator_config(row, source_vocab=vocabulary, target_vocab=vocabulary, joint=True)


def count(config: Any) -> int:
    with torch.device("meta"), uninitialised():
        return sum(weight.numel() for weight in make_model(config).parameters())


@pytest.mark.parametrize("name", sorted(PARAMETERS))
def test_a_preset_has_as_many_as_is_said(name: str) -> None:
    assert describe(name)["parameters"] == PARAMETERS[name] == count(config_of_preset(name))


def test_every_preset_is_counted() -> None:
    assert presets().keys() == PARAMETERS.keys()


TRANSFORMER = TransformerSize(d_model=C, n_heads=H, d_ff=5, encoder_layers=L, decoder_layers=L)
DECODER = DecoderOnlySize(d_model=C, n_heads=H, d_ff=5, n_layers=L)
LANGUAGE = LMSize(n_layers=L, d_model=C, n_heads=H, vocab_size=V, context_length=7)
ENCODER = EncoderSize(n_layers=L, d_model=C, n_heads=H, vocab_size=V, context_length=7)
PICTURES = ViTSize(d_model=C, n_layers=L, n_heads=H, patch=2, size=8, n_classes=3, readout="mean")
RESNET = ResNetConfig(widths=(8, 8), depths=(1, 1), kind="basic", stem=8, norm="group")
WAVES = WaveEncoderConfig(
    channels=(4, 6),
    kernels=(3, 2),
    strides=(2, 2),
    position_kernel=3,
    position_groups=2,
    stack=lm_config(LANGUAGE).stack,
)
SMALLEST: list[Any] = [
    translate(TRANSFORMER),
    translate(DECODER),
    *(
        translate(
            Seq2SeqSize(
                style=style,  # type: ignore[arg-type]
                d_model=C,
                n_heads=H,
                d_ff=5,
                encoder_layers=1,
                decoder_layers=1,
                context_length=9 if style == "bart" else None,
            )
        )
        for style in ("marian", "bart", "t5", "t5-v1.1")
    ),
    translate(RNNSize(d_embed=4, d_hidden=4, d_align=4, d_readout=4)),
    *(lm_config(replace(LANGUAGE, style=style)) for style in ("gpt1", "gpt2", "llama")),  # type: ignore[arg-type]
    lm_config(replace(LANGUAGE, tied=False)),
    *(encoder_config(replace(ENCODER, style=style)) for style in ("bert", "roberta", "modern")),  # type: ignore[arg-type]
    encoder_config(ENCODER, pooler=True, nsp_head=True),
    ClassifierConfig(lm=lm_config(LANGUAGE), answers=3),
    ClassifierConfig(encoder=encoder_config(ENCODER, mlm_head=False, pooler=True), answers=None),
    TokenClassifierConfig(encoder=encoder_config(ENCODER, mlm_head=False), answers=3),
    vit_config(PICTURES),
    vit_config(replace(PICTURES, window=2)),
    vit_config(replace(PICTURES, window=2, depths=(1,), position_embeddings="none")),
    vit_config(replace(PICTURES, readout="cls", teacher=True, stem=(4,))),
    clip_config(
        ClipSize(
            d_common=4,
            image_width=C,
            image_layers=1,
            image_heads=H,
            patch=4,
            text_width=C,
            text_layers=1,
            text_heads=H,
            size=8,
            vocab_size=V,
            context_length=7,
        )
    ),
    segformer_config(
        SegformerSize(
            widths=(8, 8), depths=(1, 1), heads=(1, 2), patches=(3, 3), strides=(2, 2), shorten=(2, 1), d_head=8
        )
    ),
    describe_config(DescribeSize(d_model=C, n_heads=H, encoder_layers=1, decoder_layers=1, patch=2, size=8)),
    detr_config(DetrSize(backbone=RESNET, d_model=C, n_heads=H, d_ff=5, encoder_layers=1, decoder_layers=1)),
    *(
        speech_config(SpeechSize(style=style, d_model=C, n_heads=H, encoder_layers=1, decoder_layers=1, mels=4))  # type: ignore[arg-type]
        for style in ("decoder", "ctc")
    ),
    CTCConfig(d_model=C, encoder=WAVES, vocab_size=V),
    SpeechClassifierConfig(d_model=C, encoder=WAVES, d_projected=3, n_classes=2),
    ActorCriticConfig(lm=lm_config(LANGUAGE)),
    DecisionTransformerConfig(d_model=C, d_state=3, n_actions=4, longest=5, stack=lm_config(LANGUAGE).stack),
    EvoformerConfig(d_msa=C, d_pair=C, n_heads=H, head_dim=2, d_outer=2, d_product=3, n_layers=1, n_kinds=5),
    fold_config(FoldSize(n_layers=1, d_msa=C, d_pair=C, n_heads=H, head_dim=2, structure_layers=1)),
    *(VectorsConfig(vocab_size=V, d_model=C, method=method) for method in ("cbow", "glove")),  # type: ignore[arg-type]
]


def test_every_kind_has_a_smallest_form() -> None:
    assert {kind_of_config(config) for config in SMALLEST} == KINDS.keys()


@pytest.mark.parametrize("config", SMALLEST, ids=kind_of_config)
def test_a_folder_has_as_many_as_its_model(config: Any, tmp_path: Path) -> None:
    """Matrices that are one are counted once."""
    model = make_model(config)
    write_model(tmp_path, model, parameters(model), {"task.json": {}})
    assert read_saved(tmp_path).parameters == count(config)


# What a scheme adds to a model without one: for each stack, and for each of its layers.
ADDED = {
    "none": (0, 0),
    "sinusoidal": (0, 0),
    "binary": (0, 0),
    "rotary": (0, 0),
    "alibi": (0, 0),
    "buckets": (32 * H, 0),
    "shaw": (0, (2 * 128 + 1) * (C // H)),
}


@pytest.mark.parametrize("window", [None, 3])
@pytest.mark.parametrize("position", [*ADDED, "learned"])
def test_what_positions_and_windows_add(position: str, window: int | None) -> None:
    for n_stacks, row, configured in (
        (2, TRANSFORMER, translate),
        (1, DECODER, translate),
        (1, LANGUAGE, lm_config),
        (1, ENCODER, encoder_config),
    ):
        made, plain = (configured(replace(row, position=each, window=window)) for each in (position, "none"))  # type: ignore[type-var, operator]
        if position == "learned":
            expected = n_stacks * row.context_length * C
        else:
            stack, layer = ADDED[position]
            expected = n_stacks * (stack + L * layer)
        assert count(made) - count(plain) == expected
        assert count(plain) == count(configured(replace(row, position="none")))  # type: ignore[type-var, operator]


@pytest.mark.parametrize("window", [2, 4])
def test_what_windows_of_pictures_add(window: int) -> None:
    """A number for each head and offset inside a window."""
    added = count(vit_config(replace(PICTURES, window=window))) - count(vit_config(PICTURES))
    assert added == L * (2 * window - 1) ** 2 * H
