"""The recipe of vectors of words."""

from typing import ClassVar, Literal

from pydantic import Field

from heedful.run.recipe import DataSection, Presets, Recipe, TrainSection
from heedful.run.task import Lazy


class WordsData(DataSection):
    """Running text, what a word of it is, and what stands near it."""

    words: Literal["letters", "blanks"] = Field(
        "letters", description="what a word is: letters and digits, or whatever stands between blanks"
    )
    lower: bool = Field(True, description="read text in lower case")
    min_count: int = Field(5, ge=1, description="words that are rarer have no vector")
    window: int = Field(
        5, ge=1, le=100, description="words on each side that are near; skipgram and cbow draw from 1 to so many"
    )
    subsample: float = Field(
        1e-3,
        ge=0,
        description="skipgram and cbow: words of more than this share of the text are left out now and then; 0: none",
    )


class VectorsTrain(TrainSection):
    tokens: int = Field(8192, ge=64, description="words in a batch; of glove, pairs, eight times as many")
    negatives: int = Field(5, ge=1, le=100, description="skipgram and cbow: words drawn against each that is near")
    power: float = Field(
        0.75, ge=0, le=2, description="skipgram and cbow: exponent of a word's count in how often it is drawn"
    )
    x_max: float = Field(
        10.0, gt=0, description="glove: pairs that are met so often, and more, count in full; the paper has 100"
    )


class VectorsRecipe(Recipe):
    DEFAULTS: ClassVar = {
        "train": {"epochs": 5, "lr": 0.02, "schedule": "linear", "warmup": 0, "clip": 0, "average": 0}
        | {"precision": "fp32"}
    }
    PRESETS: ClassVar[Presets] = Lazy("heedful.models.vectors:VECTORS")

    task: Literal["vectors"] = "vectors"
    preset: str = "vectors-100"
    data: WordsData = WordsData()
    train: VectorsTrain = VectorsTrain()
