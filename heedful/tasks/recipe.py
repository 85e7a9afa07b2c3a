"""A recipe is all that a training run needs to know, and is kept in the run's folder.

It is written as options, as YAML, or as a Python file that defines `recipe`. Unknown keys and values of the wrong
type are errors that name the nearest right one.
"""

import re
import runpy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from heedful.core.config import from_json, to_json, unknown_key
from heedful.errors import InputError, MissingError
from heedful.models.presets import ENCODERS, LANGUAGE_MODELS, PAINTERS, TRANSLATORS, DecoderOnly
from heedful.models.vision_presets import DETECTORS, PAIRS, SEGMENTERS, VISION_TRANSFORMERS

Task = Literal[
    "translate",
    "summarise",
    "generate",
    "classify",
    "fill",
    "denoise",
    "parse",
    "tag",
    "answer",
    "classify-images",
    "detect",
    "segment",
    "match",
    "paint",
]


Row = TypeVar("Row")


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class DataRecipe(Section):
    """Where the sentence pairs are, and how they become tokens."""

    path: str = ""  # a folder, a file, or hf:NAME
    source: str = ""  # the language, column or key to translate from
    target: str = ""
    tokenizer: Literal["bpe", "unigram", "chars", "bytes"] = "bpe"
    joint: bool = True  # one vocabulary for both sides
    vocab_size: int = Field(8000, ge=300, le=1_000_000)
    longest: int = Field(200, ge=8)  # longer training pairs, in tokens, are left out; a denoiser's texts are cut
    scores: Literal["bleu", "rouge"] = "bleu"  # and chrF; of translations, or of summaries
    cut: bool = False  # but longer sources, documents to be summarised, are cut there, in training and in use
    # What a denoiser puts right: spans of tokens behind numbered marks, or words behind masks and sentences in another
    # order.
    objective: Literal["spans", "infill"] = "spans"
    across: bool = True  # a language model may look across the ends of documents that share a row
    whole_words: bool = False  # fill: the tokens of a word are hidden together
    pairs: Literal["none", "next", "order"] = "none"  # fill: also tell whether two texts go on with each other


class TrainRecipe(Section):
    """How to train. The budget is whichever of steps, epochs and minutes is used up first."""

    steps: int | None = Field(None, ge=1)
    epochs: float | None = Field(None, gt=0)
    minutes: float | None = Field(None, gt=0)
    seed: int = Field(1, ge=0)
    tokens: int = Field(2048, ge=64)  # source tokens in a batch, padding included
    row: int = Field(64, ge=8)  # tokens in a packed row
    accumulate: int = Field(1, ge=1)  # batches a step
    optimizer: Literal["adam", "muon"] = "adam"
    lr: float = Field(2e-3, gt=0)
    muon_lr: float = Field(0.02, gt=0)
    weight_decay: float = Field(0.0, ge=0)
    schedule: Literal["inverse_sqrt", "cosine", "linear", "constant"] = "cosine"
    warmup: int = Field(400, ge=0)
    clip: float = Field(1.0, ge=0)
    smoothing: float | None = Field(None, ge=0, lt=1)  # None: 0.1 for translation, none for a language model
    average: float = Field(0.998, ge=0, lt=1)  # decay of the weights' average; 0: none
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    compile: bool = False  # the blocks, by torch.compile: a minute or more at the begin; for a GPU, on CPUs no gain
    eval_every: int | None = Field(None, ge=1)  # steps; None: about ten times in all
    eval_sentences: int = Field(400, ge=1)  # how many validation pairs are translated each time; of pictures, read
    save_every: int | None = Field(None, ge=1)  # steps; None: as often as it measures
    keep: int = Field(2, ge=1)  # checkpoints
    # What to do where a loss or gradient is NaN or infinite: stop; leave this step out; or go back to the last
    # checkpoint, and leave it out then.
    non_finite: Literal["stop", "skip", "rollback"] = "stop"


class DecodeRecipe(Section):
    beam: int = Field(5, ge=1, le=64)
    length_penalty: float = Field(1.0, ge=0)
    longest: int | None = Field(None, ge=1)  # new tokens; None: twice the source's and 12 more


