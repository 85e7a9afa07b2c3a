"""Figure 1 of each model family, made from its configuration, for `heed draw`. No weights are allocated: parameters are
counted on a model on the "meta" device."""

from collections.abc import Callable
from typing import Any

import torch

from heedful.core.init import uninitialised
from heedful.figures.others import actor_critic, decision, evoformer, fold, rnn, vectors
from heedful.figures.pictures import clip, detr, image_to_text, pyramid, vit
from heedful.figures.sequences import classifier, decoder_only, encoder, lm, seq2seq, token_classifier
from heedful.figures.sounds import ctc, speech_classifier, speech_to_text
from heedful.figures.stacks import Sizes
from heedful.look.architecture import Architecture
from heedful.models import kind_of_config, make_model

FIGURES: dict[str, Callable[[Any, str, Sizes], Architecture]] = {
    "seq2seq": seq2seq,
    "rnn": rnn,
    "lm": lm,
    "classifier": classifier,
    "token_classifier": token_classifier,
    "decoder_only_translator": decoder_only,
    "vit": vit,
    "clip": clip,
    "pyramid": pyramid,
    "detr": detr,
    "encoder": encoder,
    "vectors": vectors,
    "decision": decision,
    "evoformer": evoformer,
    "protein_fold": fold,
    "actor_critic": actor_critic,
    "speech_to_text": speech_to_text,
    "ctc": ctc,
    "speech_classifier": speech_classifier,
    "image_to_text": image_to_text,
}


def architecture(config: Any, title: str) -> Architecture:
    """The figure of a model with this configuration. Raises InputError for an invalid configuration."""
    with uninitialised(), torch.device("meta"):
        sizes = Sizes(make_model(config))
    return FIGURES[kind_of_config(config)](config, title, sizes)
