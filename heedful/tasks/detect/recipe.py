"""The recipe of a detector."""

from typing import ClassVar, Literal

from heedful.run.recipe import Presets
from heedful.run.task import Lazy
from heedful.tasks.shared.sections import ImagesRecipe


class DetectRecipe(ImagesRecipe):
    DEFAULTS: ClassVar = {"train": {"optimizer": "muon", "lr": 1e-3, "muon_lr": 0.02}, "images": {"batch": 32}}
    PRESETS: ClassVar[Presets] = Lazy("heedful.models.vision_presets:DETECTORS")

    task: Literal["detect"] = "detect"
    preset: str = "detr-nano-affine"
