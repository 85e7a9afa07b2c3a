"""The recipe of a summariser: that of a translator, with other defaults."""

from typing import ClassVar, Literal

from heedful.tasks.translate.recipe import TranslateRecipe


class SummariseRecipe(TranslateRecipe):
    DEFAULTS: ClassVar = {"data": {"scores": "rouge", "cut": True, "longest": 512}, "decode": {"longest": 120}}
    FEWEST_STEPS: ClassVar = 0
    PURPOSE: ClassVar = "Summarises texts."
    EXAMPLE: ClassVar = "A long text."

    task: Literal["summarise"] = "summarise"
