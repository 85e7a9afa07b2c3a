"""Puts the translations of segments together again, with what stood between the segments."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from heedful.data.documents.sentences import gap_between
from heedful.data.documents.tags import Alignment
from heedful.data.documents.words import SPACELESS, Span, words_in
from heedful.tasks.translate.confidence import WordLikelihoods, in_a_row
from heedful.tasks.translate.searching import Translation
from heedful.tasks.translate.segment import Segment

TOUCHING = re.compile(rf"(?![{SPACELESS}])\w(?![{SPACELESS}])\w|>.|.<")  # inside a word, and at a tag
Links = Mapping[tuple[str, str], Alignment]  # of texts and their translations

CUT = "a sentence longer than all that the model was trained on is translated in {} parts"


class Assembled(NamedTuple):
    """A translated text, and where in it the translation of each segment stands."""

    text: str
    spans: list[Span]


def assembled(text: str, segments: Sequence[Segment], translations: Sequence[str]) -> Assembled:
    """What is between two segments stays, but for the spaces that the target's script does not use, or needs. A segment
    that the translation repeats stays as it is in the text."""
    whole, spans, last, kept = "", list[Span](), 0, False
    for segment, translation in zip(segments, translations, strict=True):
        gap, same = text[last : segment.begin], translation == segment.text
        touching = not gap and TOUCHING.fullmatch(text[segment.begin - 1 : segment.begin + 1])
        whole += gap if not spans or touching or (kept and same) else gap_between(whole, gap, translation)
        begin = len(whole)
        whole += text[segment.begin : segment.end] if same else translation
        spans.append((begin, len(whole)))
        kept, last = same, segment.end
    return Assembled(whole + text[last:], spans)


def aligned_whole(source: str, target: str, spans: Sequence[tuple[Span, Span]], links: Links) -> Alignment:
    """The alignment of a text and its translation from those of its segments (`links`); one that is the same in both is
    aligned with itself."""
    words, others, shares = list[Span](), list[Span](), list[dict[int, float]]()
    for own, other in spans:
        pair = source[slice(*own)], target[slice(*other)]
        alignment = identical(pair[0]) if pair[0] == pair[1] else links[pair]
        first = len(words)
        words += [(own[0] + begin, own[0] + end) for begin, end in alignment.source]
        others += [(other[0] + begin, other[0] + end) for begin, end in alignment.target]
        shares += [{first + word: share for word, share in row.items()} for row in alignment.shares]
    return Alignment(words, others, shares)


def identical(text: str) -> Alignment:
    """The alignment of a text with itself."""
    words = words_in(text)
    return Alignment(words, words, [{number: 1.0} for number in range(len(words))])


def joined(text: str, segments: Sequence[Segment], found: Sequence[Translation]) -> Translation:
    """The translation of a text from those of its segments: its second best one consists of the second best of each
    segment, and so on; its score is their mean."""
    hypotheses, said, spans = list[tuple[str, float]](), list[WordLikelihoods](), list[Span]()
    for rank in range(max(len(one.hypotheses) for one in found)):
        each = [one.hypotheses[min(rank, len(one.hypotheses) - 1)] for one in found]
        score = sum(score for _, score in each) / len(each)
        whole = assembled(text, segments, [own for own, _ in each])
        spans = spans or whole.spans
        hypotheses.append((whole.text, score))
        if all(one.said for one in found):
            each_said = [one.said[min(rank, len(one.said) - 1)] for one in found]
            said.append(each_said[0] if len(each_said) == 1 else in_a_row(each_said))
    return Translation(
        text,
        *hypotheses[0],
        hypotheses,
        sum(one.cut for one in found),
        warnings_of(segments, found, numbered=len(found) > 1),
        tuple(term for one in found for term in one.terms),
        tuple(said),
        max(segment.parts for segment in segments),
        tuple(((segment.begin, segment.end), span) for segment, span in zip(segments, spans, strict=True)),
        found[0].tokens if len(found) == 1 else (),
        any(one.unlike for one in found),
    )


def warnings_of(segments: Sequence[Segment], found: Sequence[Translation], *, numbered: bool) -> tuple[str, ...]:
    """The warnings of a text of these segments, perhaps with the numbers of its parts."""
    longest = max(segment.parts for segment in segments)
    every = [
        f"part {number}: {warning}" if numbered else warning
        for number, one in enumerate(found, 1)
        for warning in one.warnings
    ]
    return (*([CUT.format(longest)] if longest > 1 else []), *every)
