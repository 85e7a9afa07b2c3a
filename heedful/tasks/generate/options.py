"""What language models are asked, and the options of `heed eval` for them."""

from dataclasses import dataclass
from typing import Annotated

import typer

from heedful.decode.settings import SamplingOptions, setting
from heedful.tasks.shared.options import DataOptions


@dataclass(frozen=True, kw_only=True)
class GenerateOptions:
    """How `heed generate` continues texts."""

    tokens: int = setting(200, "The most new tokens.", 1)
    samples: int = setting(1, "How many texts for each prompt.", 1)
    batch: int = setting(32, "How many texts are made at a time.", 1)
    stop: tuple[str, ...] = setting((), "Texts that end what is written, before them.")
    beam: int | None = setting(None, "The width of a beam search, in place of drawing tokens.", 1)
    best_of: int = setting(1, "Draw so many for each text, and keep the most likely.", 1, 1024)
    length_penalty: float = setting(
        1.0, "Scores of texts that are compared are divided by length to this power.", -10.0, 10.0
    )
    sampling: SamplingOptions = setting(SamplingOptions, "How tokens are drawn.")

    def __post_init__(self) -> None:
        """Raises InputError for a length penalty where no texts are compared."""
        from heedful.tasks.generate.search import refuse_unused_penalty

        refuse_unused_penalty(self.length_penalty, compares=self.compares)

    @property
    def compares(self) -> bool:
        """Whether several texts are compared, so that none is known before all are made."""
        return self.beam is not None or self.best_of > 1


@dataclass(frozen=True, kw_only=True)
class TextScoring(DataOptions):
    """The options of `heed eval` for a language model."""

    shots: Annotated[int, typer.Option(min=0, help="Solved examples in each prompt.")] = 0
    shots_from: Annotated[str | None, typer.Option(help="A .jsonl file that they are taken from.")] = None
    delimiter: Annotated[str, typer.Option(help="Between an input and its answer.")] = " "
    separator: Annotated[str, typer.Option(help="After each answer; \\n is the end of a line.")] = "\\n"
    by: Annotated[str, typer.Option(help="likelihood (of the choices), or match (what is generated).")] = "likelihood"
    seed: Annotated[int, typer.Option(min=0, help="Draws the solved examples.")] = 0
