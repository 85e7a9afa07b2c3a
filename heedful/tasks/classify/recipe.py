"""The recipe of a classifier of texts."""

from typing import ClassVar, Literal

from pydantic import Field

from heedful.run.recipe import DistilledRecipe, Presets, Section
from heedful.run.task import Lazy
from heedful.tasks.shared.sections import SmoothedTrain, TextRecipe


class ClassifySection(Section):
    symmetric: bool = Field(False, description="the texts of a pair have no order, and are read in both")
    auxiliary: float | None = Field(
        None,
        ge=0,
        description="weight of the loss of predicting the texts too; null: 0.5 for a language model, none for an "
        "encoder, which cannot",
    )


class ClassifyRecipe(TextRecipe, DistilledRecipe):
    DEFAULTS: ClassVar = {"train": {"lr": 5e-4, "warmup": 100}}
    PRESETS: ClassVar[Presets] = Lazy("heedful.models.presets:READERS")
    SIZES: ClassVar = ("gpt-nano", "gpt-mini", "gpt-micro")

    task: Literal["classify"] = "classify"
    preset: str = "gpt-mini"
    train: SmoothedTrain = SmoothedTrain()
    classify: ClassifySection = ClassifySection()
