"""The recipe of a parser."""

from typing import ClassVar, Literal

from pydantic import Field

from heedful.run.recipe import Presets
from heedful.run.task import Lazy
from heedful.tasks.shared.sections import BeamSection, PackedTrain, TextRecipe, TokenizedData


class TreesData(TokenizedData):
    """Where the trees are, and how their words become tokens."""

    longest: int = Field(
        200, ge=8, description="at most so many tokens in a linearised tree; longer ones are left out of training"
    )


class ParseRecipe(TextRecipe):
    DEFAULTS: ClassVar = {"data": {"longest": 500}, "train": {"row": 128}}
    PRESETS: ClassVar[Presets] = Lazy("heedful.models.presets:PARSERS")
    SIZES: ClassVar = ("transformer-tiny", "transformer-small")

    task: Literal["parse"] = "parse"
    preset: str = "transformer-tiny"
    data: TreesData = TreesData()
    train: PackedTrain = PackedTrain()
    decode: BeamSection = BeamSection()
