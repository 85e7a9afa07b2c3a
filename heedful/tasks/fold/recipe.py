"""The recipe of a model that folds proteins."""

from typing import ClassVar, Literal

from pydantic import Field

from heedful.run.recipe import DataSection, Presets, Recipe
from heedful.run.task import Lazy
from heedful.tasks.shared.sections import TokenTrain


class ChainsData(DataSection):
    """Chains, and how much of one is read at a time."""

    sequences: int = Field(32, ge=1, le=4096, description="aligned sequences of a chain that are read, its own too")
    residues: int = Field(128, ge=16, le=1024, description="residues of a chain that are learnt from at a time")


class FoldRecipe(Recipe):
    DEFAULTS: ClassVar = {"train": {"lr": 2e-3, "warmup": 50, "tokens": 256}}
    PRESETS: ClassVar[Presets] = Lazy("heedful.models.fold:FOLDS")

    task: Literal["fold"] = "fold"
    preset: str = "fold-nano"
    data: ChainsData = ChainsData()
    train: TokenTrain = TokenTrain()
