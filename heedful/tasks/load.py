"""Loads the model in a run's folder, by the task in its task.json."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from heedful.errors import InputError, StorageError
from heedful.run.folder import task_name
from heedful.run.recipe import plain_recipe
from heedful.run.task import Served, Task
from heedful.tasks import TASKS
from heedful.tasks.shared.served import load_by

if TYPE_CHECKING:
    from heedful.tasks.answer.use import Answerer
    from heedful.tasks.chat.use import ChatModel
    from heedful.tasks.classify.use import TextClassifier
    from heedful.tasks.classify_images.use import ImageClassifier
    from heedful.tasks.classify_sounds.use import SoundClassifier
    from heedful.tasks.decide.use import Decider
    from heedful.tasks.describe.use import Describer
    from heedful.tasks.detect.use import Detector
    from heedful.tasks.fill.use import Filler
    from heedful.tasks.fold.use import StructurePredictor
    from heedful.tasks.generate.use import LanguageModel
    from heedful.tasks.match.use import Matcher
    from heedful.tasks.paint.use import Painter
    from heedful.tasks.parse.use import Parser
    from heedful.tasks.reward.use import RewardModel
    from heedful.tasks.segment.use import Segmenter
    from heedful.tasks.shared.embed import TextEncoder
    from heedful.tasks.tag.use import Tagger
    from heedful.tasks.transcribe.use import Transcriber
    from heedful.tasks.translate.use import Translator
    from heedful.tasks.vectors.use import WordVectors

    # The classes of models that may be in a run's folder.
    Loaded: TypeAlias = (
        Answerer
        | ChatModel
        | Decider
        | Describer
        | Detector
        | Filler
        | ImageClassifier
        | LanguageModel
        | Matcher
        | Painter
        | Parser
        | RewardModel
        | Segmenter
        | SoundClassifier
        | StructurePredictor
        | Tagger
        | TextClassifier
        | TextEncoder
        | Transcriber
        | Translator
        | WordVectors
    )

# The class of each task's finished models, by its name.
CLASSES = {row.served.path.rpartition(":")[2]: row.served for row in TASKS.values()}


def row_of_run(run: Path) -> Task:
    """The row of the task of a folder's model. Raises MissingError or InputError where there is none."""
    name, about = task_name(run)
    return row_saved_as(name, about, where=run)


def refuse_other_task(run: Path) -> None:
    """Raises StorageError where task.json names another task than the run's recipe."""
    name, _ = task_name(run)
    trained = str(plain_recipe(run).get("task"))
    if trained in TASKS and (TASKS[trained].saved_as or trained) != name:
        what = f"is of a model for {name!r}, and the run was trained for {trained!r}"
        raise StorageError(what, where=str(run / "task.json"), fix="get the file from a copy of this run")


def row_saved_as(name: object, about: Mapping[str, Any], *, where: Path) -> Task:
    rows = [row for row in TASKS.values() if (row.saved_as or row.name) == name]
    for row in rows:
        if row.marked and row.marked in about:
            return row
    found = next((row for row in rows if row.name == name), None)
    if found is None:
        known = ", ".join(row.name for row in TASKS.values() if not row.saved_as)
        raise InputError(f"a model for {name!r}", where=str(where), fix=f"heedful knows {known}")
    return found


def load_model(
    run: Path,
    kind: type[Any] = object,
    *,
    device: str = "cpu",
    engine: str | None = None,
    weights: str = "float32",
) -> Any:
    """Loads the model of a run, which must be of the class `kind`. With the engine "ctranslate2" a translator on a CPU
    searches with that library, with "llama.cpp" a language model writes with it; with "auto" they do so where possible.
    With `weights` int8 or int4 the model has fewer bits, on a CPU. Raises MissingError, InputError or StorageError."""
    row = row_of_run(run)
    if not isinstance(kind, type):
        fix = f'heedful.load(run, heedful.{row.served().__name__}, device="cpu")'
        raise InputError(f"{kind!r} is no class of models", where="kind", fix=fix)
    if not issubclass(row.served(), kind):
        what = (
            f"a model for {row.name!r}, {_with_article(row.served().__name__)} and not {_with_article(kind.__name__)}"
        )
        raise InputError(what, where=str(run), fix=f"heedful.load(run, heedful.{row.served().__name__})")
    if engine not in row.engines and any(engine in each.engines for each in TASKS.values()):
        what = f"the engine {engine!r} serves translators, and this is a model for {row.name!r}"
        raise InputError(what, where=str(run), fix="leave out the engine")
    return load_by(row, run, device=device, engine=engine, weights=weights)


def _with_article(name: str) -> str:
    return f"{'an' if name[0] in 'AEIO' else 'a'} {name}"


def row_of_model(served: Served) -> Task:
    """The row of the task of a loaded model."""
    return row_saved_as(served.about.get("task"), served.about, where=Path("task.json"))