class ClassifyRecipe(Section):
    symmetric: bool = False  # pairs without an order, read in both
    # Weight of going on with the texts, beside their answers; None: 0.5 for a language model, and none for an encoder,
    # which cannot.
    auxiliary: float | None = Field(None, ge=0)


class AnswerRecipe(Section):
    longest: int = Field(30, ge=1)  # tokens of an answer


class ImagesRecipe(Section):
    """Pictures, and how they are changed while a model learns from them."""

    size: int | None = Field(None, ge=8, le=4096)  # pixels of the longer edge; None: as data and model suggest
    channels: Literal[1, 3] | None = None  # None: 1 where all pictures are grey
    batch: int = Field(128, ge=1)  # pictures in a batch
    augment: Literal["none", "light", "strong"] = "light"  # data.augment says what each of them is
    flip: bool = True  # left for right, where pictures are changed at all; not for what is written
    colours: int | None = Field(None, ge=2, le=4096)  # that a painter has; None: 16 greys, or 512 colours
    mixup: float = Field(0.0, ge=0)  # pictures are sums of two, their shares drawn from Beta(mixup, mixup)
    mirrored: bool = False  # to say what one shows, also look at its mirror image (Krizhevsky et al. 2012, section 4.1)


class Recipe(Section):
    task: Task = "translate"
    preset: str = ""  # of the task; "": its default
    start_from: str = ""  # a run whose model, tokenizer and weights training begins with, in place of a preset
    model: dict[str, Any] = Field(default_factory=dict)  # fields of the preset's row to replace
    data: DataRecipe = DataRecipe()
    train: TrainRecipe = TrainRecipe()
    decode: DecodeRecipe = DecodeRecipe()
    classify: ClassifyRecipe = ClassifyRecipe()
    images: ImagesRecipe = ImagesRecipe()
    answer: AnswerRecipe = AnswerRecipe()

    @model_validator(mode="before")
    @classmethod
    def _of_the_task(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        own = DEFAULT.get(data.get("task", "translate"), {})
        for name, defaults in own.items():
            given = data.get(name)
            if isinstance(given, Section):
                given = given.model_dump(exclude_unset=True)
            if isinstance(defaults, dict) and isinstance(given, dict | None):
                data = data | {name: defaults | (given or {})}
        return data if data.get("preset") else data | {"preset": own.get("preset", "")}


PRESETS: dict[str, Mapping[str, Any]] = {
    "translate": TRANSLATORS,
    "generate": LANGUAGE_MODELS,
    "classify": {**LANGUAGE_MODELS, **ENCODERS},
    "denoise": TRANSLATORS,
    "summarise": TRANSLATORS,
    "fill": ENCODERS,
    "parse": {name: row for name, row in TRANSLATORS.items() if not isinstance(row, DecoderOnly)},  # two vocabularies
    "classify-images": VISION_TRANSFORMERS,
    "detect": DETECTORS,
    "segment": SEGMENTERS,
    "match": PAIRS,
    "paint": PAINTERS,
    "tag": ENCODERS,
    "answer": ENCODERS,
}
# What a task takes where a recipe says nothing.
DEFAULT: dict[str, dict[str, Any]] = {
    "translate": {"preset": "transformer-small"},
    "generate": {"preset": "gpt-nano"},
    "classify": {"preset": "gpt-mini", "train": {"lr": 5e-4, "warmup": 100}},
    "denoise": {"preset": "transformer-small"},
    "summarise": {
        "preset": "transformer-small",
        "data": {"scores": "rouge", "cut": True, "longest": 512},
        "decode": {"longest": 120},
    },
    "fill": {"preset": "modern-tiny", "train": {"optimizer": "muon", "lr": 4e-3, "warmup": 100}},
    "parse": {"preset": "transformer-tiny", "data": {"longest": 500}, "train": {"row": 128}},
    "classify-images": {"preset": "vit-nano28", "train": {"optimizer": "muon", "warmup": 200}},
    "detect": {
        "preset": "detr-nano",
        "train": {"optimizer": "muon", "lr": 1e-3, "muon_lr": 0.01},
        "images": {"batch": 32},
    },
    "segment": {"preset": "segformer-micro", "train": {"lr": 1e-3, "warmup": 100}, "images": {"batch": 16}},
    "match": {
        "preset": "clip-nano32",
        "train": {"optimizer": "muon", "warmup": 100},
        "images": {"augment": "strong", "flip": False},
    },
    "paint": {
        "preset": "image-gpt-nano",
        "train": {"optimizer": "muon", "warmup": 100, "eval_sentences": 100},
        "images": {"batch": 16, "augment": "none"},
    },
    "tag": {"preset": "encoder-tiny", "train": {"lr": 5e-4, "warmup": 100}},
    "answer": {"preset": "encoder-small", "train": {"lr": 5e-4, "warmup": 100}},
}
TASKS = tuple(PRESETS)
# How a model is tuned that was imported, and so has no rates of its own (Devlin et al. 2019, appendix A.3).
TUNING = ("train.optimizer=adam", "train.lr=5e-5", "train.warmup=100")


def row_of(presets: Mapping[str, Row], recipe: Recipe) -> Row:
    """The recipe's preset, with what the recipe says of the model. Raises InputError."""
    row = presets[recipe.preset]
    return from_json(type(row), to_json(row) | recipe.model, where=f"model (preset {recipe.preset})")


def read_recipe(name: str) -> Recipe:
    """The recipe behind a task's name, a Python file that defines `recipe`, or a YAML file."""
    if name in TASKS:
        return Recipe(task=name)
    path = Path(name)
    if path.suffix not in (".py", ".yaml", ".yml"):
        raise unknown_key(name, list(TASKS), where="heed train")
    if not path.is_file():
        raise MissingError("there is no such recipe", where=name)
    if path.suffix == ".py":
        recipe = runpy.run_path(str(path)).get("recipe")
        if not isinstance(recipe, Recipe):
            raise InputError("defines no `recipe = Recipe(...)`", where=name)
        return recipe
    return parse(path.read_text(encoding="utf-8"), where=name)


def parse(text: str, *, where: str) -> Recipe:
    """A recipe from YAML text."""
    data = _read_yaml(text, where=where)
    return build(data if data is not None else {}, where=where)


def build(data: Any, *, where: str) -> Recipe:
    """A recipe from plain data, with errors in one line."""
    try:
        recipe = Recipe.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        if first["type"] == "extra_forbidden":
            *sections, key = map(str, first["loc"])
            raise unknown_key(key, _keys(sections), where=".".join([where, *sections])) from None
        raise InputError(f"{place} = {first['input']!r}: {first['msg'].lower()}", where=where) from None
    if recipe.preset not in PRESETS[recipe.task]:
        raise unknown_key(recipe.preset, list(PRESETS[recipe.task]), where=f"{where}: preset")
    return recipe


def override(recipe: Recipe, settings: Sequence[str]) -> Recipe:
    """The recipe with `key=value` settings applied, such as `train.lr=3e-4`."""
    data = recipe.model_dump(mode="json")
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals:
            raise InputError(f"{setting!r} is not key=value", where="--set", fix="for example --set train.lr=3e-4")
        *sections, last = key.strip().split(".")
        place = data
        for section in sections:
            if not isinstance(place.get(section), dict):
                raise unknown_key(section, [name for name in place if isinstance(place[name], dict)], where="--set")
            place = place[section]
        place[last] = _read_yaml(text, where=f"--set {key}")
    return build(data, where="--set")


def write(recipe: Recipe) -> str:
    """The recipe as YAML, every key of it."""
    return yaml.safe_dump(recipe.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def _read_yaml(text: str, *, where: str) -> Any:
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise InputError(f"not YAML: {' '.join(str(error).split())}", where=where) from None


def _keys(sections: list[str]) -> list[str]:
    model: type[BaseModel] = Recipe
    for section in sections:
        kind = model.model_fields[section].annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            model = kind
    return list(model.model_fields)


class _Loader(yaml.SafeLoader):
    """YAML as its readers expect: `no` is Norwegian, and `1e-4` is a number."""


_Loader.yaml_implicit_resolvers = {
    first: [
        (tag, pattern) for tag, pattern in resolvers if tag not in ("tag:yaml.org,2002:bool", "tag:yaml.org,2002:float")
    ]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|false|False)$"), list("tTfF"))
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(?:\d+\.\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)$"),
    list("-+0123456789."),
)
