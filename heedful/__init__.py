"""One attention core, and every transformer family as a short assembly on it.

model = heedful.load("runs/demo")
model.translate(["The small cat is sleeping."])
"""

from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from heedful.core.arguments import as_arguments, checks_arguments, names_arguments, refuse_other

if TYPE_CHECKING:
    from heedful.run.device import Device
    from heedful.run.events import Event, Finished
    from heedful.run.recipe import Recipe
    from heedful.tasks.load import (
        Answerer,
        ChatModel,
        Decider,
        Describer,
        Detector,
        Filler,
        ImageClassifier,
        LanguageModel,
        Loaded,
        Matcher,
        Painter,
        Parser,
        RewardModel,
        Segmenter,
        SoundClassifier,
        StructurePredictor,
        Tagger,
        TextClassifier,
        TextEncoder,
        Transcriber,
        Translator,
        WordVectors,
    )
    from heedful.tasks.recipes import Sections
    from heedful.verbs.memory import Data

__version__ = metadata.version("heedful")
__all__ = [
    "Answerer",
    "ChatModel",
    "Decider",
    "Describer",
    "Detector",
    "Filler",
    "ImageClassifier",
    "LanguageModel",
    "Matcher",
    "Painter",
    "Parser",
    "RewardModel",
    "Segmenter",
    "SoundClassifier",
    "StructurePredictor",
    "Tagger",
    "TextClassifier",
    "TextEncoder",
    "Transcriber",
    "Translator",
    "WordVectors",
    "load",
    "recipe",
    "train",
]
M = TypeVar("M")


def _keys() -> Mapping[str, str]:
    from heedful.tasks import keys_of_options

    return keys_of_options()


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if not TYPE_CHECKING:  # so that a misspelt name is told before it runs

    def __getattr__(name: str) -> object:
        """The classes of finished models are imported when they are asked for, and torch with them."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from heedful.tasks.load import CLASSES

        return CLASSES[name]()


@overload
def load(
    run: str | Path, *, device: "Device" = "cpu", engine: str | None = None, weights: str = "float32"
) -> "Loaded": ...
@overload
def load(
    run: str | Path, kind: type[M], *, device: "Device" = "cpu", engine: str | None = None, weights: str = "float32"
) -> M: ...
@names_arguments(_keys)
@checks_arguments
def load(
    run: str | Path,
    kind: "type[Any]" = object,
    *,
    device: "Device" = "cpu",
    engine: str | None = None,
    weights: str = "float32",
) -> Any:
    """The model in a run's folder: a `Translator` to translate, a `LanguageModel` to generate, and so on, as the rows
    of `heedful.tasks.TASKS` say by the task that they were trained for. All but bare encoders `evaluate`. With the
    engine "ctranslate2", a `Translator` that searches by that library, and with "llama.cpp" a `LanguageModel` that
    writes by it; with `weights` int8 or int4 (on a CPU), a model that is faster and less exact: `heed eval --weights
    int8` tells what that costs. `device` is "cpu", "cuda", "cuda:1", or "auto" for the best one here.

    An editor is told that it is one of all these, and exactly which by `kind`: `load("runs/demo", heedful.Translator)`,
    which raises InputError for any other. torch is imported only now.
    """
    from heedful.verbs.opened import open_model

    return open_model(Path(run), kind, device=device, engine=engine, weights=weights)


@names_arguments(_keys)
@checks_arguments
def recipe(task: str | None = None, **sections: "Unpack[Sections]") -> "Recipe":
    """What a training needs to know: `recipe("tag", preset="encoder-tiny", data={"path": "tags.tsv"}, train={"minutes":
    5})`. docs/recipe.md lists the sections and keys of each task. Raises InputError."""
    from heedful.tasks.recipes import recipe as made

    return made(task, **sections)


@names_arguments(_keys)
@checks_arguments
def train(
    recipe: "Recipe | str",
    out: str | Path,
    *,
    data: "Data | None" = None,
    source: str | None = None,
    target: str | None = None,
    preset: str | None = None,
    start_from: str | Path | None = None,
    minutes: float | None = None,
    settings: Sequence[str] | Mapping[str, object] = (),
    resume: bool = False,
    device: "Device" = "auto",
    progress: bool = True,
    callback: Callable[["Event"], object] | None = None,
) -> "Finished | None":
    """Trains into the folder `out`, or continues there, as `heed train` does. `recipe` is one, or the name of a task or
    of a recipe file; all else overrides it, `settings` last: {"train.steps": 300}, or ["train.steps=300"]. `device` is
    "auto", "cpu", "cuda" or "cuda:1".

    With `progress`, a bar and a few lines are shown on standard error. `callback` is called with each event of
    `heedful.run.events`: `Trained` after each step, `Measured` after each measurement, and so on.

    `data` are paths, as for `--data`; or what is in memory: a list of (source, target) or (text, label), of (words,
    labels) or of objects with the keys of a .jsonl file, a table of pandas, polars or `datasets`, a dict of columns, or
    a dict of such under "train", "valid" and "test", which are first written into the folder `out`.data; or `Parts` of
    examples, or of pictures in tensors, which are taken as they are.

    Under `torchrun`, None on all ranks but the first.
    """
    from heedful.run.recipe import Recipe
    from heedful.tasks.recipes import read_recipe
    from heedful.verbs.memory import path_and_corpus
    from heedful.verbs.train import as_settings, planned, watched
    from heedful.verbs.train import train as events

    refuse_other("recipe", recipe, Recipe | str, where="train")
    named = read_recipe(recipe) if isinstance(recipe, str) else recipe
    pairs = "source" in type(named.data).model_fields
    path, corpus = path_and_corpus(data, Path(out), (source, target), pairs=pairs)
    given: dict[str, object] = {"data.path": path, "data.source": source, "data.target": target}
    given |= {"preset": preset, "start_from": start_from, "train.minutes": minutes}
    asked = as_settings(settings) if isinstance(settings, Mapping) else settings
    made, told = planned(recipe, Path(out), given, settings=asked, resume=resume, device=str(device), corpus=corpus)
    training = events(made, Path(out), resume=resume, corpus=corpus, device=str(device), choices=told)
    return watched(training, callback, lambda text: as_arguments(text, _keys()), progress=progress)
