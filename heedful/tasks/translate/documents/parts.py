"""Texts that are longer than all training sources: translated in parts, and never cut off silently.

A part is a sentence. A sentence that is too long is halved at the end of a clause, repeatedly, until its parts are
short enough; if it is too long for the model to read, also between words.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Unpack

from heedful.data.documents.sentences import gap_between, halves, sentences_in
from heedful.data.documents.words import Span
from heedful.decode.settings import DecodingOptions
from heedful.tasks.shared.lengths import KEPT
from heedful.tasks.translate.confidence import WordLikelihoods
from heedful.tasks.translate.documents.placeholders import with_placeholders
from heedful.tasks.translate.languages import languages_of
from heedful.tasks.translate.searching import Translation
from heedful.tasks.translate.wishes import NO_WISHES, Wishes

if TYPE_CHECKING:
    from heedful.tasks.translate.use import Translator


def parts_of(translator: "Translator", text: str, *, sentences: bool = True) -> list[Span]:
    """The spans of a text's parts; a text that is not too long is one part."""
    about = translator.about
    limits = (about.get("longest_source"), translator.room)
    read = min((limit for limit in limits if limit is not None), default=None)
    learnt = about.get(KEPT, {}).get("longest", read)
    most = learnt if read is None else min(learnt, read)
    if most is None or _tokens(translator, text) <= most:
        return [(0, len(text))]
    spans = sentences_in(text, str(about.get("source", ""))) if sentences else [(0, len(text))]
    made = [span for begin, end in spans for span in _halved(translator, text[begin:end], begin, most, read)]
    return made if len(made) > 1 else [(0, len(text))]


def _halved(translator: "Translator", text: str, first: int, most: int, read: int | None) -> Iterator[Span]:
    tokens = _tokens(translator, text)
    found = halves(text, clauses=read is None or tokens <= read) if tokens > most else None
    if found is None:
        yield first, first + len(text)
        return
    for begin, end in found:
        yield from _halved(translator, text[begin:end], first + begin, most, read)


def _tokens(translator: "Translator", text: str) -> int:
    return len(translator.source.encode([translator.as_read(text)])[0])


def search_in_parts(
    translator: "Translator",
    texts: Sequence[str],
    *,
    prefix: Sequence[str] | None = None,
    wishes: Wishes = NO_WISHES,
    first: int = 0,
    confidence: bool = False,
    **settings: Unpack[DecodingOptions],
) -> list[Translation]:
    """`Translator.search`, which translates texts longer than all training sources in parts, with a warning, and keeps
    placeholders and addresses as they are. The score of a text is the mean over its parts, and its second best
    translation consists of the second best of each part, and so on. With a prefix, required words or sampling, and for
    summaries, texts are read as a whole and not changed."""
    whole = (
        prefix is not None
        or bool(wishes.require)
        or bool(settings.get("samples"))
        or languages_of(translator.about) is None
    )
    if whole or translator.marked:
        return translator.search(texts, prefix=prefix, wishes=wishes, first=first, confidence=confidence, **settings)
    spans = [parts_of(translator, text) for text in texts]
    parts = [text[slice(*span)] for text, own in zip(texts, spans, strict=True) for span in own]

    def search(some: Sequence[str]) -> list[Translation]:
        return translator.search(some, wishes=wishes, first=first, confidence=confidence, **settings)

    found = iter(with_placeholders(translator, search(parts), search))
    return [_joined(text, own, [next(found) for _ in own]) for text, own in zip(texts, spans, strict=True)]


def _joined(text: str, spans: Sequence[Span], found: Sequence[Translation]) -> Translation:
    if len(found) == 1:
        return found[0]
    listed, told = list[tuple[str, float]](), list[WordLikelihoods]()
    for rank in range(max(len(one.hypotheses) for one in found)):
        ranks = [min(rank, len(one.hypotheses) - 1) for one in found]
        each = [one.hypotheses[own] for own, one in zip(ranks, found, strict=True)]
        said, last = "", 0
        for (begin, end), (own, _) in zip(spans, each, strict=True):
            said, last = said + (gap_between(said, text[last:begin], own) if said else "") + own, end
        listed.append((said, sum(score for _, score in each) / len(each)))
        if all(one.said for one in found):
            told.append(sum((one.said[own] for own, one in zip(ranks, found, strict=True)), WordLikelihoods()))
    warnings = [f"translated in {len(found)} parts, as it is longer than all that was learnt from"]
    warnings += [f"part {number}: {one.warning}" for number, one in enumerate(found, 1) if one.warning]
    terms = tuple(term for one in found for term in one.terms)
    cut, warning = sum(one.cut for one in found), "; ".join(warnings)
    return Translation(text, *listed[0], listed, cut, warning, terms, tuple(told), len(found))
