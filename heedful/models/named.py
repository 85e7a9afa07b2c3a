"""Presets by name, for making a model without a recipe."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from heedful.core.config import from_json, to_json, unknown_key
from heedful.errors import InputError
from heedful.models.counts import VOCABULARY
from heedful.models.decision import DECISIONS, DecisionSize, decision_config
from heedful.models.fold import FOLDS, FoldSize, fold_config
from heedful.models.presets import (
    ENCODERS,
    LANGUAGE_MODELS,
    PAINTERS,
    TRANSLATORS,
    EncoderSize,
    LMSize,
    encoder_config,
    lm_config,
    translator_config,
)
from heedful.models.speech_presets import (
    SOUND_CLASSIFIERS,
    SPEECH,
    SoundClassifierSize,
    SpeechSize,
    classifier_config,
    speech_config,
)
from heedful.models.vectors import VECTORS, VectorsSize, vectors_config
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

ALL: tuple[Mapping[str, Any], ...] = (
    TRANSLATORS,
    LANGUAGE_MODELS,
    PAINTERS,
    ENCODERS,
    VISION_TRANSFORMERS,
    PAIRS,
    SEGMENTERS,
    DETECTORS,
    VECTORS,
    DECISIONS,
    SPEECH,
    SOUND_CLASSIFIERS,
    FOLDS,
    DESCRIBERS,
)
PRESETS: Mapping[str, Any] = MappingProxyType({name: row for rows in ALL for name, row in rows.items()})
NOTHING: Mapping[str, object] = MappingProxyType({})


def preset(
    name: str,
    *,
    vocab_size: int | None = None,
    n_classes: int | None = None,
    changes: Mapping[str, object] = NOTHING,
) -> Any:
    """The configuration of the model that `heed info NAME` describes, with some fields of the preset's row changed.

    A translator has one vocabulary for both sides. Raises InputError for an unknown name or field, and for an argument
    that the family does not use, such as `n_classes` for a language model.
    """
    if name not in PRESETS:
        raise unknown_key(name, [*PRESETS], where="preset")
    row = PRESETS[name]
    row = from_json(type(row), to_json(row) | dict(changes), where=f"preset {name}")
    of_classes = isinstance(row, ViTSize | SegformerSize | DetrSize | SoundClassifierSize)
    unused, value = ("n_classes", n_classes)
    if of_classes or (isinstance(row, DecisionSize | FoldSize) and value is None):
        unused, value = ("vocab_size", vocab_size)
    if value is not None:
        raise InputError(f"{unused}={value} is not used by {name}", where="preset", fix=f"leave out {unused}")
    match row:
        case LMSize():
            return lm_config(row, vocab_size=vocab_size)
        case EncoderSize():
            return encoder_config(row, vocab_size=vocab_size)
        case ViTSize():
            return vit_config(row, n_classes=n_classes)
        case ClipSize():
            return clip_config(row, vocab_size=vocab_size)
        case SegformerSize():
            return segformer_config(row, n_classes=n_classes)
        case DetrSize():
            return detr_config(row, n_classes=n_classes)
        case SoundClassifierSize():
            return classifier_config(row, n_classes=n_classes)
        case SpeechSize():
            return speech_config(row, vocab_size=vocab_size)
        case VectorsSize():
            return vectors_config(row, vocab_size=vocab_size or VOCABULARY)
        case DescribeSize():
            return describe_config(row, vocab_size=vocab_size)
        case DecisionSize():
            return decision_config(row)
        case FoldSize():
            return fold_config(row)
        case _:
            size = vocab_size or VOCABULARY
            return translator_config(row, source_vocab=size, target_vocab=size, joint=True)
