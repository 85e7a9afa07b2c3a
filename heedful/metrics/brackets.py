"""Labelled-bracket precision, recall and F1 of trees, as EVALB (Sekine and Collins 1997) counts with its COLLINS.prm.

Words with the tag of a punctuation mark do not count: a constituent spans the other words, and is left out where it has
none. Brackets without meaning, such as TOP, do not count either; ADVP and PRT are one label.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from heedful.data.text.trees import ROOTS, Tree

PUNCTUATION = (",", ":", "``", "''", ".", "-NONE-")
SHORT = 40  # words, punctuation too: sentences that are no longer are also scored apart


@dataclass(frozen=True)
class BracketScores:
    """From 0 to 1. `complete` is the share of trees without an error; `valid` the share of sentences that were scored:
    those whose words differ from the right tree's, or are only punctuation, are left out of all other scores."""

    f1: float
    precision: float
    recall: float
    complete: float
    valid: float


class _Counts(NamedTuple):
    """Counts of brackets in a sentence."""

    matched: int
    right: int
    found: int


def bracket_scores(right: Sequence[Tree], found: Sequence[Tree], *, longest: int | None = None) -> BracketScores:
    """The scores of all sentences together, or of those of at most `longest` words. Without any bracket they are 0."""
    pairs = list(zip(right, found, strict=True))
    chosen = [pair for pair in pairs if longest is None or len(pair[0].words()) <= longest]
    counted = [counts for pair in chosen if (counts := _compare(*pair)) is not None]
    matched, true, said = (sum(each[i] for each in counted) for i in range(3))
    return BracketScores(
        f1=_ratio(2 * matched, true + said),
        precision=_ratio(matched, said),
        recall=_ratio(matched, true),
        complete=_ratio(sum(len(set(each)) == 1 for each in counted), len(counted)),
        valid=_ratio(len(counted), len(chosen)),
    )


def _compare(right: Tree, found: Tree) -> _Counts | None:
    """None where the trees cannot be compared."""
    words, ours = _brackets(right)
    said, theirs = _brackets(found)
    return _Counts((ours & theirs).total(), ours.total(), theirs.total()) if words == said and said else None


def _brackets(tree: Tree) -> tuple[list[str], Counter[tuple[str, int, int]]]:
    """The words that count, and how often each constituent spans which of them."""
    leaves = list(tree.leaves())
    before = [0, *accumulate(leaf.tag not in PUNCTUATION for leaf in leaves)]  # words that count, before each place
    spans = (
        ("ADVP" if label == "PRT" else label, before[start], before[end]) for label, start, end in tree.constituents()
    )
    words = [leaf.word for leaf in leaves if leaf.tag not in PUNCTUATION]
    return words, Counter(span for span in spans if span[1] < span[2] and span[0] not in ROOTS)


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
