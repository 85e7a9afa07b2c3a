"""Summarisation: translators from long texts to short ones, scored by ROUGE."""

from dataclasses import replace

from heedful.run.task import Lazy
from heedful.tasks.translate import TRANSLATE

SUMMARISE = replace(
    TRANSLATE,
    name="summarise",
    data="texts with summaries",
    does="summarises texts",
    headline=("rougeL",),
    recipe=Lazy("heedful.tasks.summarise.recipe:SummariseRecipe"),
    commands=Lazy("heedful.tasks.summarise.cli:COMMANDS"),
    saved_as="translate",
    uses=("translate",),
)
