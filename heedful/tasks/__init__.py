"""All tasks, a row each. No other module lists them."""

from collections.abc import Mapping
from typing import Any

from heedful.run.task import Lazy, NoOptions, Task

ROWS: tuple[Lazy[Task], ...] = (
    Lazy("heedful.tasks.translate:TRANSLATE"),
    Lazy("heedful.tasks.summarise:SUMMARISE"),
    Lazy("heedful.tasks.generate:GENERATE"),
    Lazy("heedful.tasks.chat:CHAT"),
    Lazy("heedful.tasks.classify:CLASSIFY"),
    Lazy("heedful.tasks.tag:TAG"),
    Lazy("heedful.tasks.answer:ANSWER"),
    Lazy("heedful.tasks.fill:FILL"),
    Lazy("heedful.tasks.denoise:DENOISE"),
    Lazy("heedful.tasks.parse:PARSE"),
    Lazy("heedful.tasks.classify_images:CLASSIFY_IMAGES"),
    Lazy("heedful.tasks.detect:DETECT"),
    Lazy("heedful.tasks.segment:SEGMENT"),
    Lazy("heedful.tasks.match:MATCH"),
    Lazy("heedful.tasks.describe:DESCRIBE"),
    Lazy("heedful.tasks.paint:PAINT"),
    Lazy("heedful.tasks.decide:DECIDE"),
    Lazy("heedful.tasks.transcribe:TRANSCRIBE"),
    Lazy("heedful.tasks.classify_sounds:CLASSIFY_SOUNDS"),
    Lazy("heedful.tasks.fold:FOLD"),
    Lazy("heedful.tasks.vectors:VECTORS"),
    Lazy("heedful.tasks.encode:ENCODE"),
    Lazy("heedful.tasks.reward:REWARD"),
    Lazy("heedful.tasks.prefer:PREFER"),
)
TASKS: Mapping[str, Task] = {row.name: row for row in (part() for part in ROWS)}

DEFAULT = next(iter(TASKS))  # the task of a recipe that names none


def scoring_options(row: Task) -> type[Any]:
    """The options of `heed eval` for models of this task."""
    options = row.eval_options or Lazy[type[Any]]("heedful.tasks.shared.options:DataOptions")
    return NoOptions if row.evaluate is None else options()


def keys_of_options() -> dict[str, str]:
    """The keys of recipes that only the command line has options for, by the options' names."""
    named = {name: option.key for row in trained().values() for name, option in row.train_options.items()}
    return {"lora": "train.lora"} | {name: key for name, key in named.items() if name not in ("source", "target")}


def trained() -> dict[str, Task]:
    """The tasks of `heed train`, by name."""
    return {name: row for name, row in TASKS.items() if row.job is not None}
