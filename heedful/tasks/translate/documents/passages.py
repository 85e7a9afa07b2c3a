"""Translates passages, and moves the marks inside them to where their words went."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from heedful.data.documents.passages import Mark, Passage
from heedful.data.documents.tags import moved
from heedful.data.lines import quoted
from heedful.decode.settings import DecodingOptions
from heedful.tasks.translate.assemble import Links, aligned_whole, assembled, warnings_of
from heedful.tasks.translate.confidence import UNLIKE, doubtful, sentence_confidence, word_confidences
from heedful.tasks.translate.model import BaseTranslator
from heedful.tasks.translate.pairs.links import aligned
from heedful.tasks.translate.pairs.pharaoh import WordLinks, links_of
from heedful.tasks.translate.pipeline import Question, translate_segments
from heedful.tasks.translate.searching import Asking, Translation
from heedful.tasks.translate.segment import Segment, segments_of
from heedful.tasks.translate.wishes import NO_WISHES, Wishes


@dataclass
class Moved:
    """A translated passage; which of its words became which, where that was asked for; its warnings; and whether it is
    to be read first."""

    placed: list[str | Mark]
    links: WordLinks | None = None
    told: list[str] = field(default_factory=list)
    flagged: bool = False

    @property
    def text(self) -> str:
        """Without its marks."""
        return "".join(part for part in self.placed if isinstance(part, str))


def translate_passages(
    translator: BaseTranslator,
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
    settings: DecodingOptions = {**decoding, "n_best": n}
    asking = Asking(translator.decoding(**settings), wishes, flag is not None)
    segments = [segments_of(translator, passage.text, lines=False, sentences=sentences) for passage in passages]
    asked = [Question(segment.text) for own in segments for segment in own]
    found = iter(translate_segments(translator, asked, asking))
    translated = [[next(found) for _ in own] for own in segments]
    pairs = {
        (passage.text[segment.begin : segment.end], translation): None
        for passage, own, every in zip(passages, segments, translated, strict=True)
        for segment, one in zip(own, every, strict=True)
        for translation, _ in one.hypotheses
        if (align or passage.marks) and translation != segment.text
    }
    links = dict(zip(pairs, aligned(translator, [*pairs]), strict=True)) if pairs else {}
    for passage, own, every in zip(passages, segments, translated, strict=True):
        doubts = [_doubt(translator, one, flag) for one in every]
        told = [*warnings_of(own, every, numbered=False), *filter(None, doubts)]
        yield [
            Moved(*_assembled(passage, own, every, rank, links, align=align), told, any(doubts)) for rank in range(n)
        ]


def _doubt(translator: BaseTranslator, found: Translation, flag: float | None) -> str:
    """Why a sentence is to be read first; "" where it is not, or nothing is flagged."""
    if flag is None:
        return ""
    said, calibration = found.said[0], translator.calibration
    doubt = doubtful(sentence_confidence(said, calibration), word_confidences(said, calibration), flag)
    doubt = doubt or (UNLIKE if found.unlike else "")
    return doubt and f"{doubt}: {quoted(found.text)}"


def _assembled(
    passage: Passage,
    segments: Sequence[Segment],
    found: Sequence[Translation],
    rank: int,
    links: Links,
    *,
    align: bool,
) -> tuple[list[str | Mark], WordLinks | None]:
    """A passage out of its sentences, with its marks by their alignments; and which words belong together."""
    translations = [one.hypotheses[min(rank, len(one.hypotheses) - 1)][0] for one in found]
    text, spans = assembled(passage.text, segments, translations)
    if not (align or passage.marks):
        return [text], None
    pairs = [((segment.begin, segment.end), span) for segment, span in zip(segments, spans, strict=True)]
    whole = aligned_whole(passage.text, text, pairs, links)
    return moved(passage.text, passage.marks, text, whole), links_of(passage.text, text, whole) if align else None
