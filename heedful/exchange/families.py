"""Families of models on the Hugging Face Hub: each is a module of `heedful.exchange.hf`."""

from collections.abc import Collection, Mapping
from typing import Any

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
    vit,
    whisper,
    xlm_roberta,
)
from heedful.exchange.hf.family import Family

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
