"""The recipe of a model that turns speech into text."""

from typing import ClassVar, Literal

from pydantic import Field

from heedful.run.recipe import Presets, Section
from heedful.run.task import Lazy
from heedful.tasks.shared.sections import TextRecipe


class SoundSection(Section):
    """What is heard, and how it is changed while a model learns from it."""

    seconds: int | None = Field(
        None, ge=1, le=60, description="whole seconds of a window; null: what the longest training sound needs"
    )
    batch: int = Field(32, ge=1, description="sounds in a batch")
    augment: bool = Field(
        True, description="other speeds, heights and loudnesses, and stripes of bands and time left out (SpecAugment)"
    )


class SpeechSection(SoundSection):
    language: str = Field(
        "", description="with start_from, of a model with several languages: the one that is spoken in these data"
    )


class TranscribeRecipe(TextRecipe):
    DEFAULTS: ClassVar = {"data": {"tokenizer": "chars"}, "train": {"optimizer": "muon", "warmup": 200}}
    PRESETS: ClassVar[Presets] = Lazy("heedful.models.speech_presets:SPEECH")
    SIZES: ClassVar = ("speech-nano", "speech-micro")

    task: Literal["transcribe"] = "transcribe"
    preset: str = "speech-nano"
    sound: SpeechSection = SpeechSection()
