"""Passages translated: their sentences one by one, placeholders unharmed, and the marks inside them moved.

A placeholder that the translation does not have is looked for in the other hypotheses of the search; then the sentence
is translated with a number in its place, which models learn to copy; and at last without it, and it is put where the
words beside it went. What had to be done, and numbers that differ, are told.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from heedful.data.documents.passages import Mark, Passage
from heedful.data.documents.protected import lost, lost_placeholders, protected_in, without
from heedful.data.documents.sentences import gap_between, sentences_in, trimmed
from heedful.data.documents.tags import Alignment, moved
from heedful.data.documents.words import Span, words_in
from heedful.data.lines import quoted
from heedful.decode.settings import DecodingOptions
from heedful.tasks.translate.confidence import doubtful, sentence_confidence, word_confidences
from heedful.tasks.translate.documents.parts import parts_of
from heedful.tasks.translate.documents.placeholders import with_placeholders
from heedful.tasks.translate.pairs.links import aligned
from heedful.tasks.translate.pairs.pharaoh import Links, links_of
from heedful.tasks.translate.searching import Translation
from heedful.tasks.translate.use import Translator
from heedful.tasks.translate.wishes import NO_WISHES, Wishes

BLANK = str.maketrans("\u00a0\u202f\r\n\t", "     ", "\u00ad")  # that models did not see; and soft hyphens, as nothing
Pair = tuple[str, str]  # a sentence and its translation


class TranslatedSentence(NamedTuple):
    """The translations of a sentence, the best first, what is to be told of it, and why it is to be read first."""

    texts: tuple[str, ...]
    told: tuple[str, ...] = ()
    doubt: str = ""


@dataclass
class Moved:
    """A passage in other words, what is to be told of it, whether it is to be read first, and which of its words became
    which, where that was asked for."""

    placed: list[str | Mark]
    told: list[str] = field(default_factory=list)
    flagged: bool = False
    links: Links | None = None

    @property
    def text(self) -> str:
        """Without its marks."""
        return "".join(part for part in self.placed if isinstance(part, str))


def translate_passages(
    translator: Translator,
    passages: Sequence[Passage],
    decoding: DecodingOptions,
    *,
    sentences: bool = True,
    n: int = 1,
    wishes: Wishes = NO_WISHES,
    flag: float | None = None,
    align: bool = False,
) -> Iterator[list[Moved]]:
    """The `n` best of each passage, the best first; the second is made of the second best of its sentences, and so on.
    Where it is not to be cut into `sentences`, only what is longer than all that was learnt from is. Sentences that are
    less sure than `flag` are told, and with `align` which words belong together."""
    spans = [_spans(translator, passage.text, sentences) for passage in passages]
    texts = [
        [passage.text[begin:end].translate(BLANK) for begin, end in own]
        for passage, own in zip(passages, spans, strict=True)
    ]
    asked = (text for own in texts for text in own)
    found = translate_sentences(translator, asked, decoding, n=n, wishes=wishes, flag=flag)
    pairs = {
        (passage.text[begin:end], translation): None
        for passage, own, said in zip(passages, spans, texts, strict=True)
        for (begin, end), text in zip(own, said, strict=True)
        for translation in found[text].texts[:n]
        if (align or passage.marks) and translation != text
    }
    links = dict(zip(pairs, aligned(translator, [*pairs]), strict=True)) if pairs else {}
    for passage, own, said in zip(passages, spans, texts, strict=True):
        each = [found[text] for text in said]
        yield [_assembled(passage, own, each, rank, links, align=align) for rank in range(n)]


def translate_sentences(
    translator: Translator,
    texts: Iterable[str],
    decoding: DecodingOptions,
    *,
    n: int = 1,
    wishes: Wishes = NO_WISHES,
    flag: float | None = None,
) -> dict[str, TranslatedSentence]:
    """The translations of each. What has no letter and no digit outside of its placeholders stays."""

    def search(some: Sequence[str], settings: DecodingOptions) -> list[Translation]:
        return translator.search(some, wishes=wishes, confidence=flag is not None, **settings)

    def doubt(found: Translation, rank: int, text: str) -> str:
        if flag is None:
            return ""
        said, calibration = found.said[rank], translator.calibration
        told = doubtful(sentence_confidence(said, calibration), word_confidences(said, calibration), flag)
        return told and f"{told}: {quoted(text)}"

    made: dict[str, TranslatedSentence] = {}
    asked = list[str]()
    for text in dict.fromkeys(texts):
        if any(map(str.isalpha, without(text)[0])):
            asked.append(text)
        else:
            made[text] = TranslatedSentence((text,))
    few = several = decoding
    if not decoding.get("samples"):  # of what may be harmed, all hypotheses are looked at
        width = max(n, decoding.get("beam", translator.decoding().beam))
        few, several = (DecodingOptions(**{**decoding, "n_best": best}) for best in (n, width))
    careful = [text for text in asked if any(protected_in(text))]
    easy = [text for text in asked if not any(protected_in(text))]
    found = [*search(careful, several), *search(easy, few)]
    harmed = [
        i for i, best in enumerate(found) if all(lost_placeholders(best.source, said) for said, _ in best.hypotheses)
    ]
    mended = with_placeholders(translator, [found[i] for i in harmed], lambda some: search(some, several))
    for i, best in zip(harmed, mended, strict=True):
        found[i] = best
    for text, best in zip([*careful, *easy], found, strict=True):
        hypotheses = [said for said, _ in best.hypotheses]
        whole = [said for said in hypotheses if not lost_placeholders(text, said)] or hypotheses
        exact = [said for said in whole if not lost(text, said)]
        first = (exact or whole)[0] if protected_in(text).numbers else whole[0]
        texts = tuple(dict.fromkeys([first, *whole]))[:n]
        told = (best.warning,) if best.warning else ()
        made[text] = TranslatedSentence(
            texts, told + _differing(text, first), doubt(best, hypotheses.index(first), first)
        )
    return made


def _differing(text: str, translation: str) -> tuple[str, ...]:
    """What is told of a translation that is empty, or whose numbers are not the same."""
    if not translation.strip():
        return (f"the translation is empty: {quoted(text)}",)
    own, theirs = protected_in(text).numbers, protected_in(translation).numbers
    missing = [number for number in dict.fromkeys(own) if own.count(number) > theirs.count(number)]
    return (f"the number {', '.join(missing)} is not in the translation: {quoted(translation)}",) if missing else ()


def _spans(translator: Translator, text: str, sentences: bool) -> list[Span]:
    own = sentences_in(text, str(translator.about.get("source", ""))) if sentences else [trimmed(text, 0, len(text))]
    return [
        (begin + first, begin + last)
        for begin, end in own
        for first, last in parts_of(translator, text[begin:end], sentences=not sentences)
    ]


def _assembled(
    passage: Passage,
    spans: Sequence[Span],
    each: Sequence[TranslatedSentence],
    rank: int,
    links: Mapping[Pair, Alignment],
    *,
    align: bool,
) -> Moved:
    """A passage out of its sentences, and the marks by the alignments of all of them."""
    text, told = "", list[str]()
    source, target, shares = list[Span](), list[Span](), list[dict[int, float]]()
    last, before = 0, ""
    for (begin, end), sentence in zip(spans, each, strict=True):
        own = passage.text[begin:end]
        said = sentence.texts[min(rank, len(sentence.texts) - 1)]
        said = own if said == own.translate(BLANK) else said
        told += [*sentence.told, *filter(None, [sentence.doubt])]
        gap = passage.text[last:begin]
        text += gap if not text or (before == text[-len(before) :] and said == own) else gap_between(text, gap, said)
        if align or passage.marks:
            one = identical(own) if said == own else links[own, said]
            first = len(source)
            source += [(begin + low, begin + high) for low, high in one.source]
            target += [(len(text) + low, len(text) + high) for low, high in one.target]
            shares += [{first + word: share for word, share in row.items()} for row in one.shares]
        text += said
        last, before = end, own
    text += passage.text[last:]
    whole = Alignment(source, target, shares)
    linked = links_of(passage.text, text, whole) if align else None
    doubts = any(sentence.doubt for sentence in each)
    return Moved(moved(passage.text, passage.marks, text, whole), told, doubts, linked)


def identical(text: str) -> Alignment:
    """Of a text and itself."""
    words = words_in(text)
    return Alignment(words, words, [{number: 1.0} for number in range(len(words))])
