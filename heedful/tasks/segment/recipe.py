"""The recipe of a segmenter."""

from typing import ClassVar, Literal

from heedful.run.recipe import Presets
from heedful.run.task import Lazy
from heedful.tasks.shared.sections import ImagesRecipe


class SegmentRecipe(ImagesRecipe):
    DEFAULTS: ClassVar = {"train": {"lr": 1e-3, "warmup": 100}, "images": {"batch": 16}}
    PRESETS: ClassVar[Presets] = Lazy("heedful.models.vision_presets:SEGMENTERS")
    SIZES: ClassVar = ("segformer-nano", "segformer-micro")

    task: Literal["segment"] = "segment"
    preset: str = "segformer-micro"
