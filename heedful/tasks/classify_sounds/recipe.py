"""The recipe of a classifier of sounds."""

from typing import ClassVar, Literal

from heedful.run.recipe import Presets, Recipe
from heedful.run.task import Lazy
from heedful.tasks.shared.sections import ImagesTrain
from heedful.tasks.transcribe.recipe import SoundSection


class ClassifySoundsRecipe(Recipe):
    DEFAULTS: ClassVar = {"train": {"optimizer": "muon", "warmup": 100}}
    PRESETS: ClassVar[Presets] = Lazy("heedful.models.speech_presets:SOUND_CLASSIFIERS")

    task: Literal["classify-sounds"] = "classify-sounds"
    preset: str = "sounds-nano"
    train: ImagesTrain = ImagesTrain()
    sound: SoundSection = SoundSection()
