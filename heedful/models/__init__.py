"""Floor 2: each family of models as a short assembly on the core."""

from typing import Any

import torch
from torch import nn

from heedful.core.config import from_json, to_json
from heedful.core.init import OTHER_CONFIG, uninitialised
from heedful.errors import InputError
from heedful.models.actor_critic import ActorCritic, ActorCriticConfig
from heedful.models.classifier import Classifier, ClassifierConfig
from heedful.models.clip import CLIP, CLIPConfig
from heedful.models.decision import DecisionTransformer, DecisionTransformerConfig
from heedful.models.decoder_only import DecoderOnlyTranslator, DecoderOnlyTranslatorConfig
from heedful.models.detr import DETR, DETRConfig
from heedful.models.encoder import Encoder, EncoderConfig
from heedful.models.evoformer import Evoformer, EvoformerConfig
from heedful.models.fold import Fold, FoldConfig
from heedful.models.image_to_text import ImageToText, ImageToTextConfig
from heedful.models.lm import LM, LMConfig
from heedful.models.named import PRESETS, preset
from heedful.models.pyramid import Pyramid, PyramidConfig
from heedful.models.rnn import RNN, RNNConfig
from heedful.models.seq2seq import Seq2Seq, Seq2SeqConfig
from heedful.models.speech import (
    CTC,
    CTCConfig,
    SpeechClassifier,
    SpeechClassifierConfig,
    SpeechToText,
    SpeechToTextConfig,
)
from heedful.models.token_classifier import TokenClassifier, TokenClassifierConfig
from heedful.models.vectors import Vectors, VectorsConfig
from heedful.models.vit import ViT, ViTConfig

__all__ = [
    "CLIP",
    "CTC",
    "DETR",
    "KINDS",
    "LM",
    "PRESETS",
    "RNN",
    "ActorCritic",
    "ActorCriticConfig",
    "CLIPConfig",
    "CTCConfig",
    "Classifier",
    "ClassifierConfig",
    "DETRConfig",
    "DecisionTransformer",
    "DecisionTransformerConfig",
    "DecoderOnlyTranslator",
    "DecoderOnlyTranslatorConfig",
    "Encoder",
    "EncoderConfig",
    "Evoformer",
    "EvoformerConfig",
    "Fold",
    "FoldConfig",
    "ImageToText",
    "ImageToTextConfig",
    "LMConfig",
    "Pyramid",
    "PyramidConfig",
    "RNNConfig",
    "Seq2Seq",
    "Seq2SeqConfig",
    "SpeechClassifier",
    "SpeechClassifierConfig",
    "SpeechToText",
    "SpeechToTextConfig",
    "TokenClassifier",
    "TokenClassifierConfig",
    "TranslationModel",
    "Vectors",
    "VectorsConfig",
    "ViT",
    "ViTConfig",
    "config_from",
    "config_of",
    "make_model",
    "model_from",
    "outline",
    "preset",
]

# Models that read a source and write a target.
TranslationModel = Seq2Seq | RNN | DecoderOnlyTranslator

# What a `config.json` may say under "kind".
KINDS: dict[str, tuple[type, Any]] = {
    "seq2seq": (Seq2SeqConfig, Seq2Seq),
    "rnn": (RNNConfig, RNN),
    "lm": (LMConfig, LM),
    "classifier": (ClassifierConfig, Classifier),
    "token_classifier": (TokenClassifierConfig, TokenClassifier),
    "decoder_only_translator": (DecoderOnlyTranslatorConfig, DecoderOnlyTranslator),
    "vit": (ViTConfig, ViT),
    "clip": (CLIPConfig, CLIP),
    "pyramid": (PyramidConfig, Pyramid),
    "detr": (DETRConfig, DETR),
    "encoder": (EncoderConfig, Encoder),
    "decision": (DecisionTransformerConfig, DecisionTransformer),
    "evoformer": (EvoformerConfig, Evoformer),
    "protein_fold": (FoldConfig, Fold),
    "actor_critic": (ActorCriticConfig, ActorCritic),
    "vectors": (VectorsConfig, Vectors),
    "speech_to_text": (SpeechToTextConfig, SpeechToText),
    "ctc": (CTCConfig, CTC),
    "speech_classifier": (SpeechClassifierConfig, SpeechClassifier),
    "image_to_text": (ImageToTextConfig, ImageToText),
}


def class_of_config(config: object) -> Any:
    """The class of the models with such a configuration."""
    return next(model for kind, model in KINDS.values() if isinstance(config, kind))


def make_model(config: object) -> Any:
    """The model that a configuration describes, or a preset by its name, with weights as at the start of a training.

    Raises InputError for a name that is not a preset.
    """
    made = preset(config) if isinstance(config, str) else config
    return class_of_config(made)(made)


def config_from(data: dict[str, Any], *, where: str = "config.json") -> Any:
    """The configuration in the content of a `config.json`. Raises InputError for unknown content."""
    if data.get("kind") not in KINDS:
        raise InputError(f"kind {data.get('kind')!r} is none of {', '.join(KINDS)}", where=where)
    return from_json(KINDS[data["kind"]][0], data.get("model"), where=f"{where}: model")


def model_from(data: dict[str, Any]) -> Any:
    """The model that the content of a `config.json` describes, on the current device ("meta" allocates nothing).

    Raises InputError for unknown content.
    """
    return make_model(config_from(data))


def outline(config: object, *, most: int, where: str) -> Any:
    """The model on the device "meta", where it takes no memory, however large. Raises InputError for a configuration
    that no model has, or of more than `most` weights."""
    try:
        with uninitialised(most=most), torch.device("meta"):
            return make_model(config)
    except InputError as error:
        raise InputError(error.what, where=error.where or where, fix=error.fix) from None
    except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
        what = f"no model has this configuration ({' '.join(str(error).split())[:200]})"
        raise InputError(what, where=where, fix=OTHER_CONFIG) from None


def kind_of_config(config: object) -> str:
    """The "kind" in `config.json` of models with such a configuration."""
    return next(name for name, (kind, _) in KINDS.items() if isinstance(config, kind))


def config_of(model: nn.Module) -> dict[str, Any]:
    """The content of `config.json` for this model: the inverse of `model_from`."""
    kind = next(name for name, (_, model_kind) in KINDS.items() if isinstance(model, model_kind))
    return {"kind": kind, "model": to_json(model.config)}
