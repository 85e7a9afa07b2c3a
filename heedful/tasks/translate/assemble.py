"""Puts the translations of segments together again, with what stood between the segments."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from heedful.data.documents.sentences import gap_between
from heedful.data.documents.words import SPACELESS
from heedful.tasks.translate.confidence import WordLikelihoods
from heedful.tasks.translate.searching import Translation
from heedful.tasks.translate.segment import Segment

INSIDE_A_WORD = re.compile(rf"(?![{SPACELESS}])\w(?![{SPACELESS}])\w")
CUT = "a sentence longer than all that the model was trained on is translated in {} parts"


class Assembled(NamedTuple):
    """A translated text, and its part for each segment: where it begins, and itself."""

    text: str
    parts: list[tuple[int, str]]


def assembled(text: str, segments: Sequence[Segment], translations: Sequence[str]) -> Assembled:
    """What is between two segments stays, but for the spaces that the target's script does not use, or needs. A segment
    that the translation repeats stays as it is in the text."""
    whole, parts, last, kept = "", list[tuple[int, str]](), 0, False
    for segment, translation in zip(segments, translations, strict=True):
        gap, same = text[last : segment.begin], translation == segment.text
        inside = not gap and INSIDE_A_WORD.fullmatch(text[segment.begin - 1 : segment.begin + 1])
        whole += gap if not parts or inside or (kept and same) else gap_between(whole, gap, translation)
        parts.append((len(whole), text[segment.begin : segment.end] if same else translation))
        whole += parts[-1][1]
        kept, last = same, segment.end
    return Assembled(whole + text[last:], parts)


def joined(text: str, segments: Sequence[Segment], found: Sequence[Translation]) -> Translation:
    """The translation of a text from those of its segments: its second best one consists of the second best of each
    segment, and so on; its score is their mean."""
    hypotheses, said = list[tuple[str, float]](), list[WordLikelihoods]()
    for rank in range(max(len(one.hypotheses) for one in found)):
        each = [one.hypotheses[min(rank, len(one.hypotheses) - 1)] for one in found]
        score = sum(score for _, score in each) / len(each)
        hypotheses.append((assembled(text, segments, [own for own, _ in each]).text, score))
        if all(one.said for one in found):
            said.append(sum((one.said[min(rank, len(one.said) - 1)] for one in found), WordLikelihoods()))
    return Translation(
        text,
        *hypotheses[0],
        hypotheses,
        sum(one.cut for one in found),
        warnings_of(segments, found, numbered=len(found) > 1),
        tuple(term for one in found for term in one.terms),
        tuple(said),
        max(segment.parts for segment in segments),
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
