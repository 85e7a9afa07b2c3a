"""Families of models on the Hugging Face Hub: an entry each, whose tables of tensors and of configuration keys are a
module of `heedful.exchange.hf`."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from heedful.exchange.hf import (
    bart,
    bert,
    clip,
    detr,
    distilbert,
    gemma,
    gemma2,
    gemma3,
    gpt2,
    gpt2_classifier,
    llama,
    m2m100,
    marian,
    mbart,
    mistral,
    modernbert,
    mt5,
    pegasus,
    qwen2,
    qwen3,
    roberta,
    segformer,
    sequence_classifier,
    smollm3,
    t5,
    token_classifier,
    vit,
    xlm_roberta,
)
from heedful.exchange.hf.rules import Recast, Rule
from heedful.exchange.hf.seq2seq import biased_sines_first
from heedful.models.classifier import ClassifierConfig
from heedful.models.clip import CLIPConfig
from heedful.models.detr import DETRConfig
from heedful.models.encoder import EncoderConfig
from heedful.models.lm import LMConfig
from heedful.models.pyramid import PyramidConfig
from heedful.models.seq2seq import Seq2SeqConfig
from heedful.models.token_classifier import TokenClassifierConfig
from heedful.models.vit import ViTConfig


@runtime_checkable
class Module(Protocol):
    """What a module of `heedful.exchange.hf` has for a family."""

    def config_from_hf(self, theirs: dict[str, Any], names: Collection[str] = (), *, where: str = "") -> Any: ...

    @property
    def config_to_hf(self) -> Callable[..., dict[str, Any]]: ...

    @property
    def rules(self) -> Callable[[Any], tuple[Rule, ...]]: ...


@dataclass(frozen=True, kw_only=True)
class Family:
    """How models of one kind move.

    `config_from_hf` gets their config.json, their tensors' names, and where to say that an error is; `config_to_hf`
    gets our configuration, and the ids or names that stand beside the weights (`heedful.run.task.Hub`). Where the
    family cannot hold ours, `recast` may have an equal one.
    """

    name: str
    config: type  # of our models that may be of this family
    loads: Callable[[Any], str]  # the class of transformers, by our configuration
    config_from_hf: Callable[[dict[str, Any], Collection[str], str], Any]
    config_to_hf: Callable[..., dict[str, Any]]
    rules: Callable[[Any], tuple[Rule, ...]]
    suits: Callable[[Any], bool] = lambda config: True  # of such configurations, those that it may hold
    head: str = ""  # the module of theirs that a family of models with one head is known by
    kind: str = ""  # and how the name of their class ends
    whole: Callable[[Mapping[str, Tensor]], dict[str, Tensor]] = dict  # names tensors as in a file with all heads
    made: Callable[[Any], dict[str, Tensor]] = lambda config: {}  # theirs that are no weights of ours
    recast: Callable[[Any], Recast[Any]] = lambda config: Recast(config, dict)
    tokens: Mapping[str, int]  # the ids that a config.json which does not name them means
    alias: str = ""  # its model_type, where another family holds the same models, and comes before it


def _family(name: str, config: type, loads: str, module: Module, tokens: Mapping[str, int] | None = None) -> Family:
    return Family(
        name=name,
        config=config,
        loads=lambda config: loads,
        config_from_hf=lambda theirs, names, where: module.config_from_hf(theirs, names, where=where),
        config_to_hf=module.config_to_hf,
        rules=module.rules,
        tokens=tokens or {},
    )


def _encoder(name: str, module: Module, tokens: Mapping[str, int]) -> Family:
    family = _family(name, EncoderConfig, "", module, tokens)
    return replace(family, loads=lambda config: "AutoModelForMaskedLM" if config.mlm_head else "AutoModel")


_LM, _SEQ2SEQ = "AutoModelForCausalLM", "AutoModelForSeq2SeqLM"
_VIT = _family("ViT", ViTConfig, "AutoModelForImageClassification", vit)  # and DeiT, which is one with a teacher

# By the `model_type` of a config.json. Of two that can say a model, the first is what it becomes.
FAMILIES: dict[str, Family] = {
    "gpt2": replace(_family("GPT-2", LMConfig, _LM, gpt2, gpt2.TOKENS), whole=gpt2.whole),
    "llama": _family("LLaMA", LMConfig, _LM, llama, llama.TOKENS),
    "mistral": _family("Mistral", LMConfig, _LM, mistral, mistral.TOKENS),
    "qwen2": _family("Qwen2", LMConfig, _LM, qwen2, qwen2.TOKENS),
    "qwen3": _family("Qwen3", LMConfig, _LM, qwen3, qwen3.TOKENS),
    "smollm3": _family("SmolLM3", LMConfig, _LM, smollm3, smollm3.TOKENS),
    "gemma": _family("Gemma", LMConfig, _LM, gemma, gemma.TOKENS),
    "gemma2": _family("Gemma 2", LMConfig, _LM, gemma2, gemma2.TOKENS),
    "gemma3_text": _family("Gemma 3", LMConfig, _LM, gemma3, gemma3.TOKENS),
    "marian": replace(_family("Marian", Seq2SeqConfig, _SEQ2SEQ, marian, marian.TOKENS), recast=biased_sines_first),
    "pegasus": replace(
        _family("Pegasus", Seq2SeqConfig, _SEQ2SEQ, pegasus, pegasus.TOKENS),
        recast=biased_sines_first,
        made=pegasus.made,
    ),
    "bart": replace(_family("BART", Seq2SeqConfig, _SEQ2SEQ, bart, bart.TOKENS), whole=bart.whole),
    "mbart": _family("mBART", Seq2SeqConfig, _SEQ2SEQ, mbart, mbart.TOKENS),
    "m2m_100": _family("M2M-100", Seq2SeqConfig, _SEQ2SEQ, m2m100, m2m100.TOKENS),  # and NLLB
    "t5": _family("T5", Seq2SeqConfig, _SEQ2SEQ, t5, t5.TOKENS),
    "mt5": replace(_family("mT5", Seq2SeqConfig, _SEQ2SEQ, mt5, mt5.TOKENS), alias="mt5"),
    "roberta": _encoder("RoBERTa", roberta, roberta.TOKENS),
    "xlm-roberta": replace(_encoder("XLM-R", xlm_roberta, xlm_roberta.TOKENS), alias="xlm-roberta"),
    "bert": _encoder("BERT", bert, bert.TOKENS),
    "distilbert": _encoder("DistilBERT", distilbert, distilbert.TOKENS),
    "modernbert": replace(
        _encoder("ModernBERT", modernbert, modernbert.TOKENS),
        whole=modernbert.whole,
        recast=modernbert.untyped,
        made=modernbert.made,
    ),
    "vit": _VIT,
    "deit": _VIT,
    "clip": _family("CLIP", CLIPConfig, "CLIPModel", clip),
    "segformer": _family("SegFormer", PyramidConfig, "AutoModelForSemanticSegmentation", segformer),
    "detr": _family("DETR", DETRConfig, "AutoModelForObjectDetection", detr),
}


def _classifier(name: str, body: sequence_classifier.Body) -> Family:
    return Family(
        name=name,
        config=ClassifierConfig,
        suits=lambda config: config.encoder is not None,
        head="classifier",
        kind="ForSequenceClassification",
        loads=lambda config: "AutoModelForSequenceClassification",
        config_from_hf=lambda theirs, names, where: sequence_classifier.config_from_hf(theirs, body, where=where),
        config_to_hf=lambda config, *, pad, start, end, labels, problem: sequence_classifier.config_to_hf(
            config, body, pad=pad, start=start, end=end, labels=labels, problem=problem
        ),
        rules=lambda config: sequence_classifier.rules(config, body),
        tokens=FAMILIES[body].tokens,
    )


_CAUSAL = replace(
    _family("GPT-2", ClassifierConfig, "AutoModelForSequenceClassification", gpt2_classifier, gpt2.TOKENS),
    suits=lambda config: config.lm is not None,
    head="score",
    kind="ForSequenceClassification",
    recast=gpt2_classifier.unbiased,
)


def _token_classifier(name: str, body: sequence_classifier.Body, head: token_classifier.Head) -> Family:
    kind = token_classifier.KINDS[head]
    return Family(
        name=name,
        config=TokenClassifierConfig,
        loads=lambda config: f"AutoModel{kind}",
        head=head,
        kind=kind,
        config_from_hf=lambda theirs, names, where: token_classifier.config_from_hf(theirs, body, head, where=where),
        config_to_hf=lambda config, **ids: token_classifier.config_to_hf(config, body, head, **ids),
        rules=lambda config: token_classifier.rules(config, body, head),
        tokens=FAMILIES[body].tokens,
    )


def _on_encoder(name: str, body: sequence_classifier.Body) -> tuple[Family, ...]:
    tags, spans = _token_classifier(name, body, "classifier"), _token_classifier(name, body, "qa_outputs")
    return tuple(replace(family, alias=FAMILIES[body].alias) for family in (_classifier(name, body), tags, spans))


# Those of models with one head, by the model_type.
HEADS: dict[str, tuple[Family, ...]] = {
    "roberta": _on_encoder("RoBERTa", "roberta"),
    "xlm-roberta": _on_encoder("XLM-R", "xlm-roberta"),
    "bert": _on_encoder("BERT", "bert"),
    "gpt2": (_CAUSAL,),
}
ALL = (*FAMILIES.values(), *(family for families in HEADS.values() for family in families))


def family_of(theirs: Mapping[str, Any], names: Collection[str]) -> Family:
    """The family of a file by its config.json, whose model_type is known, and its tensors' names: of two whose heads
    have one name, that of its class, or else the first."""
    own = theirs["model_type"]
    found = [each for each in HEADS.get(own, ()) if any(name.startswith(f"{each.head}.") for name in names)]
    classes = [str(name) for name in theirs.get("architectures") or ()]
    alike = [family for family in found if any(name.endswith(family.kind) for name in classes)]
    return (*alike, *found, FAMILIES[own])[0]
