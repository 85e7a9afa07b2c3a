"""The recipe of a language model."""

from typing import ClassVar, Literal

from pydantic import Field

from heedful.run.recipe import DistilledRecipe, Presets
from heedful.run.task import Lazy
from heedful.tasks.shared.sections import SmoothedTrain, TextRecipe, TokenizedData


class RunningData(TokenizedData):
    """Running text, and how it becomes rows of tokens."""

    across: bool = Field(True, description="a token may attend to earlier documents in its row")


class GenerateRecipe(TextRecipe, DistilledRecipe):
    PRESETS: ClassVar[Presets] = Lazy("heedful.models.presets:LANGUAGE_MODELS")

    task: Literal["generate"] = "generate"
    preset: str = "gpt-nano"
    data: RunningData = RunningData()
    train: SmoothedTrain = SmoothedTrain()
