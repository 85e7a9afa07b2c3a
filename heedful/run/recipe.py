"""A recipe is the whole configuration of a training, and is saved in the run's folder.

It is given as options, as YAML, or as a Python file that defines `recipe`. Each task has its own class of recipes, with
the sections and keys that it reads; any other key is an error that names the nearest right one.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar, get_args

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError
from yaml.constructor import ConstructorError

from heedful.core.config import from_json, to_json, unknown_key
from heedful.errors import InputError, MissingError
from heedful.store import files

R = TypeVar("R", bound="Recipe")
Row = TypeVar("Row")
Presets = Callable[[], Mapping[str, Any]]
FORMAT = "# heedful recipe, format 2: every key that this task reads, as docs/recipe.md describes them\n"


Adapted = Literal["query", "key", "value", "out", "up", "gate", "down"]  # linear maps of attention and MLP
AUTO = "auto"  # a preset that is chosen when the training begins


NO_TEXT = re.compile("[\0\ud800-\udfff]")  # characters that neither a file's name nor UTF-8 can have
LARGEST = 1 << 20  # bytes of a recipe
MOST_VALUES = 100_000  # in a recipe, each as often as aliases repeat it


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @field_validator("*", mode="wrap")
    @classmethod
    def _no_number_for_a_truth_value(cls, value: object, handler: Callable[[object], object]) -> object:
        """And no truth value for a number; and no text that cannot be written."""
        found = handler(value)
        for text in found if isinstance(found, list | tuple) else [found]:
            if isinstance(text, str) and NO_TEXT.search(text):
                raise PydanticCustomError(
                    "no_text", "input should be text without a null character or half a character"
                )
        if isinstance(value, int | float) and isinstance(value, bool) != isinstance(found, bool):
            expected = "true or false" if isinstance(found, bool) else "a number"
            raise PydanticCustomError("mixed_up", "input should be {expected}", {"expected": expected})
        return found


class DataSection(Section):
    """What is learned from."""

    path: str = Field("", description="a file, a folder, or whatever else `heed train --data` takes")


class TrainSection(Section):
    """How to train. The budget is whichever of steps, epochs and minutes is used up first; without any, 10 epochs, and
    for a translator that begins with nothing 2,000 steps where those are more."""

    steps: int | None = Field(None, ge=1, description="at most so many optimizer steps")
    epochs: float | None = Field(None, gt=0, description="at most so many passes over the data")
    minutes: float | None = Field(
        None,
        gt=0,
        description="at most so many minutes of training; measuring on the way takes at most a fifth more, "
        "unless eval_every is given",
    )
    seed: int = Field(1, ge=0, le=2**63 - 1, description="seed of everything random")
    accumulate: int = Field(1, ge=1, description="batches whose gradients are summed for a step")
    optimizer: Literal["adam", "muon"] = Field(
        "adam", description="muon: Muon for the matrices inside blocks, Adam for the rest"
    )
    lr: float = Field(2e-3, gt=0, description="learning rate at its peak")
    muon_lr: float = Field(0.02, gt=0, description="with muon: the peak rate of the matrices inside blocks")
    beta1: float = Field(0.9, ge=0, lt=1, description="of Adam: decay of its mean of the gradients")
    beta2: float = Field(0.98, ge=0, lt=1, description="of Adam: decay of its mean of their squares")
    epsilon: float = Field(1e-9, gt=0, description="of Adam: what is added to the root that it divides by")
    weight_decay: float = Field(
        0.0,
        ge=0,
        description="decoupled weight decay: a step takes away this share of a weight, times the rate; not of biases "
        "and norms",
    )
    schedule: Literal["inverse_sqrt", "cosine", "linear", "constant"] = Field(
        "cosine", description="how the learning rate falls after the warmup"
    )
    warmup: int = Field(400, ge=0, description="steps until the peak rate; a tenth of the training where that is less")
    clip: float = Field(1.0, ge=0, description="largest norm of the gradient; 0: no limit")
    average: float = Field(
        0.998,
        ge=0,
        lt=1,
        description="decay of the moving average of the weights, which is what is kept; 0: no average",
    )
    average_last: int = Field(
        0,
        ge=0,
        le=100,
        description="at the end also measure the mean of the last so many checkpoints' weights, and keep it where "
        "it is better; 0: no such mean",
    )
    lora: int = Field(
        0,
        ge=0,
        le=4096,
        description="with --from: learn low-rank adapters of this rank beside the matrices inside blocks, which stay "
        "as they are; 0: learn all weights",
    )
    lora_alpha: float | None = Field(
        None, gt=0, description="with lora: adapters count alpha / rank times; null: twice the rank"
    )
    lora_targets: tuple[Adapted, ...] = Field(
        get_args(Adapted), min_length=1, description="with lora: the maps of attention and MLP that get one"
    )
    precision: Literal["auto", "fp32", "bf16"] = Field(
        "auto", description="of the arithmetic; auto: bf16 where it is faster"
    )
    compile: bool = Field(
        False,
        description="compile the blocks by torch.compile, and launch them whole (CUDA graphs) where batches have one "
        "shape: costs half a minute at the start, and pays on a GPU",
    )
    checkpointing: bool = Field(
        False, description="compute each block again for its gradients: less memory, about a third more time"
    )
    shard: Literal["auto", "none", "optimizer", "model"] = Field(
        "auto",
        description="what several ranks hold in pieces: nothing; the optimizer and the average; or the weights and "
        "gradients too (FSDP). auto: the first of these for which there is memory, as `heed plan` counts it",
    )
    exact: bool | None = Field(
        None,
        description="compute each batch in a fixed number of shares, whose gradients are added in one order: the same "
        "weights, to the last bit, on 1, 2, 4 or 8 ranks; null: where several ranks train on CPUs",
    )
    eval_every: int | None = Field(
        None,
        ge=1,
        description="steps between measurements on all of the validation data; null: about ten in all, on as much of "
        "them as takes at most a fifth of the time",
    )
    patience: int | None = Field(
        None,
        ge=1,
        description="end after so many measurements in a row that found no better model, by its score, or by its loss "
        "while no score is better than luck; null: when the budget ends",
    )
    save_every: int | None = Field(None, ge=1, description="steps between checkpoints; null: at each measurement")
    keep: int = Field(2, ge=1, description="how many checkpoints are kept, the newest")
    tensorboard: bool = Field(
        False, description="also write the curves for TensorBoard, which is to be installed, into RUN/tensorboard"
    )
    non_finite: Literal["stop", "skip", "rollback"] = Field(
        "stop",
        description="when a loss or gradient is NaN or infinite: stop; skip the step; or go back to the last "
        "checkpoint and skip it then",
    )


class DistilSection(Section):
    """Learning from a teacher too: a larger model of the same task, tokens or classes."""

    teacher: str = Field("", description="a run whose model's probabilities are learnt beside the data")
    teacher_weight: float = Field(
        0.5, ge=0, le=1, description="weight of the divergence from the teacher; the rest is the data's loss"
    )
    temperature: float = Field(
        2.0, gt=0, description="divides the logits of both before their probabilities are compared"
    )
    hidden_weight: float = Field(
        0.0,
        ge=0,
        description="weight of the cosine distance between what the heads of both read, for models of one width",
    )


class Recipe(Section):
    """What every task's recipe has. `DEFAULTS` are what a task takes, by section, by default;
    `PRESETS` gives the sizes of its models, and `SIZES` names those that a budget of minutes chooses among,
    the smallest first."""

    DEFAULTS: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    PRESETS: ClassVar[Presets]
    SIZES: ClassVar[tuple[str, ...]] = ()
    STACKS: ClassVar[Mapping[str, str]] = {}  # fields of a model that may be less than what it starts from, and of what

    task: str = Field(description="what is trained")
    preset: str = Field(
        "",
        description="the size of the model, by name; `heed info` lists them; auto: one that suits `train.minutes`, "
        "where a task has several",
    )
    start_from: str = Field("", description="a run whose model training begins with, instead of a preset (`--from`)")
    model: dict[str, Any] = Field(
        default_factory=dict,
        description="fields of the preset to replace; with start_from dropout, and of translators fewer encoder_layers "
        "and decoder_layers, which are taken at equal distances",
    )
    data: DataSection = DataSection()
    train: TrainSection = TrainSection()

    _given: frozenset[str] = PrivateAttr(frozenset())

    @property
    def given(self) -> frozenset[str]:
        """The keys that were given, such as "preset" and "train.lr": all others are defaults."""
        return self._given

    @model_validator(mode="wrap")
    @classmethod
    def _with_defaults(cls, data: object, handler: Callable[[object], "Recipe"]) -> "Recipe":
        if not isinstance(data, dict):
            return handler(data)
        data = {name: value for name, value in data.items() if name != "preset" or value}
        plain = {
            name: value.model_dump(exclude_unset=True) if isinstance(value, Section) else value
            for name, value in data.items()
        }
        whole = dict(plain)
        for name, defaults in cls.DEFAULTS.items():
            if isinstance(plain.get(name), dict | None):
                whole[name] = {**defaults, **(plain.get(name) or {})}
        made = handler(whole)
        inside = (f"{name}.{key}" for name, value in plain.items() if isinstance(value, dict) for key in value)
        made._given = frozenset((*plain, *inside))
        return made


class DistilledRecipe(Recipe):
    """That of a task whose models may have a teacher."""

    distil: DistilSection = DistilSection()


def validated(kind: type[R], data: object, *, where: str, preset_given: str = "") -> R:
    """A task's recipe from plain data. Raises InputError. `preset_given`: the option that gave the preset, if it is not
    `where`."""
    try:
        recipe = kind.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        if first["type"] == "extra_forbidden":
            *sections, key = map(str, first["loc"])
            own = keys_in(kind, [])
            inside = [f"{name}.{key}" for name in own if key in keys_in(kind, [name])]
            if not sections and inside:
                raise InputError(f"unknown key {key!r}", where=where, fix=f"did you mean {inside[0]!r}?") from None
            raise unknown_key(key, keys_in(kind, sections), where=".".join([where, *sections])) from None
        said = "input should be a section of keys" if first["type"] == "model_type" else first["msg"].lower()
        place = place_in(kind, first["loc"]) or "the recipe"
        raise InputError(f"{place} = {first['input']!r}: {said}", where=where) from None
    if recipe.preset == AUTO and kind.SIZES:
        if recipe.train.minutes is None or recipe.start_from:
            what = "preset = auto is for a new model and a budget of minutes"
            raise InputError(what, where=where, fix="name a preset, or --set train.minutes=10")
    elif recipe.preset != kind.model_fields["preset"].default:  # for the usual one, no models are imported
        presets = kind.PRESETS()
        if recipe.preset not in presets:
            raise unknown_key(recipe.preset, list(presets), where=preset_given or f"{where}: preset")
    return recipe


def place_in(kind: type[BaseModel], parts: Sequence[str | int]) -> str:
    """Where in a recipe an error is: pydantic's path, without the types that it tried there."""
    names = keys_in(kind, [])
    keys = {*names, *(key for name in names for key in keys_in(kind, [name]))}
    return ".".join(str(part) for part in parts if isinstance(part, int) or part in keys)


