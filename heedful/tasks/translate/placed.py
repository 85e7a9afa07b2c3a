"""Terms of a glossary instead of the words that mean the same.

A model that has hardly seen a term finds no place for it: a search that is held to it says it first or last, and leaves
out the rest. But the model can tell which words of its translation without the term belong to the term's source.
"""

import string
from collections.abc import Sequence
from typing import NamedTuple

from heedful.data.documents.tags import Alignment
from heedful.data.documents.words import Span
from heedful.data.tokenizer import Ids
from heedful.decode.contract import Hypothesis
from heedful.decode.settings import Decoding
from heedful.tasks.translate.model import BaseTranslator
from heedful.tasks.translate.pairs.links import aligned
from heedful.tasks.translate.pairs.weigh import log_probabilities
from heedful.tasks.translate.wishes import WantedForms

SIGNS = string.punctuation
ENOUGH = 0.3  # of what a word belongs to, that it is taken for the term's
BESIDE = 0.5  # the same of a word beside such a one
UNLIKELY = 10.0  # nats
LONGER = 0.2  # of its length, by which a translation may be longer than one in which its terms were put


class PlainRow(NamedTuple):
    """A source and its tokens; its translation without wishes, as it was found and as a text; its wishes, and how many
    tokens a translation with them may have."""

    source: str
    ids: Ids
    plain: Hypothesis
    text: str
    wanted: Sequence[WantedForms]
    limit: int

    def lacks(self, text: str) -> list[WantedForms]:
        """The wishes that are not met, terms first."""
        return sorted((wish for wish in self.wanted if not wish.met(text)), key=lambda wish: not wish.spans)

    def has_lost(self, held: Hypothesis) -> bool:
        """Whether a translation that is held to the wishes may have lost something: it is shorter than the one without,
        or much less likely."""
        shorter = len(held.tokens) < len(self.plain.tokens) - 1
        return shorter or held.log_probability < self.plain.log_probability - UNLIKELY


def with_terms_placed(
    translator: BaseTranslator, decoding: Decoding, rows: Sequence[PlainRow], held: Sequence[list[Hypothesis]]
) -> list[list[Hypothesis]]:
    """The translations of a search that was `held` to the wishes; where they may have lost something, those in which
    terms stand in place of the words that mean the same, one after another, and such of `held` as leave nothing out and
    are hardly longer, the likeliest first. What finds no place or no room for its terms stays as it was held. Raises
    TooMuchError, and as `aligned`."""
    ranked = [*held]
    waiting = {n: row.text for n, row in enumerate(rows) if row.has_lost(held[n][0])}
    while waiting:
        translator.spend(sum(_reading(rows[n]) for n in waiting), 0)
        asked = [(rows[n].source, text, rows[n].lacks(text)[0]) for n, text in waiting.items()]
        before, waiting = waiting, {}
        for (n, old), placed in zip(before.items(), _placed(translator, asked, decoding), strict=True):
            row, size = rows[n], 0 if placed is None else len(placed.tokens)
            if placed is None or size >= row.limit:
                continue
            (text,) = translator.texts_of([placed])
            lacking = row.lacks(text)
            if not lacking:
                whole = [each for each in held[n] if -1 <= len(each.tokens) - size <= max(2, size * LONGER)]
                every = sorted(dict.fromkeys([placed, *whole]), key=lambda each: -each.log_probability)
                ranked[n] = every[: max(decoding.n_best, 1)]
            elif len(lacking) < len(row.lacks(old)):
                waiting[n] = text
    return ranked


def _reading(row: PlainRow) -> int:
    """About how many tokens are read to align its words: the pair, and once more without each word of the source."""
    return (1 + len(row.ids)) * (len(row.ids) + len(row.plain.tokens))


def _placed(
    translator: BaseTranslator, rows: Sequence[tuple[str, str, WantedForms]], decoding: Decoding
) -> list[Hypothesis | None]:
    """For each source, its translation and a term: the translation with the likeliest form of the term in place of the
    words that belong to its next occurrence in the source; None where no word does."""
    alignments = aligned(translator, [(source, text) for source, text, _ in rows])
    every = [_texts(text, wanted, each) for (_, text, wanted), each in zip(rows, alignments, strict=True)]
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


def _texts(text: str, wanted: WantedForms, alignment: Alignment) -> list[str]:
    """The text with each form of a term in place of the words that belong to its next occurrence."""
    number = len(wanted.said(text))
    if number >= len(wanted.spans):
        return []
    term = {i for i, span in enumerate(alignment.source) if _overlap(span, wanted.spans[number])}
    span = _span_of([sum(row.get(i, 0.0) for i in term) for row in alignment.shares], alignment.target)
    if span is None:
        return []
    return [_instead(text, span, form) for form in _cased(wanted.forms, first=not text[: span[0]].strip())]


def _instead(text: str, span: Span, form: str) -> str:
    """The text with a form in place of a span, whose signs at its ends are not written twice."""
    begin, end = span
    before, after = form[: len(form) - len(form.lstrip(SIGNS))], form[len(form.rstrip(SIGNS)) :]
    if before and not text[begin:end].startswith(before) and text.endswith(before, 0, begin):
        begin -= len(before)
    if after and not text[begin:end].endswith(after) and text.startswith(after, end):
        end += len(after)
    return text[:begin] + form + text[end:]


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
    return [form for form in forms if form[:1].lower() + form[1:] not in forms or form[:1] == form[:1].lower()]
