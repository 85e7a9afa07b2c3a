"""Models of the Hugging Face Hub become runs of ours, and the other way round.

A family is one entry of `FAMILIES`: its table of tensors and its configuration are a module of `store/hf/`, and what
stands beside the weights is read and written by functions that families of one task share.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from heedful.core.config import unknown_key
from heedful.errors import InputError, MissingError, StorageError
from heedful.models import config_of, make_model
from heedful.models.classifier import ClassifierConfig
from heedful.models.clip import CLIPConfig
from heedful.models.detr import DETRConfig
from heedful.models.encoder import EncoderConfig
from heedful.models.lm import LMConfig
from heedful.models.pyramid import PyramidConfig
from heedful.models.seq2seq import Seq2SeqConfig
from heedful.models.vit import ViTConfig
from heedful.store import files
from heedful.store.checkpoint import save_model
from heedful.store.hf import (
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
from heedful.store.hf.folder import CONFIG, WEIGHTS, packed, read_object, read_weights
from heedful.store.hf.rules import Rule, to_ours, to_theirs
from heedful.tasks import ct2
from heedful.tasks.folder import parameters, to_be
from heedful.tasks.generate import LanguageModel
from heedful.tasks.hub_images import (
    read_detector,
    read_image_classifier,
    read_segmenter,
    write_detector,
    write_image_classifier,
    write_segmenter,
)
from heedful.tasks.hub_pairs import read_matcher, write_matcher
from heedful.tasks.hub_text import (
    Files,
    Written,
    read_classifier,
    read_encoder,
    read_language_model,
    read_translator,
    write_classifier,
    write_encoder,
    write_language_model,
    write_translator,
)
from heedful.tasks.load import load_model, task_of
from heedful.tasks.paint import Painter

TARGETS = ("hf", "ctranslate2")


@dataclass(frozen=True, kw_only=True)
class Family:
    """How models of one kind move.

    `config_from_hf` gets their config.json, their tensors' names, and where to say that an error is; `config_to_hf`
    gets our configuration, and the ids or names that `write` gives. `read` gets their folder, their config.json
    completed by `tokens`, and our configuration; `write` a run's folder and what `load_model` makes of it.
    """

    name: str
    config: type  # of our models that may be of this family
    loads: Callable[[Any], str]  # the class of transformers, by our configuration
    config_from_hf: Callable[[dict[str, Any], Collection[str], str], Any]
    config_to_hf: Callable[..., dict[str, Any]]
    rules: Callable[[Any], tuple[Rule, ...]]
    read: Callable[[Path, dict[str, Any], Any], Files]
    write: Callable[[Path, Any], Written]
    whole: Callable[[Mapping[str, Tensor]], dict[str, Tensor]] = dict  # names tensors as in a file with all heads
    tokens: Mapping[str, int]  # the ids that a config.json which does not name them means


def _encoder_loads(config: EncoderConfig) -> str:
    return "AutoModelForMaskedLM" if config.words else "AutoModel"


VIT = Family(  # and DeiT, which is one with a teacher
    name="ViT",
    config=ViTConfig,
    loads=lambda config: "AutoModelForImageClassification",
    config_from_hf=lambda theirs, names, where: vit.config_from_hf(theirs, where=where),
    config_to_hf=vit.config_to_hf,
    rules=vit.rules,
    tokens={},
    read=read_image_classifier,
    write=write_image_classifier,
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
        read=read_language_model,
        write=write_language_model,
    ),
    "llama": Family(
        name="LLaMA",
        config=LMConfig,
        loads=lambda config: "AutoModelForCausalLM",
        config_from_hf=lambda theirs, names, where: llama.config_from_hf(theirs, where=where),
        config_to_hf=llama.config_to_hf,
        rules=llama.rules,
        tokens=llama.TOKENS,
        read=read_language_model,
        write=write_language_model,
    ),
    "marian": Family(
        name="Marian",
        config=Seq2SeqConfig,
        loads=lambda config: "AutoModelForSeq2SeqLM",
        config_from_hf=lambda theirs, names, where: marian.config_from_hf(theirs, where=where),
        config_to_hf=marian.config_to_hf,
        rules=marian.rules,
        tokens=marian.TOKENS,
        read=read_translator,
        write=write_translator,
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
        read=read_translator,
        write=write_translator,
    ),
    "t5": Family(
        name="T5",
        config=Seq2SeqConfig,
        loads=lambda config: "AutoModelForSeq2SeqLM",
        config_from_hf=lambda theirs, names, where: t5.config_from_hf(theirs, where=where),
        config_to_hf=t5.config_to_hf,
        rules=t5.rules,
        tokens=t5.TOKENS,
        read=read_translator,
        write=write_translator,
    ),
    "roberta": Family(
        name="RoBERTa",
        config=EncoderConfig,
        loads=_encoder_loads,
        config_from_hf=lambda theirs, names, where: roberta.config_from_hf(theirs, names, where=where),
        config_to_hf=roberta.config_to_hf,
        rules=roberta.rules,
        tokens=roberta.TOKENS,
        read=read_encoder,
        write=write_encoder,
    ),
    "bert": Family(
        name="BERT",
        config=EncoderConfig,
        loads=_encoder_loads,
        config_from_hf=lambda theirs, names, where: bert.config_from_hf(theirs, names, where=where),
        config_to_hf=lambda config, *, pad, start, end: bert.config_to_hf(config, pad=pad),
        rules=bert.rules,
        tokens=bert.TOKENS,
        read=read_encoder,
        write=write_encoder,
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
        read=read_matcher,
        write=write_matcher,
    ),
    "segformer": Family(
        name="SegFormer",
        config=PyramidConfig,
        loads=lambda config: "AutoModelForSemanticSegmentation",
        config_from_hf=lambda theirs, names, where: segformer.config_from_hf(theirs, where=where),
        config_to_hf=segformer.config_to_hf,
        rules=segformer.rules,
        tokens={},
        read=read_segmenter,
        write=write_segmenter,
    ),
    "detr": Family(
        name="DETR",
        config=DETRConfig,
        loads=lambda config: "AutoModelForObjectDetection",
        config_from_hf=lambda theirs, names, where: detr.config_from_hf(theirs, where=where),
        config_to_hf=detr.config_to_hf,
        rules=detr.rules,
        tokens={},
        read=read_detector,
        write=write_detector,
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
        read=read_classifier,
        write=write_classifier,
    )


# The same for models with a head that classifies whole texts.
CLASSIFIERS = {"roberta": _classifier("RoBERTa", "roberta"), "bert": _classifier("BERT", "bert")}


@dataclass(frozen=True)
class Imported:
    """What a folder became. `vocab_size` is None of a model that reads no text."""

    family: str
    task: str
    parameters: int
    vocab_size: int | None
    out: str


@dataclass(frozen=True)
class Exported:
    """What a run became, the names of the files, and what loads it. `difference`: of log-probabilities (nats), the
    largest that was found in the written folder; None where its weights are the run's to the bit."""

    family: str
    to: str
    out: str
    files: tuple[str, ...]
    loads: str
    difference: float | None = None


