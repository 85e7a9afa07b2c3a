"""Writes docs/recipe.md from the classes that read recipes:

python -m docs.make_recipe

What a key is for is said once, as the description of its field; what a field of `model:` is for, in MODEL below, since
many sizes have the same ones.
"""

import dataclasses
import inspect
import json
import types
import typing
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

from heedful.models.counts import PARAMETERS
from heedful.models.resnet import ResNetConfig
from heedful.run.recipe import DataSection, Recipe, Section, TrainSection
from heedful.run.task import Task
from heedful.tasks import trained
from heedful.tasks.shared import sections
from heedful.tasks.shared.sections import BeamSection, ImagesSection

PAGE = Path(__file__).parent / "recipe.md"
OPENING = """\
# Recipes

A recipe is all that a training run needs to know: the task, the size of the model, the data, and how to train. Every
key has a default, so a recipe says only what is to be different, and the run's folder keeps all of it in `recipe.yaml`.
A key that the task does not read is an error that names the nearest one that it does.

    heed train tag --data tags.tsv --set train.minutes=5 --set model.n_layers=2

is the same as `heed train mine.yaml`, where mine.yaml is

    task: tag
    model: {n_layers: 2}
    data: {path: tags.tsv}
    train: {minutes: 5}

or `heed train mine.py`, where mine.py defines

    recipe = heedful.recipe("tag", model={"n_layers": 2}, data={"path": "tags.tsv"}, train={"minutes": 5})

`--set` comes last and wins. The folder `recipes/` has recipes of published runs, each with what it reached. Below are
the keys of every task, then those of the sections that several tasks share, then each task's own, then the fields of
`model:`. This page is written by `docs/make_recipe.py`.
"""
HEADER = ("| key | value | default | what it does |", "|---|---|---|---|")
SHARED: tuple[type[Section], ...] = (DataSection, TrainSection, BeamSection, ImagesSection)

# The fields of `model:`, by their names, or by their sizes' and theirs. What null means is told where it may be null.
MODEL = {
    "method": "how vectors of words are learnt (`--method`)",
    "activation": "of the MLP; null: as published",
    "attention_dropout": "dropout of attention weights",
    "backbone": "the ResNet in front; one that is given replaces the preset's as a whole",
    "channels": "1 grey, 3 colours; taken from the data",
    "context_length": "how many positions; null: no last one",
    "d_align": "width of the alignment model, which scores a source position",
    "d_common": "width of the vectors in which pictures and texts meet",
    "d_embed": "width of the embeddings",
    "d_ff": "width inside the MLP; null: four times d_model",
    "d_head": "width of the head, where the stages' maps come together",
    "d_hidden": "width of the recurrent state",
    "d_msa": "width of the vector of a residue in each sequence",
    "d_pair": "width of the vector of two residues",
    "distances": "intervals of distances that are told apart",
    "recycles": "passes before the last, each of which continues the one before",
    "structure_layers": "layers of the structure module, which share their weights",
    "d_encoder": "width of the encoder; null: d_model",
    "encoder_heads": "attention heads of the encoder; null: n_heads",
    "DescribeSize.stem": "widths of 3 x 3 convolutions before the patches",
    "d_model": "width of the model: numbers in the vector of a token or a patch",
    "d_state": "numbers of an observation; taken from the data",
    "d_readout": "width of the layer before the output",
    "RNNSize.attention": "Look back at the source before each word; false: all that is known of it is one vector, the "
    "encoder's last state, and d_align is not used.",
    "decoder_layers": "blocks of the decoder",
    "depths": "blocks of each stage",
    "drop_path": "chance to leave out a branch of the last block; it grows from 0 at the first",
    "dropout": "dropout",
    "encoder_layers": "blocks of the encoder",
    "experts": "MLPs of a block, of which a token uses a few; null: one MLP, which all use",
    "experts_balance": "weight of the loss that keeps experts equally busy, beside the loss of a token; learnt in "
    "translate, summarise, generate, chat and paint",
    "experts_used": "experts that a token uses",
    "gated": "the MLP has a gate",
    "head_dim": "width of a head; null: d_model / n_heads",
    "head_dropout": "dropout before the classes",
    "head_norm": "norm of the head",
    "heads": "attention heads of each stage",
    "image_heads": "attention heads of the pictures' tower",
    "image_layers": "blocks of the pictures' tower",
    "image_width": "width of the pictures' tower",
    "input_loss": "weight of the loss of predicting the source too",
    "kind": "two 3 x 3 convolutions in a block, or 1 x 1, 3 x 3, 1 x 1",
    "kv_heads": "heads of keys and values, which queries share in groups; null: n_heads",
    "longest": "steps of an episode at most; taken from the data",
    "n_actions": "actions to choose from, or numbers of one; taken from the data",
    "mels": "mel bands that are heard",
    "n_classes": "classes; taken from the data",
    "n_heads": "attention heads",
    "n_layers": "blocks",
    "n_queries": "things found in a picture at most",
    "norm": "kind of norm",
    "order": "where norms are: after a branch, before it, or both",
    "patch": "edge of a patch, in pixels",
    "patch_rows": "rows of pixels in a patch that is no square, such as the height of a line of print; `patch` says "
    "its columns; null: a square",
    "patches": "edge of a patch in each stage, in positions of the stage before",
    "position": "how attention is told positions; null: as published",
    "position_embeddings": "learned, or fixed sines and cosines",
    "positions": "of the encoder, fifty a second; taken from `sound.seconds` or the data",
    "prefix": "the source attends to all of itself, as in an encoder; needs input_loss 0",
    "readout": "classes are read at a token of their own, or at the mean of the patches",
    "shorten": "keys and values of each stage are made from squares of so many rows and columns",
    "size": "edge of a picture, in pixels; taken from `images.size` or the data",
    "stem": "width of the first convolution",
    "ViTSize.stem": "widths of 3 x 3 convolutions before the patches",
    "strides": "step between the patches of each stage",
    "style": "the family's architecture",
    "teacher": "a second token that learns from a teacher (DeiT)",
    "text_heads": "attention heads of the texts' tower",
    "text_layers": "blocks of the texts' tower",
    "text_width": "width of the texts' tower",
    "tied": "the output matrix is that of the embeddings",
    "vocab_size": "different tokens; taken from the tokenizer",
    "widths": "width of each stage",
    "window": "attend to tokens less than so many positions away; null, without block and stride too: to all",
    "dilation": "of a window, only tokens whose distance is a multiple of this",
    "block": "attend to tokens in the same block of so many positions",
    "stride": "attend also to the last of each so many positions",
    "global_tokens": "beside a window, block or stride: the first so many tokens are seen by all, and see all",
    "compress": "in every second layer (without window and block: in all) the keys of so many tokens become one",
    "ViTSize.depths": "blocks of each further stage; before each, 2 x 2 patches become one of twice the width (Swin)",
    "ViTSize.window": "attend only within squares of so many patches; null: to all",
}


