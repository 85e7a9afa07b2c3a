"""The recipe of a classifier of pictures."""

from typing import ClassVar, Literal

from pydantic import Field

from heedful.run.recipe import DistilledRecipe, Presets
from heedful.run.task import Lazy
from heedful.tasks.shared.sections import ImagesRecipe, ImagesSection, ImagesTrain


class LabelledImagesSection(ImagesSection):
    mixup: float = Field(
        0.0, ge=0, description="mix pictures in pairs, with shares drawn from Beta(mixup, mixup); 0: do not"
    )
    mirrored: bool = Field(False, description="in use, average over a picture and its mirror image")


class ClassifyImagesRecipe(ImagesRecipe, DistilledRecipe):
    DEFAULTS: ClassVar = {"train": {"optimizer": "muon", "warmup": 200}}
    PRESETS: ClassVar[Presets] = Lazy("heedful.models.vision_presets:VISION_TRANSFORMERS")
    SIZES: ClassVar = ("vit-nano28", "vit-micro32")

    task: Literal["classify-images"] = "classify-images"
    preset: str = "vit-nano28"
    train: ImagesTrain = ImagesTrain()
    images: LabelledImagesSection = LabelledImagesSection()
