"""Texts that are longer than all that a model learnt from: translated in parts, and never cut short in silence.

A part is a sentence; one that alone is too long is halved, where a clause or else a word ends, until its parts are not.
"""

from collections.abc import Iterator

from heedful.data.documents.sentences import halves, sentences_in
from heedful.data.documents.words import Span
from heedful.tasks.shared.lengths import KEPT
from heedful.tasks.translate.use import Translator


def longest_read(translator: Translator) -> int | None:
    """The most tokens that a source may have to be translated as a whole: those of the longest that it was trained on,
    as many as are read, and as many as there are positions; None where any number."""
    positions = translator.positions
    room = None if positions is None else positions - sum(map(len, translator.around))
    about = translator.about
    limits = (about.get(KEPT, {}).get("longest"), about.get("longest_source"), room)
    return min((limit for limit in limits if limit is not None), default=None)


def parts_of(translator: Translator, text: str, *, sentences: bool = True) -> list[Span]:
    """Where the parts of a text begin and end; of one that is not too long, the whole."""
    most = longest_read(translator)
    if most is None or _tokens(translator, text) <= most:
        return [(0, len(text))]
    spans = sentences_in(text, str(translator.about.get("source", ""))) if sentences else [(0, len(text))]
    return [span for begin, end in spans for span in _halved(translator, text[begin:end], begin, most)]


def _halved(translator: Translator, text: str, first: int, most: int) -> Iterator[Span]:
    found = halves(text) if _tokens(translator, text) > most else None
    if found is None:
        yield first, first + len(text)
        return
    for begin, end in found:
        yield from _halved(translator, text[begin:end], first + begin, most)


def _tokens(translator: Translator, text: str) -> int:
    return len(translator.source.encode([text])[0])