def page() -> str:
    """The whole of docs/recipe.md."""
    tasks = {name: row.recipe() for name, row in trained().items() if row.recipe is not None}
    sizes = [kind for recipe in tasks.values() for kind in sizes_of(recipe)]
    lines = [
        OPENING,
        *every_task(),
        *(line for kind in SHARED for line in shared(kind, tasks)),
        *(line for row in trained().values() for line in own(row, tasks)),
        "## The fields of `model:`\n",
        "A preset is a row of such fields, which `model:` changes. The default below is for presets that do not say.\n",
        *(line for kind in dict.fromkeys(sizes) for line in model_fields(kind)),
        *model_fields(ResNetConfig, "## The fields of `backbone`"),
    ]
    return "\n".join(lines).rstrip() + "\n"


def every_task() -> Iterator[str]:
    yield "## Every task\n"
    yield from HEADER
    for name in ("task", "preset", "start_from", "model"):
        value = "fields and their values" if name == "model" else "text"
        default = {"task": "`translate`", "preset": "see the task"}.get(name, "none")
        yield f"| `{name}` | {value} | {default} | {description(Recipe, name)} |"
    yield ""


def shared(kind: type[Section], tasks: dict[str, type[Recipe]]) -> Iterator[str]:
    """The keys of a section that several tasks share; `kind` is its smallest, and others add to it."""
    (name,) = {
        name for recipe in tasks.values() for name, read in sections_of(recipe).items() if issubclass(read, kind)
    }
    yield f"## `{name}`\n"
    yield f"{inspect.getdoc(kind)}\n"
    yield HEADER[0] + " read by |"
    yield HEADER[1] + "---|"
    for each in (kind, *(each for each in vars(sections).values() if is_below(each, kind))):
        readers = [task for task, recipe in tasks.items() if issubclass(sections_of(recipe).get(name, Section), each)]
        who = "every task" if len(readers) == len(tasks) else ", ".join(readers)
        yield from (f"{line} {who} |" for line in rows(each, name))
    yield ""


