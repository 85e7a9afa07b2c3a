"""The recipe of a denoiser."""

from typing import ClassVar, Literal

from pydantic import Field

from heedful.run.recipe import Presets
from heedful.run.task import Lazy
from heedful.tasks.shared.sections import DecodeSection, PackedTrain, TextRecipe, TokenizedData


class NoisedData(TokenizedData):
    """Running text, and how it is made worse."""

    longest: int = Field(200, ge=8, description="tokens in a passage; texts are cut into passages between sentences")
    objective: Literal["spans", "infill"] = Field(
        "spans",
        description="spans: spans hidden behind numbered marks (T5); infill: spans behind masks, and sentences in "
        "another order (BART)",
    )


class DenoiseRecipe(TextRecipe):
    PRESETS: ClassVar[Presets] = Lazy("heedful.models.presets:TRANSLATORS")
    SIZES: ClassVar = ("transformer-tiny", "transformer-small", "transformer-base-pre")

    task: Literal["denoise"] = "denoise"
    preset: str = "transformer-small"
    data: NoisedData = NoisedData()
    train: PackedTrain = PackedTrain()
    decode: DecodeSection = DecodeSection()
