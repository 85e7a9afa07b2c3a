"""The recipe of a language model of pixels."""

from typing import ClassVar, Literal

from pydantic import Field

from heedful.run.recipe import Presets
from heedful.run.task import Lazy
from heedful.tasks.shared.sections import ImagesRecipe, ImagesSection, ImagesTrain


class PaletteSection(ImagesSection):
    colours: int | None = Field(None, ge=2, le=4096, description="size of the palette; null: 16 greys or 512 colours")


class PaintTrain(ImagesTrain):
    eval_sentences: int = Field(400, ge=1, description="validation pictures used in each measurement")


class PaintRecipe(ImagesRecipe):
    DEFAULTS: ClassVar = {
        "train": {"optimizer": "muon", "warmup": 100, "eval_sentences": 100},
        "images": {"batch": 16, "augment": "none"},
    }
    PRESETS: ClassVar[Presets] = Lazy("heedful.models.presets:PAINTERS")

    task: Literal["paint"] = "paint"
    preset: str = "image-gpt-nano"
    train: PaintTrain = PaintTrain()
    images: PaletteSection = PaletteSection()
