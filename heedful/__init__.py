"""One attention core, and every transformer family as a short assembly on it.

model = heedful.load("runs/demo")
model.translate(["The small cat is sleeping."])
"""

from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heedful.tasks.recipe import Recipe
    from heedful.tasks.run import Finished

__version__ = metadata.version("heedful")


def load(run: str | Path, *, device: str = "cpu", engine: str | None = None) -> Any:
    """The model in a run's folder: a `Translator` to translate, a `LanguageModel` to generate, and so on, as
    `heedful.tasks.load.SERVED` lists them by the task that they were trained for. All but bare encoders `evaluate`.
    With the engine "ctranslate2", a `Translator` that searches by that library.

    torch is imported only now.
    """
    from heedful.tasks.load import load_model

    return load_model(Path(run), device=device, engine=engine)


def train(recipe: "Recipe", out: str | Path, *, resume: bool = False) -> "Finished | None":
    """Trains into the folder `out`, or goes on there. For the steps on the way, see `heedful.tasks.run.train`.

    Under `torchrun`, None on all ranks but the first.
    """
    from heedful.tasks.run import Finished
    from heedful.tasks.run import train as events

    for event in events(recipe, Path(out), resume=resume):
        if isinstance(event, Finished):
            return event
    return None
