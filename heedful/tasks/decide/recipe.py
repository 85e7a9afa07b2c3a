"""The recipe of a model that decides."""

from typing import ClassVar, Literal

from pydantic import Field

from heedful.run.recipe import DataSection, Presets, Recipe
from heedful.run.task import Lazy
from heedful.tasks.shared.sections import TokenTrain


class EpisodesData(DataSection):
    """Episodes, and how much of one is read at a time."""

    environment: str = Field(
        "", description="the environment in which the model is tried; that of data.path, if it names one"
    )
    context: int = Field(20, ge=1, le=1024, description="steps of an episode that are read at a time")


class DecideRecipe(Recipe):
    DEFAULTS: ClassVar = {"train": {"lr": 1e-3, "warmup": 100}}
    PRESETS: ClassVar[Presets] = Lazy("heedful.models.decision:DECISIONS")

    task: Literal["decide"] = "decide"
    preset: str = "decision-nano"
    data: EpisodesData = EpisodesData()
    train: TokenTrain = TokenTrain()
