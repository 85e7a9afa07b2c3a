"""Families of models on the Hugging Face Hub: an entry each, whose table of tensors and configuration are a module of
`heedful.exchange.hf`."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from heedful.exchange.hf import (
    bart,
    bert,
    clip,
    detr,
    gpt2,
    llama,
    marian,
    roberta,
    segformer,
    sequence_classifier,
    t5,
    vit,
)
from heedful.exchange.hf.rules import Rule
from heedful.models.classifier import ClassifierConfig
from heedful.models.clip import CLIPConfig
from heedful.models.detr import DETRConfig
from heedful.models.encoder import EncoderConfig
from heedful.models.lm import LMConfig
from heedful.models.pyramid import PyramidConfig
from heedful.models.seq2seq import Seq2SeqConfig
from heedful.models.vit import ViTConfig


@dataclass(frozen=True, kw_only=True)
class Family:
    """How models of one kind move.

    `config_from_hf` gets their config.json, their tensors' names, and where to say that an error is; `config_to_hf`
    gets our configuration, and the ids or names that stand beside the weights (`heedful.run.task.Hub`).
    """

    name: str
    config: type  # of our models that may be of this family
    loads: Callable[[Any], str]  # the class of transformers, by our configuration
    config_from_hf: Callable[[dict[str, Any], Collection[str], str], Any]
    config_to_hf: Callable[..., dict[str, Any]]
    rules: Callable[[Any], tuple[Rule, ...]]
    whole: Callable[[Mapping[str, Tensor]], dict[str, Tensor]] = dict  # names tensors as in a file with all heads
    tokens: Mapping[str, int]  # the ids that a config.json which does not name them means


def _encoder_loads(config: EncoderConfig) -> str:
    return "AutoModelForMaskedLM" if config.mlm_head else "AutoModel"


VIT = Family(  # and DeiT, which is one with a teacher
    name="ViT",
    config=ViTConfig,
    loads=lambda config: "AutoModelForImageClassification",
    config_from_hf=lambda theirs, names, where: vit.config_from_hf(theirs, where=where),
    config_to_hf=vit.config_to_hf,
    rules=vit.rules,
    tokens={},
)

# By the `model_type` of a config.json. Of two that can say a model, the first is what it becomes.
FAMILIES: dict[str, Family] = {
    "gpt2": Family(
        name="GPT-2",
        config=LMConfig,
        loads=lambda config: "AutoModelForCausalLM",
        config_from_hf=lambda theirs, names, where: gpt2.config_from_hf(theirs, where=where),
        config_to_hf=gpt2.config_to_hf,
        rules=gpt2.rules,
        whole=gpt2.whole,
        tokens=gpt2.TOKENS,
    ),
    "llama": Family(
        name="LLaMA",
        config=LMConfig,
        loads=lambda config: "AutoModelForCausalLM",
        config_from_hf=lambda theirs, names, where: llama.config_from_hf(theirs, where=where),
        config_to_hf=llama.config_to_hf,
        rules=llama.rules,
        tokens=llama.TOKENS,
    ),
    "marian": Family(
        name="Marian",
        config=Seq2SeqConfig,
        loads=lambda config: "AutoModelForSeq2SeqLM",
        config_from_hf=lambda theirs, names, where: marian.config_from_hf(theirs, where=where),
        config_to_hf=marian.config_to_hf,
        rules=marian.rules,
        tokens=marian.TOKENS,
    ),
    "bart": Family(
        name="BART",
        config=Seq2SeqConfig,
        loads=lambda config: "AutoModelForSeq2SeqLM",
        config_from_hf=lambda theirs, names, where: bart.config_from_hf(theirs, where=where),
        config_to_hf=bart.config_to_hf,
        rules=bart.rules,
        whole=bart.whole,
        tokens=bart.TOKENS,
    ),
    "t5": Family(
        name="T5",
        config=Seq2SeqConfig,
        loads=lambda config: "AutoModelForSeq2SeqLM",
        config_from_hf=lambda theirs, names, where: t5.config_from_hf(theirs, where=where),
        config_to_hf=t5.config_to_hf,
        rules=t5.rules,
        tokens=t5.TOKENS,
    ),
    "roberta": Family(
        name="RoBERTa",
        config=EncoderConfig,
        loads=_encoder_loads,
        config_from_hf=lambda theirs, names, where: roberta.config_from_hf(theirs, names, where=where),
        config_to_hf=roberta.config_to_hf,
        rules=roberta.rules,
        tokens=roberta.TOKENS,
    ),
    "bert": Family(
        name="BERT",
        config=EncoderConfig,
        loads=_encoder_loads,
        config_from_hf=lambda theirs, names, where: bert.config_from_hf(theirs, names, where=where),
        config_to_hf=lambda config, *, pad, start, end: bert.config_to_hf(config, pad=pad),
        rules=bert.rules,
        tokens=bert.TOKENS,
    ),
    "vit": VIT,
    "deit": VIT,
    "clip": Family(
        name="CLIP",
        config=CLIPConfig,
        loads=lambda config: "CLIPModel",
        config_from_hf=lambda theirs, names, where: clip.config_from_hf(theirs, where=where),
        config_to_hf=clip.config_to_hf,
        rules=clip.rules,
        tokens={},
    ),
    "segformer": Family(
        name="SegFormer",
        config=PyramidConfig,
        loads=lambda config: "AutoModelForSemanticSegmentation",
        config_from_hf=lambda theirs, names, where: segformer.config_from_hf(theirs, where=where),
        config_to_hf=segformer.config_to_hf,
        rules=segformer.rules,
        tokens={},
    ),
    "detr": Family(
        name="DETR",
        config=DETRConfig,
        loads=lambda config: "AutoModelForObjectDetection",
        config_from_hf=lambda theirs, names, where: detr.config_from_hf(theirs, where=where),
        config_to_hf=detr.config_to_hf,
        rules=detr.rules,
        tokens={},
    ),
}


def _classifier(name: str, body: sequence_classifier.Body) -> Family:
    return Family(
        name=name,
        config=ClassifierConfig,
        loads=lambda config: "AutoModelForSequenceClassification",
        config_from_hf=lambda theirs, names, where: sequence_classifier.config_from_hf(theirs, body, where=where),
        config_to_hf=lambda config, *, pad, start, end, labels, problem: sequence_classifier.config_to_hf(
            config, body, pad=pad, start=start, end=end, labels=labels, problem=problem
        ),
        rules=lambda config: sequence_classifier.rules(config, body),
        tokens=FAMILIES[body].tokens,
    )


# The same for models with a head that classifies whole texts.
CLASSIFIERS = {"roberta": _classifier("RoBERTa", "roberta"), "bert": _classifier("BERT", "bert")}