def import_model(folder: str | Path, out: str | Path) -> Imported:
    """Makes the run `out` of a model's folder as the Hub has it: config.json, safetensors, what it reads texts or
    pictures by.

    All that the files say is accounted for: a key or a tensor that is not known is an error that names it. Raises
    InputError, MissingError or StorageError; `out` is then as it was.
    """
    folder, out = Path(folder), Path(out)
    if not folder.is_dir():
        raise MissingError("no such folder", where=str(folder), fix="check the path")
    where = str(folder / CONFIG)
    theirs = read_object(folder / CONFIG)
    if "model_type" not in theirs:
        raise InputError("no model_type: not a model of the Hub", where=where, fix="give the folder of such a model")
    if theirs["model_type"] not in FAMILIES:
        raise unknown_key(str(theirs["model_type"]), [*FAMILIES], where=f"{where}: model_type")
    found = read_weights(folder)
    kinds = CLASSIFIERS if theirs["model_type"] in CLASSIFIERS and sequence_classifier.has_head(found) else FAMILIES
    family = kinds[theirs["model_type"]]
    tensors = family.whole(found)
    config = family.config_from_hf(theirs, tensors.keys(), where)
    with torch.device("meta"):
        model = make_model(config)
    ours = to_ours(family.rules(config), tensors, dict(model.named_parameters()), where=str(folder))
    beside = family.read(folder, {**family.tokens, **theirs}, config)
    with to_be(out) as growing:
        save_model(growing, config_of(model), ours, beside)
    size = sum(tensor.numel() for tensor in ours.values())
    return Imported(family.name, beside["task.json"]["task"], size, _vocab_size(config), str(out))


