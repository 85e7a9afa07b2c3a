"""Every pair looked at: which faults it has, and how many have each."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from heedful.data.text.pairs import Pairs
from heedful.data.text.quality import CHECKS, languages, texts
from heedful.data.text.quality.overlap import Overlap

EXAMPLES = 5  # of each fault
MANY_TARGETS = 10
LEAST_LONG = 15  # characters: the lengths of shorter texts tell little
FURTHEST = 3.0  # times as long as usual, at least, is too long
AT_ONCE = 4096  # pairs, whose languages are told together


@dataclass(frozen=True)
class QualityExample:
    where: str
    source: str
    target: str
    note: str = ""


@dataclass
class Report:
    """What was found: the faults of each pair, by its number, how many have each, and the first few of them.
    `languages` are the codes of both sides; "de, fr" where a side has several."""

    pairs: int
    tokens: tuple[int, int]  # words of both sides, as blanks separate them
    languages: tuple[str | None, str | None]
    faults: dict[int, list[str]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[QualityExample]] = field(default_factory=dict)
    looked_at: int = 0

    def add(self, i: int, fault: str, example: Callable[[], QualityExample] | None) -> None:
        self.faults.setdefault(i, []).append(fault)
        self.counts[fault] += 1
        shown = self.examples.setdefault(fault, [])
        if example and len(shown) < EXAMPLES:
            shown.append(example())

    def left_out(self, leaving: Collection[str]) -> dict[int, list[str]]:
        """The pairs that leave, each with all of its faults that make it leave."""
        found = ((i, [fault for fault in own if fault in leaving]) for i, own in self.faults.items())
        return {i: own for i, own in found if own}


def leaving(keep: Collection[str] = (), drop: Collection[str] = ()) -> set[str]:
    """The faults that make a pair leave: the usual ones, without those to keep, and with those to drop."""
    return ({name for name, check in CHECKS.items() if check.leaves} - {*keep}) | {*drop}


def examine(
    pairs: Pairs,
    tests: Sequence[Pairs] = (),
    *,
    source: str = "",
    target: str = "",
    step: int = 1,
    along: Callable[[range], Iterable[int]] = iter,
) -> Report:
    """All checks over all pairs, or over each `step`-th. `source` and `target` name the languages; `along` walks the
    numbers of the pairs, and may show how far it is."""
    kinds = _kinds(pairs, source, target)
    present = [kinds[way].codes for way in dict.fromkeys(pairs.ways)] or [one.codes for one in kinds]
    told = [", ".join(dict.fromkeys(filter(None, side))) or None for side in zip(*present, strict=True)]
    words = tuple(sum(len(text.split()) for text in side) for side in (pairs.source, pairs.target))
    report = Report(len(pairs), (words[0], words[1]), (told[0], told[1]))
    known = {texts.plain(text) for part in tests for side in (part.source, part.target) for text in side}
    near = Overlap(text for part in tests for side in (part.source, part.target) for text in side)
    seen: set[tuple[int, str, str]] = set()
    targets: dict[tuple[int, str], set[str]] = {}
    numbers = range(0, len(pairs), step)
    for i, said in zip(along(numbers), _languages(pairs, kinds, numbers), strict=True):
        one, other = pairs.source[i], pairs.target[i]
        both = texts.plain(one), texts.plain(other)
        report.looked_at += 1
        way = pairs.ways[i] if len(pairs.ways) else 0
        for fault, note in faults_of(one, other, both, kinds[way], said, known, near):
            report.add(i, fault, partial(_example, pairs, i, note))
        if (way, *both) in seen:
            report.add(i, "duplicates", partial(_example, pairs, i))
        seen.add((way, *both))
        targets.setdefault((way, both[0]), set()).add(both[1])
    many = {text: len(own) for text, own in targets.items() if len(own) > MANY_TARGETS}
    shown: set[tuple[int, str]] = set()
    for i in numbers if many else ():
        text = (pairs.ways[i] if len(pairs.ways) else 0), texts.plain(pairs.source[i])
        if text in many:
            note = f"{many[text]} targets"
            report.add(i, "many_targets", None if text in shown else partial(_example, pairs, i, note))
            shown.add(text)
    return report


def faults_of(
    one: str,
    other: str,
    both: tuple[str, str],
    kind: "Kind",
    said: tuple[str | None, str | None],
    known: Collection[str],
    near: Overlap,
) -> Iterator[tuple[str, str]]:
    """The faults of one pair, each with what is wrong in it. `said` are the languages that its sides were found in."""
    if not (texts.has_words(one) and texts.has_words(other)):
        yield "empty", ""
        return
    if both[0] == both[1] and any(character.isalpha() for character in one):
        yield "copies", ""
    else:
        for language, code in zip(said, kind.codes, strict=True):
            if found := languages.another(language, code):
                yield "wrong_language", f"{found}, not {code}"
                break
    for text in (one, other):
        if mended := texts.undecoded(text):
            yield "mojibake", f"reads {mended}"
            break
    if texts.CONTROL.search(one) or texts.CONTROL.search(other):
        yield "control", ""
    if texts.is_cut(one) or texts.is_cut(other):
        yield "pieces", ""
    if ratio := kind.usual.too_far(one, other):
        yield "length_ratio", f"{ratio:.1f} times the usual"
    for name, read in (("numbers", texts.numbers), ("placeholders", texts.placeholders)):
        if (left := read(one)) != (right := read(other)):
            first, second = Counter(left), Counter(right)
            told = [f"{mark}{item}" for mark, more in (("-", first - second), ("+", second - first)) for item in more]
            yield name, " ".join(told)
    if known and (both[0] in known or both[1] in known):
        yield "overlap_test", ""
    elif known and (near.near(one) or near.near(other)):
        yield "near_overlap_test", ""


class Kind(NamedTuple):
    """What the pairs of a direction are to be like: the languages of both sides, and their lengths."""

    codes: tuple[str | None, str | None]
    usual: "LengthRatios"


def _kinds(pairs: Pairs, source: str, target: str) -> list[Kind]:
    """That of all pairs; where there are several directions, that of each."""
    names = pairs.directions or ((source, target),)
    rows = pairs.by_direction()
    parts = [pairs.rows(rows.get(name, ())) for name in names] if pairs.directions else [pairs]
    return [
        Kind((languages.expected(one, part.source), languages.expected(other, part.target)), LengthRatios(part))
        for (one, other), part in zip(names, parts, strict=True)
    ]


def _languages(pairs: Pairs, kinds: Sequence[Kind], numbers: range) -> Iterator[tuple[str | None, str | None]]:
    """What both sides of each pair are found in, where something is expected of them."""
    for at in range(0, len(numbers), AT_ONCE):
        own = numbers[at : at + AT_ONCE]
        codes = [kinds[pairs.ways[i] if len(pairs.ways) else 0].codes for i in own]
        source = [pairs.source[i] if code else "" for i, (code, _) in zip(own, codes, strict=True)]
        target = [pairs.target[i] if code else "" for i, (_, code) in zip(own, codes, strict=True)]
        yield from zip(languages.languages_of(source), languages.languages_of(target), strict=True)


class LengthRatios:
    """How long targets are for their sources in these pairs: the median of the ratio, and how far it usually is off."""

    def __init__(self, pairs: Pairs) -> None:
        long = [
            (len(one), len(other))
            for one, other in zip(pairs.source, pairs.target, strict=True)
            if min(len(one), len(other)) >= LEAST_LONG
        ]
        ratios = np.log([other / one for one, other in long] or [1.0])
        self.middle = float(np.median(ratios))
        spread = 1.4826 * float(np.median(np.abs(ratios - self.middle)))  # a standard deviation, were they normal
        self.furthest = max(float(np.log(FURTHEST)), 5 * spread)

    def too_far(self, one: str, other: str) -> float | None:
        """How many times the usual ratio a pair's is, where that is too far; None of any other."""
        if max(len(one), len(other)) < LEAST_LONG * FURTHEST:
            return None
        off = abs(float(np.log(len(other) / len(one))) - self.middle)
        return float(np.exp(off)) if off > self.furthest else None


def _example(pairs: Pairs, i: int, note: str = "") -> QualityExample:
    return QualityExample(pairs.where(i), pairs.source[i], pairs.target[i], note)
