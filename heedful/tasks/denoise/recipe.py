"""What a recipe of a denoiser says."""

from typing import ClassVar, Literal

from pydantic import Field

from heedful.run.recipe import Presets, Recipe
from heedful.run.task import Lazy
from heedful.tasks.shared.sections import DecodeSection, PackedTrain, TokenizedData


class NoisedData(TokenizedData):
    """Running text, and how it is made worse."""

    longest: int = Field(200, ge=8, description="tokens of a passage; texts are cut into such, between sentences")
    objective: Literal["spans", "infill"] = Field(
        "spans",
        description="spans: hidden behind numbered marks (T5); infill: words behind masks, sentences in another order "
        "(BART)",
    )


class DenoiseRecipe(Recipe):
    PRESETS: ClassVar[Presets] = Lazy("heedful.models.presets:TRANSLATORS")

    task: Literal["denoise"] = "denoise"
    preset: str = Field("transformer-small", description="the size of the model")
    data: NoisedData = NoisedData()
    train: PackedTrain = PackedTrain()
    decode: DecodeSection = DecodeSection()
