"""The recipe of a model that matches pictures and texts."""

from typing import ClassVar, Literal

from heedful.run.recipe import Presets
from heedful.run.task import Lazy
from heedful.tasks.shared.sections import ImagesRecipe, TokenizedData


class MatchRecipe(ImagesRecipe):
    DEFAULTS: ClassVar = {
        "train": {"optimizer": "muon", "warmup": 100},
        "images": {"augment": "strong", "flip": False},
    }
    PRESETS: ClassVar[Presets] = Lazy("heedful.models.vision_presets:PAIRS")

    task: Literal["match"] = "match"
    preset: str = "clip-nano32"
    data: TokenizedData = TokenizedData()
