"""Passages as a question: a server reads a document in a process of its own, and asks for a few of its passages at a
time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypedDict

from heedful.data.documents.passages import passage_of
from heedful.decode.settings import DecodingOptions, setting
from heedful.run.task import Ask
from heedful.tasks.translate.confidence import refuse_no_probability
from heedful.tasks.translate.documents.passages import translate_passages
from heedful.tasks.translate.options import DirectionByEitherName
from heedful.tasks.translate.use import Translator
from heedful.tasks.translate.wishes import wishes_of


class TranslatedPassage(TypedDict):
    """`parts` are texts, and the numbers of the marks between them; `warnings` are for a person who looks at the
    translation, and a passage that is `flagged` should be read first."""

    parts: list[str | int]
    warnings: list[str]
    flagged: bool


@dataclass(frozen=True, kw_only=True)
class PassageOptions(DirectionByEitherName):
    """As in `TranslateOptions`: passages with a sentence that is less sure than `flag` are flagged."""

    glossary: tuple[tuple[str, ...], ...] = setting(
        (), "Terms, each with its translations, one of which must be there."
    )
    avoid: tuple[str, ...] = setting((), "Words that no translation may have.")
    flag: float | None = setting(None, "Passages with a sentence below this confidence are marked.", 0, 1)
    decoding: DecodingOptions = setting(DecodingOptions, "How to search, where it is not as the model has it.")

    def __post_init__(self) -> None:
        """Raises InputError."""
        refuse_no_probability(self.flag)


_wishes = lru_cache(maxsize=4)(wishes_of)  # the terms of a glossary are stemmed once for a document


def translate_json(
    translator: Translator, passages: Sequence[str], options: PassageOptions
) -> Iterator[TranslatedPassage]:
    """The translation of each passage, which `passage_json` has written. Raises InputError."""
    translator = translator.directed(*options.asked())
    wishes = _wishes((), options.avoid, options.glossary or None, translator.languages)
    asked = [passage_of(text) for text in passages]
    for (best,) in translate_passages(translator, asked, options.decoding, wishes=wishes, flag=options.flag):
        parts = [part if isinstance(part, str) else int(part.raw) for part in best.placed]
        yield {"parts": parts, "warnings": best.told, "flagged": best.flagged}


ASK = Ask(translate_json, PassageOptions, gathers=lambda options: not options.decoding.get("samples"), local=True)
