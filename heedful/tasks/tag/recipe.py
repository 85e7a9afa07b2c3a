"""The recipe of a tagger."""

from typing import ClassVar, Literal

from heedful.run.recipe import DistilledRecipe, Presets
from heedful.run.task import Lazy
from heedful.tasks.shared.sections import SmoothedTrain, TextRecipe


class TagRecipe(TextRecipe, DistilledRecipe):
    DEFAULTS: ClassVar = {"train": {"lr": 5e-4, "warmup": 100}}
    PRESETS: ClassVar[Presets] = Lazy("heedful.models.presets:ENCODERS")
    SIZES: ClassVar = ("encoder-tiny", "encoder-small")

    task: Literal["tag"] = "tag"
    preset: str = "encoder-tiny"
    train: SmoothedTrain = SmoothedTrain()
