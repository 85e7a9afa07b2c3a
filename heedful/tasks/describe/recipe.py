"""The recipe of a model that writes texts about pictures."""

from typing import ClassVar, Literal

from pydantic import Field

from heedful.run.recipe import Presets
from heedful.run.task import Lazy
from heedful.tasks.shared.sections import ImagesRecipe, ImagesSection, TokenizedData


class DescribedImagesSection(ImagesSection):
    batch: int = Field(32, ge=1, description="texts in a batch, each with its picture")
    blank: bool = Field(
        False, description="show grey in place of every picture, also in use: what the texts alone would tell"
    )


class DescribeRecipe(ImagesRecipe):
    DEFAULTS: ClassVar = {"train": {"optimizer": "muon", "warmup": 200}, "images": {"flip": False}}
    PRESETS: ClassVar[Presets] = Lazy("heedful.models.vision_presets:DESCRIBERS")
    SIZES: ClassVar = ("describe-nano", "describe-micro")

    task: Literal["describe"] = "describe"
    preset: str = "describe-nano"
    data: TokenizedData = TokenizedData()
    images: DescribedImagesSection = DescribedImagesSection()
