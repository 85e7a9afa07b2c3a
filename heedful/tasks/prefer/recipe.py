"""The recipe of a model that learns to be preferred."""

from typing import ClassVar, Literal

from pydantic import Field

from heedful.run.recipe import Presets, Recipe, Section
from heedful.run.task import Lazy

Method = Literal["ppo", "grpo", "dpo", "best-of-n"]


class PreferSection(Section):
    """How answers are made and rewarded, and what is learnt of them."""

    method: Method = Field(
        "ppo",
        description="ppo: proximal policy optimisation with values; grpo: each answer against others to its prompt; "
        "dpo: pairs of a better and a worse answer, judged or made; best-of-n: the best of some answers is imitated",
    )
    reward: str = Field(
        "",
        description="who rewards: a run of reward, a function (module:function or file.py:function), or command:WORDS, "
        "which gets lines of JSON and gives a number for each; dpo can do without, by judgements",
    )
    normalise: bool | None = Field(
        None,
        description="give the rewards mean 0 and variance 1 over answers of the model that training begins with; "
        "null: those of a run of reward, whose scale is arbitrary",
    )
    rollouts: int = Field(64, ge=1, description="answers that are made before each time that is learnt from them")
    group: int | None = Field(
        None, ge=1, description="of these, how many to one prompt; null: 1 with ppo, and 8 otherwise"
    )
    passes: int | None = Field(
        None, ge=1, description="times that each answer is learnt from; null: 4 with ppo, and 1 otherwise"
    )
    batch: int = Field(16, ge=1, description="answers, or pairs, in a batch")
    tokens: int = Field(64, ge=1, description="the most tokens of an answer")
    temperature: float = Field(1.0, gt=0, description="at which answers are drawn, and probabilities told")
    kl: float = Field(
        0.05,
        ge=0,
        description="weight of the KL divergence from the model that training began with, in rewards a nat: of each "
        "token's reward with ppo, of the loss with grpo",
    )
    kl_target: float | None = Field(
        None, gt=0, description="with ppo: nats of an answer that the weight adapts to; null: it stays"
    )
    clip: float = Field(0.2, gt=0, description="how far from 1 a ratio of probabilities may go before it is held")
    value_clip: float = Field(0.2, gt=0, description="with ppo: the same of a value, from what it was")
    value_weight: float = Field(0.5, ge=0, description="with ppo: weight of the loss of the values")
    entropy: float = Field(0.0, ge=0, description="weight of the entropy of what may be said next, which is rewarded")
    discount: float = Field(1.0, gt=0, le=1, description="with ppo: of what comes a token later")
    decay: float = Field(0.95, ge=0, le=1, description="with ppo: lambda of the generalised advantages")
    whiten: bool = Field(True, description="with ppo: give the advantages of all answers mean 0 and variance 1")
    beta: float = Field(0.1, gt=0, description="with dpo: how closely it is to stay to the model it began with")
    eval_answers: int = Field(
        128, ge=1, description="answers to validation prompts, in turn, that are made in each measurement"
    )


class PreferRecipe(Recipe):
    DEFAULTS: ClassVar = {
        "train": {"lr": 1e-4, "warmup": 10, "schedule": "constant", "average": 0.0, "precision": "fp32"}
    }
    PRESETS: ClassVar[Presets] = Lazy("heedful.models.presets:LANGUAGE_MODELS")

    task: Literal["prefer"] = "prefer"
    preset: str = "gpt-nano"
    prefer: PreferSection = PreferSection()