def own(row: Task, tasks: dict[str, type[Recipe]]) -> Iterator[str]:
    """What only this task reads, and its defaults where they are not those of the tables above."""
    recipe = tasks[row.name]
    yield f"## {row.name}\n"
    read = ", ".join(f"`{name}`" for name in sections_of(recipe))
    yield f"Learns from {row.data}. Sections: {read}.\n"
    changed = {f"{section}.{key}": value for section, keys in recipe.DEFAULTS.items() for key, value in keys.items()}
    changed = {"preset": recipe.model_fields["preset"].default, **changed}
    yield f"Defaults: {', '.join(f'`{key}: {shown(value)}`' for key, value in changed.items())}.\n"
    alike = next((name for name, other in tasks.items() if other in recipe.__mro__[1:]), "")
    if alike:
        yield f"All else is as for [{alike}](#{alike}).\n"
        return
    keys = [line for name, kind in sections_of(recipe).items() if not is_shared(kind) for line in rows(kind, name)]
    if keys:
        yield from (*HEADER, *keys, "")
    for kind in sizes_of(recipe):
        names = presets_of(recipe, kind)
        first = next(name for name, other in tasks.items() if presets_of(other, kind) == names)
        counted = ", ".join(f"`{name}` ({millions(PARAMETERS[name])})" for name in names)
        told = counted if first == row.name else f"as for [{first}](#{first})"
        yield f"Presets with the fields of [{kind.__name__}](#{kind.__name__.lower()}): {told}.\n"


def model_fields(kind: type[Any], heading: str = "") -> Iterator[str]:
    hints = typing.get_type_hints(kind)
    yield f"{heading or f'### {kind.__name__}'}\n"
    yield from HEADER
    for field in dataclasses.fields(kind):
        needed = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        default = "the preset's" if needed else f"`{shown(field.default)}`"
        told = MODEL.get(f"{kind.__name__}.{field.name}") or MODEL[field.name]
        if type(None) not in typing.get_args(hints[field.name]):
            told = told.partition("; null:")[0]
        yield f"| `{field.name}` | {values(hints[field.name])} | {default} | {told} |"
    yield ""


def rows(kind: type[Section], section: str) -> Iterator[str]:
    """A line for each key that this class declares itself."""
    for name in inspect.get_annotations(kind):
        field = kind.model_fields[name]
        value = values(field.annotation, field.metadata)
        yield f"| `{section}.{name}` | {value} | `{shown(field.default)}` | {description(kind, name)} |"


def description(kind: type[Section], name: str) -> str:
    found = kind.model_fields[name].description
    if not found:
        raise ValueError(f"{kind.__name__}.{name} needs a description")
    return found


def values(kind: Any, limits: Iterable[Any] = ()) -> str:
    """The values that a key may have, for a reader: "from 1 to 64", "`adam`, `muon`", "number, or null"."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        others = [each for each in inner if each is not type(None)]
        told = ", ".join(values(each, limits) for each in others)
        return f"{told}, or null" if len(others) < len(inner) else told
    if origin is Literal:
        return ", ".join(f"`{shown(each)}`" for each in inner)
    if origin is tuple:
        return "list of whole numbers" if inner[0] is int else f"list of {values(inner[0])}"
    if dataclasses.is_dataclass(kind):
        return "fields and their values"
    noun = {int: "whole number", float: "number", str: "text", bool: "`true`, `false`"}[kind]
    words = {"ge": "from", "gt": "above", "le": "to", "lt": "and below"}
    ends = {
        word: getattr(limit, end)
        for limit in limits
        for end, word in words.items()
        if getattr(limit, end, None) is not None
    }
    return " ".join([noun, *(f"{word} {ends[word]:,}" for word in words.values() if word in ends)])


def shown(value: object) -> str:
    """As YAML has it; a text without quotes where it has letters."""
    return value if isinstance(value, str) and value else json.dumps(value)


def millions(count: int) -> str:
    return f"{count / 1e9:.1f}B" if count >= 1e9 else f"{count / 1e6:.1f}M"


def sections_of(recipe: type[Recipe]) -> dict[str, type[Section]]:
    kinds = {name: field.annotation for name, field in recipe.model_fields.items()}
    return {name: kind for name, kind in kinds.items() if isinstance(kind, type) and issubclass(kind, Section)}


def sizes_of(recipe: type[Recipe]) -> list[type[Any]]:
    return list(dict.fromkeys(type(size) for size in recipe.PRESETS().values()))


def presets_of(recipe: type[Recipe], kind: type[Any]) -> list[str]:
    return [name for name, size in recipe.PRESETS().items() if type(size) is kind]


def is_below(kind: object, other: type[Section]) -> bool:
    return isinstance(kind, type) and issubclass(kind, other) and kind is not other and kind not in SHARED


def is_shared(kind: type[Section]) -> bool:
    return kind in SHARED or kind.__module__ == sections.__name__


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
