"""Terms of a glossary instead of the words that mean the same.

A model that has hardly seen a term finds no place for it: a search that is held to it says it first or last, and leaves
out the rest. But the model can tell which words of its translation without the term belong to the term's source.
"""

from collections.abc import Sequence

from heedful.data.documents.tags import Alignment
from heedful.data.documents.words import Span
from heedful.decode.contract import Hypothesis
from heedful.decode.settings import Decoding
from heedful.tasks.translate.model import BaseTranslator
from heedful.tasks.translate.pairs.links import aligned
from heedful.tasks.translate.pairs.weigh import log_probabilities
from heedful.tasks.translate.wishes import WantedForms

ENOUGH = 0.3  # of what a word belongs to, that it is taken for the term's
BESIDE = 0.5  # the same of a word beside such a one


def placed(
    translator: BaseTranslator, rows: Sequence[tuple[str, str, WantedForms]], decoding: Decoding
) -> list[Hypothesis | None]:
    """For each source, its translation and a term: the translation with the likeliest form of the term in place of the
    words that belong to its next occurrence in the source; None where no word does. Raises as `aligned`."""
    alignments = aligned(translator, [(source, text) for source, text, _ in rows])
    every = [_placed(text, wanted, each) for (_, text, wanted), each in zip(rows, alignments, strict=True)]
    sources, _ = translator.encode([source for (source, *_), texts in zip(rows, every, strict=True) for _ in texts])
    encoded = translator.target.encode([text for texts in every for text in texts])
    targets = [[*translator.begin, *ids, translator.target.eos] for ids in encoded]
    logs = log_probabilities(translator, [*zip(sources, targets, strict=True)])
    scored = iter([_hypothesis(*each, decoding) for each in zip(targets, logs, strict=True)])
    forms = ([next(scored) for _ in texts] for texts in every)
    return [max(each, key=lambda form: form.log_probability, default=None) for each in forms]


def _hypothesis(tokens: Sequence[int], logs: Sequence[float], decoding: Decoding) -> Hypothesis:
    whole = sum(logs)
    return Hypothesis(tuple(tokens[:-1]), whole / len(tokens) ** decoding.length_penalty, whole, tuple(logs), True)


def _placed(text: str, wanted: WantedForms, alignment: Alignment) -> list[str]:
    """The text with each form."""
    number = len(wanted.said(text))
    if number >= len(wanted.spans):
        return []
    term = {i for i, span in enumerate(alignment.source) if _overlap(span, wanted.spans[number])}
    span = _span_of([sum(row.get(i, 0.0) for i in term) for row in alignment.shares], alignment.target)
    if span is None:
        return []
    begin, end = span
    return [text[:begin] + form + text[end:] for form in _cased(wanted.forms, first=not text[:begin].strip())]


def _overlap(one: Span, other: Span) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def _span_of(shares: Sequence[float], words: Sequence[Span]) -> Span | None:
    """The characters of the words that have enough of what belongs to a term."""
    if not shares or max(shares) < ENOUGH:
        return None
    first = last = shares.index(max(shares))
    while first > 0 and shares[first - 1] >= BESIDE:
        first -= 1
    while last + 1 < len(shares) and shares[last + 1] >= BESIDE:
        last += 1
    return words[first][0], words[last][1]


def _cased(forms: Sequence[str], *, first: bool) -> list[str]:
    """Those with a capital at the beginning of a text, where there are any; elsewhere, of a form with one and the same
    without, the latter."""
    if first:
        return [form for form in forms if form[:1].isupper()] or [*forms]
    return [form for form in forms if form[:1].lower() + form[1:] not in forms or form[:1].islower()]
