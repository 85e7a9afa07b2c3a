"""Options of `heed eval`, `look`, `distil` and others for translators."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, cast

import typer

from heedful.decode.settings import DecodingOptions
from heedful.tasks.shared.options import Beam, Engine, FromLanguage, LayerOptions, LengthPenalty, To

Tag = Annotated[str, typer.Option("--tag", metavar="NAME", help="The kind of translation, of those learnt: formal.")]

With = Annotated[
    list[str] | None,
    typer.Option("--with", metavar="RUN", help="Search with this run too, as one model; may be given again."),
]


def _search(beam: int | None, length_penalty: float | None) -> DecodingOptions:
    given = {"beam": beam, "length_penalty": length_penalty}
    return cast("DecodingOptions", {name: value for name, value in given.items() if value is not None})


@dataclass(frozen=True, kw_only=True)
class TranslationScoring:
    """The options of `heed eval` for a translator."""

    source: Annotated[
        str | None, typer.Option(help="A file, a sentence a line; with --data, a language or column.")
    ] = None
    target: Annotated[str | None, typer.Option(help="Its reference translations, line by line; likewise.")] = None
    data: Annotated[
        str | None,
        typer.Option(help="Data as for train: test sets are scored, or what was not learnt from."),
    ] = None
    to: To = ""
    from_language: FromLanguage = ""
    beam: Beam = None
    length_penalty: LengthPenalty = None
    together: With = None
    engine: Engine = None
    bootstrap: Annotated[int, typer.Option(min=0, help="Resamples for 95 % intervals, such as 1000.")] = 0
    ter: Annotated[bool, typer.Option("--ter", help="Score by TER too, which takes its time.")] = False
    against: Annotated[
        str | None, typer.Option(metavar="RUN", help="Compare with this run: is the difference more than chance?")
    ] = None
    out: Annotated[str | None, typer.Option(metavar="FILE", help="Write the translations here, a line each.")] = None
    calibrate: Annotated[
        bool,
        typer.Option("--calibrate", help="Fit confidence on these pairs, or the data's validation part, and keep it."),
    ] = False

    @property
    def search(self) -> DecodingOptions:
        """The settings that were given; others are the run's."""
        return _search(self.beam, self.length_penalty)


@dataclass(frozen=True, kw_only=True)
class TranslationLook(LayerOptions):
    """The options of `heed look` for a translator."""

    target: Annotated[str | None, typer.Option(help="Watch this translation in place of the model's own.")] = None
    sentence: Annotated[int, typer.Option(min=1, help="Watch this sentence of a text of several.")] = 1
    to: To = ""
    from_language: FromLanguage = ""
    tag: Tag = ""


PRESET = "transformer-deep-shallow"  # of a student that begins with nothing

Rerank = Annotated[
    list[str] | None,
    typer.Option(
        metavar="RUN",
        help="Choose among the beam by this run too, of the same or the other direction; may be given again.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class TeachingOptions:
    """The options of `heed distil` for a translator: who teaches beside the teacher, and how its translations are
    searched for, kept and used."""

    source: Annotated[str | None, typer.Option(help="Language, column or key to translate from.")] = None
    target: Annotated[str | None, typer.Option(help="Language, column or key to translate to.")] = None
    together: Annotated[
        list[str] | None,
        typer.Option("--with", metavar="RUN", help="Let this run teach too, as one model; may be given again."),
    ] = None
    rerank: Rerank = None
    taught: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where the teacher's translations are kept.", show_default="OUT.taught.tsv"),
    ] = None
    originals: Annotated[
        float,
        typer.Option(min=0.0, help="How often an epoch has each pair as it was, beside the teacher's; 0: not at all."),
    ] = 1.0
    beam: Beam = None
    length_penalty: LengthPenalty = None

    @property
    def search(self) -> DecodingOptions:
        """The settings that were given; others are the run's."""
        return _search(self.beam, self.length_penalty)
