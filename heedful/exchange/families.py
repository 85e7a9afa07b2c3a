"""Families of models on the Hugging Face Hub: each is a module of `heedful.exchange.hf`."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from heedful.errors import InputError
from heedful.exchange.hf import (
    bart,
    bert,
    clip,
    decision_transformer,
    detr,
    distilbert,
    esm,
    gemma,
    gemma2,
    gemma3,
    gpt2,
    gpt2_classifier,
    llama,
    longformer,
    m2m100,
    marian,
    mbart,
    mistral,
    mixtral,
    modernbert,
    modernbert_heads,
    mt5,
    pegasus,
    qwen2,
    qwen3,
    qwen3_moe,
    roberta,
    segformer,
    sequence_classifier,
    smollm3,
    swin,
    t5,
    token_classifier,
    vision_encoder_decoder,
    vit,
    wav2vec2,
    whisper,
    xlm_roberta,
)
from heedful.exchange.hf.family import Family
from heedful.exchange.hf.rules import Recast
from heedful.run.task import Hub, HubFiles, Served

# By the `model_type` of config.json. A model that two families can hold is exported to the first.
FAMILIES: dict[str, Family[Any]] = {
    "gpt2": gpt2.FAMILY,
    "llama": llama.FAMILY,
    "mistral": mistral.FAMILY,
    "qwen2": qwen2.FAMILY,
    "qwen3": qwen3.FAMILY,
    "smollm3": smollm3.FAMILY,
    "mixtral": mixtral.FAMILY,
    "qwen3_moe": qwen3_moe.FAMILY,
    "gemma": gemma.FAMILY,
    "gemma2": gemma2.FAMILY,
    "gemma3_text": gemma3.FAMILY,
    "marian": marian.FAMILY,
    "pegasus": pegasus.FAMILY,
    "bart": bart.FAMILY,
    "mbart": mbart.FAMILY,
    "m2m_100": m2m100.FAMILY,  # and NLLB
    "t5": t5.FAMILY,
    "mt5": mt5.FAMILY,
    "roberta": roberta.FAMILY,
    "longformer": longformer.FAMILY,
    "xlm-roberta": xlm_roberta.FAMILY,
    "bert": bert.FAMILY,
    "distilbert": distilbert.FAMILY,
    "modernbert": modernbert.FAMILY,
    "esm": esm.FAMILY,  # of proteins
    "vit": vit.FAMILY,
    "deit": vit.FAMILY,  # a ViT that was trained with a teacher
    "swin": swin.FAMILY,
    "clip": clip.FAMILY,
    "segformer": segformer.FAMILY,
    "detr": detr.FAMILY,
    "decision_transformer": decision_transformer.FAMILY,
    "whisper": whisper.FAMILY,
    "wav2vec2": wav2vec2.FAMILY,
    "vision-encoder-decoder": vision_encoder_decoder.FAMILY,
}
# The families of models with one task's head, by the model_type.
HEADS: dict[str, tuple[Family[Any], ...]] = {
    body: (
        sequence_classifier.family(body),
        token_classifier.family(body, "classifier"),
        token_classifier.family(body, "qa_outputs"),
    )
    for body in sequence_classifier.FAMILIES
} | {"gpt2": (gpt2_classifier.FAMILY,), "modernbert": (modernbert_heads.TEXTS, modernbert_heads.WORDS)}
ALL = (*FAMILIES.values(), *(family for families in HEADS.values() for family in families))


def family_of(theirs: Mapping[str, Any], names: Collection[str]) -> Family[Any]:
    """The family of a folder, by its config.json, whose model_type is known, and the names of its tensors. If the heads
    of two families have the same name, `architectures` decides, or else the first is taken."""
    own = theirs["model_type"]
    found = [each for each in HEADS.get(own, ()) if any(name.startswith(f"{each.head}.") for name in names)]
    said = theirs.get("architectures")
    classes = [str(name) for name in said] if isinstance(said, list) else []
    alike = [family for family in found if any(name.endswith(family.kind) for name in classes)]
    return (*alike, *found, FAMILIES[own])[0]


def family_for(
    run: Path, served: Served, hub: Hub, head: str = ""
) -> tuple[Family[Any], Recast[Any], dict[str, Any], HubFiles]:
    """The family with this head ("": with any) that can hold our model, or an equal one, which is returned as well; its
    config.json, and the other files. That which the model was imported from is tried first."""
    refused, alias = list[InputError](), served.about.get("family", "")
    families = sorted((each for each in ALL if head in ("", each.head)), key=lambda family: family.alias != alias)
    plain = Recast(served.model.config, dict) if hub.recast is None else hub.recast(served)
    for family in families:
        if not isinstance(plain.config, family.config) or not family.suits(plain.config):
            continue
        written = hub.write(run, served)
        recast = plain.then(family.recast)
        try:
            theirs = {**family.config_to_hf(recast.config, **written.ids), **written.said}
            return family, recast, theirs, written
        except InputError as error:
            refused.append(error)
    if refused:  # the shortest error is that of the nearest family
        nearest = min(refused, key=lambda error: len(error.what))
        raise InputError(nearest.what, where=str(run), fix="no other family of the Hub comes nearer")
    raise InputError(none_like(served.model), where=str(run))


def none_like(model: object) -> str:
    kinds = ", ".join(dict.fromkeys(family.name for family in FAMILIES.values()))
    return f"the Hub's families that are known here ({kinds}) have no model like a {type(model).__name__}"
