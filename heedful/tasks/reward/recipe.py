"""The recipe of a reward."""

from typing import ClassVar, Literal

from pydantic import Field

from heedful.run.recipe import Presets, Section
from heedful.run.task import Lazy
from heedful.tasks.shared.sections import TextRecipe, TokenTrain


class RewardSection(Section):
    """How judgements are learnt."""

    by: Literal["rankings", "pairs"] = Field(
        "rankings",
        description="rankings: the likelihood of a whole order (Plackett and Luce); pairs: of every two answers in it "
        "(Bradley and Terry)",
    )


class RewardRecipe(TextRecipe):
    DEFAULTS: ClassVar = {"train": {"lr": 3e-4, "warmup": 50}}
    PRESETS: ClassVar[Presets] = Lazy("heedful.models.presets:LANGUAGE_MODELS")

    task: Literal["reward"] = "reward"
    preset: str = "gpt-nano"
    train: TokenTrain = TokenTrain()
    reward: RewardSection = RewardSection()
