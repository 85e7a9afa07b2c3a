"""What a recipe of an extractive question answerer says."""

from typing import ClassVar, Literal

from pydantic import Field

from heedful.run.recipe import Presets, Recipe, Section
from heedful.run.task import Lazy
from heedful.tasks.shared.sections import TokenizedData, TokenTrain


class AnswerSection(Section):
    longest: int = Field(30, ge=1, description="at most so many tokens in an answer")


class AnswerRecipe(Recipe):
    DEFAULTS: ClassVar = {"train": {"lr": 5e-4, "warmup": 100}}
    PRESETS: ClassVar[Presets] = Lazy("heedful.models.presets:ENCODERS")

    task: Literal["answer"] = "answer"
    preset: str = "encoder-small"
    data: TokenizedData = TokenizedData()
    train: TokenTrain = TokenTrain()
    answer: AnswerSection = AnswerSection()
