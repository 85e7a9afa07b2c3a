"""The recipe of an extractive question answerer."""

from typing import ClassVar, Literal

from pydantic import Field

from heedful.run.recipe import Presets, Section
from heedful.run.task import Lazy
from heedful.tasks.shared.sections import TextRecipe, TokenTrain


class AnswerSection(Section):
    longest: int = Field(30, ge=1, description="at most so many tokens in an answer")


class AnswerRecipe(TextRecipe):
    DEFAULTS: ClassVar = {"train": {"lr": 5e-4, "warmup": 100}}
    PRESETS: ClassVar[Presets] = Lazy("heedful.models.presets:ENCODERS")
    SIZES: ClassVar = ("encoder-tiny", "encoder-small")

    task: Literal["answer"] = "answer"
    preset: str = "encoder-small"
    train: TokenTrain = TokenTrain()
    answer: AnswerSection = AnswerSection()