def export_model(run: str | Path, out: str | Path, *, to: str = "hf", quantize: str | None = None) -> Exported:
    """Makes the folder `out` of a run, for other libraries to load, and reads it back before it is there.

    `quantize`: the type of the weights for CTranslate2, where they are not to be float32. Raises InputError for a model
    that the target has no words for, and names what it lacks; MissingError or StorageError; `out` is then as it was.
    """
    run, out = Path(run), Path(out)
    if to not in TARGETS:
        raise unknown_key(to, list(TARGETS), where="--to")
    if to == "hf" and quantize is not None:
        raise InputError(f"no {quantize} weights on the Hub", where="--quantize", fix="--to ctranslate2")
    task_of(run)
    served = load_model(run)
    if to == "hf":
        return _to_hub(run, out, served)
    difference = ct2.export(run, served, out, quantize=quantize)
    kind = "Generator" if isinstance(served, LanguageModel) else "Translator"
    names = tuple(sorted(path.name for path in out.iterdir()))
    return Exported("CTranslate2", to, str(out), names, f"ctranslate2.{kind}({str(out)!r})", difference)


def _to_hub(run: Path, out: Path, served: Any) -> Exported:
    if isinstance(served, Painter):
        what = "the Hub's ImageGPT has other norms, and its GPT-2 reads no pictures"
        raise InputError(what, where=str(run), fix="use it here")
    config, own = served.model.config, parameters(served.model)
    family, theirs, beside = _family_of(config, run, served)
    tensors = to_theirs(family.rules(config), own, where=str(run))
    with to_be(out) as growing:
        for name, value in {**beside, CONFIG: theirs}.items():
            data = value if isinstance(value, bytes) else files.json_bytes(value, where=out / name)
            files.write_bytes(growing / name, data)
        files.write_bytes(growing / WEIGHTS, packed(tensors))
        _verify(growing, family, theirs, own)
        names = tuple(sorted(path.name for path in growing.iterdir()))
    sees, reads_text = (name in names for name in ("preprocessor_config.json", "tokenizer.json"))
    reads = "AutoTokenizer" if not sees else "AutoProcessor" if reads_text else "AutoImageProcessor"
    loads = f"transformers.{family.loads(config)}.from_pretrained({str(out)!r}), and {reads} likewise"
    return Exported(family.name, "hf", str(out), names, loads)


def _family_of(config: Any, run: Path, served: Any) -> tuple[Family, dict[str, Any], Files]:
    """The family that can say what our configuration says, their config.json, and what stands beside it."""
    refused: list[InputError] = []
    for family in (*FAMILIES.values(), *CLASSIFIERS.values()):
        if not isinstance(config, family.config):
            continue
        written = family.write(run, served)
        try:
            return family, family.config_to_hf(config, **written.ids), written.files
        except InputError as error:
            refused.append(error)
    if refused:  # the family that comes nearest lacks the fewest words
        nearest = min(refused, key=lambda error: len(error.what))
        raise InputError(nearest.what, where=str(run), fix="no other family of the Hub comes nearer")
    kinds = ", ".join(family.name for family in FAMILIES.values())
    what = f"the Hub's families that are known here ({kinds}) have no model like a {type(served.model).__name__}"
    raise InputError(what, where=str(run))


def _verify(folder: Path, family: Family, theirs: dict[str, Any], own: Mapping[str, Tensor]) -> None:
    """Raises StorageError where what an import would read is not the model that was written."""
    tensors = family.whole(read_weights(folder))
    config = family.config_from_hf(read_object(folder / CONFIG), tensors.keys(), str(folder / CONFIG))
    back = to_ours(family.rules(config), tensors, own, where=str(folder))
    wrong = [name for name, tensor in own.items() if not back[name].equal(tensor)]
    if wrong or read_object(folder / CONFIG) != theirs:
        what = f"{wrong[0] if wrong else CONFIG} reads back as something else"
        raise StorageError(what, where=str(folder), fix="check the disk and run the same command again")


def _vocab_size(config: Any) -> int | None:
    match config:
        case LMConfig() | EncoderConfig():
            return config.embed.vocab_size
        case Seq2SeqConfig():
            return config.target.vocab_size
        case ClassifierConfig():
            return config.body.embed.vocab_size
        case CLIPConfig():
            return config.text.embed.vocab_size
        case _:
            return None
