"""What translators are asked, and the options of `heed eval`, `look`, `distil` and others for them."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from heedful.decode.settings import DecodingOptions, setting
from heedful.errors import InputError
from heedful.tasks.shared.options import Beam, Engine, FromLanguage, LayerOptions, LengthPenalty, To

if TYPE_CHECKING:
    from heedful.tasks.translate.wishes import Wishes


@dataclass(frozen=True, kw_only=True)
class DirectionOptions:
    """The languages and the kind of translation that are asked for, as by `--to`, `--from-language` and `--tag`; "" is
    the model's default."""

    to: str = setting("", "The language to translate to, of several.")
    from_language: str = setting("", "The language of the texts, of several.")
    tag: str = setting("", "The kind of translation, of those learnt: formal.")


@dataclass(frozen=True, kw_only=True)
class DirectionByEitherName(DirectionOptions):
    """The same, with second names for the languages."""

    source: str = setting("", "Another name for from_language.")
    target: str = setting("", "Another name for to.")

    def asked(self) -> tuple[str, str, str]:
        """The two languages, and the tag. Raises InputError where a language is given by both names."""
        for name, other in (("to", "target"), ("from_language", "source")):
            if getattr(self, name) and getattr(self, other):
                what = "two names of the same, each with a language"
                raise InputError(what, where=f"{name}, {other}", fix="give one")
        return self.from_language or self.source, self.to or self.target, self.tag


@dataclass(frozen=True, kw_only=True)
class TranslateOptions(DirectionByEitherName):
    """`decoding` has the keys of `Decoding` that differ from the model's own; `first` is the number of the first text,
    which matters for sampling. With `confidence`, records say how sure the translations and their words are; those
    below `flag` are flagged. With `align`, they say which words belong together. `glossary` has a term and its
    translation in each entry; required words, words to avoid and terms are those of `tasks.translate.wishes`."""

    decoding: DecodingOptions = setting(DecodingOptions, "How to search, where it is not as the model has it.")
    prefix: str | None = setting(None, "How each translation must begin.")
    first: int = setting(0, "The number of the first text, on which what is sampled depends.", 0)
    require: tuple[str, ...] = setting((), 'Words that each translation must have, or one of several: "Hund|Hunde".')
    avoid: tuple[str, ...] = setting((), "Words that no translation may have.")
    glossary: tuple[tuple[str, ...], ...] = setting(
        (), "Terms, each with its translations, one of which must be there."
    )
    confidence: bool = setting(True, "Whether to say how sure the translations and their words are.")
    flag: float | None = setting(None, "Translations whose confidence is below this are flagged.", 0, 1)
    align: bool = setting(False, "Whether to tell which words belong together.")

    def __post_init__(self) -> None:
        """Raises InputError."""
        from heedful.tasks.translate.confidence import refuse_no_probability

        refuse_no_probability(self.flag)

    def wishes(self, languages: tuple[str, str]) -> "Wishes":
        """Raises InputError."""
        from heedful.tasks.translate.wishes import wishes_of

        return wishes_of(self.require, self.avoid, self.glossary or None, languages)


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