def keys_in(kind: type[BaseModel], sections: Sequence[str]) -> list[str]:
    """The keys of a section of a recipe; without `sections`, the recipe's own."""
    for section in sections:
        inner = kind.model_fields[section].annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            kind = inner
    return list(kind.model_fields)


def overridden(data: dict[str, Any], settings: Sequence[str] | Mapping[str, object]) -> dict[str, Any]:
    """A recipe as plain data, with settings applied: `key=value`, such as `train.lr=3e-4`, or a mapping."""
    values = settings.items() if isinstance(settings, Mapping) else map(_key_and_value, settings)
    for key, value in values:
        *sections, last = key.split(".")
        place = data
        for section in sections:
            if not isinstance(place.get(section), dict):
                raise unknown_key(section, [name for name in place if isinstance(place[name], dict)], where="--set")
            place = place[section]
        place[last] = value
    return data


def _key_and_value(setting: str) -> tuple[str, Any]:
    key, equals, text = setting.partition("=")
    if not equals:
        raise InputError(f"{setting!r} is not key=value", where="--set", fix="for example --set train.lr=3e-4")
    return key.strip(), read_yaml(text, where=f"--set {key}")


def override(recipe: R, settings: Sequence[str] | Mapping[str, object]) -> R:
    """The recipe with settings applied: `key=value`, or a mapping. Raises InputError."""
    option = "--preset" if isinstance(settings, Mapping) and "preset" in settings else ""
    data = overridden(recipe.model_dump(mode="json"), settings)
    return validated(type(recipe), data, where="--set", preset_given=option)


