"""The recipe of an encoder that fills blanks."""

from typing import ClassVar, Literal

from pydantic import Field

from heedful.run.recipe import DistilledRecipe, Presets
from heedful.run.task import Lazy
from heedful.tasks.shared.sections import SmoothedTrain, TextRecipe, TokenizedData


class MaskedData(TokenizedData):
    """Running text, and what is hidden of it."""

    whole_words: bool = Field(False, description="mask all tokens of a word together")
    pairs: Literal["none", "next", "order"] = Field(
        "none", description="also learn whether a text follows another (BERT), or whether two are in order (ALBERT)"
    )


class FillRecipe(TextRecipe, DistilledRecipe):
    DEFAULTS: ClassVar = {"train": {"optimizer": "muon", "lr": 4e-3, "warmup": 100}}
    PRESETS: ClassVar[Presets] = Lazy("heedful.models.presets:ENCODERS")
    SIZES: ClassVar = ("modern-tiny", "modern-small")
    FORM: ClassVar = "text with a mask"
    MASKED: ClassVar = True

    task: Literal["fill"] = "fill"
    preset: str = "modern-tiny"
    data: MaskedData = MaskedData()
    train: SmoothedTrain = SmoothedTrain()
