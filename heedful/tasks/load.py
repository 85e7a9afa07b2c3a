"""Which class serves a run's folder: its task.json says."""

from pathlib import Path
from typing import Any

from heedful.core.config import unknown_key
from heedful.errors import InputError, MissingError
from heedful.store import files
from heedful.tasks import ct2
from heedful.tasks.answer import Answerer
from heedful.tasks.classify import TextClassifier
from heedful.tasks.classify_images import ImageClassifier
from heedful.tasks.detect import Detector
from heedful.tasks.embed import TextEncoder
from heedful.tasks.fill import Filler
from heedful.tasks.generate import LanguageModel
from heedful.tasks.match import Matcher
from heedful.tasks.paint import Painter
from heedful.tasks.parse import Parser
from heedful.tasks.segment import Segmenter
from heedful.tasks.tag import Tagger
from heedful.tasks.translate import Translator

ENGINES = {"ctranslate2": ct2.load}  # that search in place of our own model

SERVED: dict[str, Any] = {
    "translate": Translator,
    "generate": LanguageModel,
    "classify": TextClassifier,
    "fill": Filler,
    "encode": TextEncoder,
    "parse": Parser,
    "classify-images": ImageClassifier,
    "detect": Detector,
    "match": Matcher,
    "tag": Tagger,
    "answer": Answerer,
    "segment": Segmenter,
    "paint": Painter,
}


def task_of(run: Path) -> str:
    """Raises MissingError or InputError where `run` is no model's folder."""
    if not run.is_dir():
        raise MissingError("no such folder", where=str(run), fix="check the path")
    if not (run / "task.json").is_file():
        raise MissingError("no model has been saved here yet", where=str(run), fix="train it first")
    about = files.read_json(run / "task.json")
    task = about.get("task") if isinstance(about, dict) else None
    if task not in SERVED:
        raise InputError(f"a model for {task!r}", where=str(run), fix=f"heedful knows {', '.join(SERVED)}")
    return task


def load_model(run: Path, *, device: str = "cpu", engine: str | None = None) -> Any:
    """The model of a run. With the engine "ctranslate2", a translator on a CPU that searches by that library."""
    task = task_of(run)
    if engine is None:
        return SERVED[task].load(run, device=device)
    if engine not in ENGINES:
        raise unknown_key(engine, [*ENGINES], where="engine")
    if task != "translate" or device != "cpu":
        what = f"the engine {engine!r} serves translators on a CPU, and this is a model for {task!r} on {device!r}"
        raise InputError(what, where=str(run), fix="leave out the engine")
    return ENGINES[engine](run)