def to_yaml(recipe: Recipe) -> str:
    """The recipe as YAML, with every key."""
    return FORMAT + yaml.dump(recipe.model_dump(mode="json"), Dumper=_Dumper, sort_keys=False, allow_unicode=True)


def row_of(presets: Mapping[str, Row], recipe: Recipe) -> Row:
    """The recipe's preset, with the fields that the recipe replaces. Raises InputError."""
    row = presets[recipe.preset]
    return from_json(type(row), to_json(row) | recipe.model, where=f"model (preset {recipe.preset})")


def read_yaml(text: str, *, where: str) -> Any:
    try:
        return yaml.load(text, Loader=_Loader)
    except (yaml.YAMLError, *_ODD) as error:
        raise InputError(f"not YAML: {' '.join(str(error).split())}", where=where) from None


# What PyYAML raises for a value that does not fit its tag (`!!bool x`), and for one that is nested too deeply.
_ODD = (ValueError, LookupError, AttributeError, TypeError, RecursionError)


class _Loader(yaml.SafeLoader):
    """YAML as people expect it: `no` is a string, `1e-4` is a number, `1:30` and dates are strings, and a repeated key
    is an error. So are aliases that multiply: a few lines of them make billions of values."""

    def get_single_node(self) -> yaml.Node | None:
        node = super().get_single_node()
        if node is not None and _values_in(node, {}) > MOST_VALUES:
            raise ConstructorError(None, None, f"more than {MOST_VALUES:,} values", node.start_mark)
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        names = set[str]()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in names:
                raise ConstructorError(None, None, f"the key {key.value!r} appears twice", key.start_mark)
            names.add(str(key.value))
        return super().construct_mapping(node, deep)


def _values_in(node: yaml.Node, counted: dict[int, int]) -> int:
    """The number of values in a node, those behind an alias each time; `counted` has it of the nodes that are done, and
    0 of those that are not. Raises ConstructorError for a node inside itself."""
    if id(node) not in counted:
        counted[id(node)] = 0
        inner = [] if isinstance(node, yaml.ScalarNode) else node.value
        parts = [*chain(*inner)] if isinstance(node, yaml.MappingNode) else inner
        counted[id(node)] = 1 + sum(_values_in(part, counted) for part in parts)
    elif not counted[id(node)]:
        raise ConstructorError(None, None, "a value that is inside itself", node.start_mark)
    return counted[id(node)]


class _Dumper(yaml.SafeDumper):
    """Quotes the strings that the loader would take for something else."""


_PLAIN = {
    "bool": (re.compile(r"^(?:true|True|false|False)$"), "tTfF"),
    "int": (re.compile(r"^[-+]?(?:0|[1-9][0-9_]*)$"), "-+0123456789"),
    "float": (
        re.compile(r"^[-+]?(?:\d+\.\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)$"),
        "-+0123456789.",
    ),
}
_OTHER = {f"tag:yaml.org,2002:{name}" for name in (*_PLAIN, "timestamp")}
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _OTHER]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for _name, (_pattern, _first) in _PLAIN.items():
    for _kind in (_Loader, _Dumper):
        _kind.add_implicit_resolver(f"tag:yaml.org,2002:{_name}", _pattern, list(_first))


def recipe_text(out: Path) -> str:
    """The text of recipe.yaml of the run in `out`. Raises MissingError or StorageError."""
    path = out / "recipe.yaml"
    if not path.is_file():
        raise MissingError("there is no run to continue", where=str(out), fix="check --out")
    return files.read_bytes(path, limit=LARGEST).decode(errors="replace")


def plain_recipe(out: Path) -> dict[str, Any]:
    """The content of recipe.yaml of the run in `out`, unchecked; {} where there is none."""
    if not (out / "recipe.yaml").is_file():
        return {}
    said = read_yaml(recipe_text(out), where=str(out / "recipe.yaml"))
    return said if isinstance(said, dict) else {}
