"""Every pair looked at: which faults it has, and how many have each."""

from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heedful.data.lines import is_composed
from heedful.data.text.pairs import Pairs
from heedful.data.text.quality import CHECKS, languages, scripts, texts
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
    numbers = range(0, len(pairs), step)
    alike = Alike()
    for i, (said, odd) in zip(along(numbers), _looked_at(pairs, kinds, numbers), strict=True):
        one, other = pairs.source[i], pairs.target[i]
        both = texts.plain(one), texts.plain(other)
        report.looked_at += 1
        way = pairs.ways[i] if len(pairs.ways) else 0
        for fault, note in faults_of(one, other, both, kinds[way], said, odd, known, near):
            report.add(i, fault, partial(_example, pairs, i, note))
        alike.add(way, *both)
    for at in alike.copies():
        report.add(numbers[at], "duplicates", partial(_example, pairs, numbers[at]))
    shown: set[int] = set()
    for at, source_hash, count in alike.with_many_targets():
        example = partial(_example, pairs, numbers[at], f"{count} targets")
        report.add(numbers[at], "many_targets", None if source_hash in shown else example)
        shown.add(source_hash)
    return report


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


class Alike:
    """Which of many pairs have the same texts, by hashes of 64 bits."""

    def __init__(self) -> None:
        self.sources, self.pairs = array("Q"), array("Q")

    def add(self, way: int, source: str, target: str) -> None:
        self.sources.append(_hash(f"{way}\n{source}"))
        self.pairs.append(_hash(f"{way}\n{source}\n{target}"))

    def copies(self) -> Iterable[int]:
        """The numbers of the pairs that are there before."""
        copies = np.ones(len(self.pairs), dtype=bool)
        copies[self._different] = False
        return np.flatnonzero(copies).tolist()

    def with_many_targets(self) -> Iterator[tuple[int, int, int]]:
        """The numbers of the pairs whose source has many different targets, with the hash of the source, and how many
        they are."""
        sources = np.asarray(self.sources)
        each, counts = np.unique(sources[self._different], return_counts=True)
        many = dict(zip(each[counts > MANY_TARGETS].tolist(), counts[counts > MANY_TARGETS].tolist(), strict=True))
        for at in np.flatnonzero(np.isin(sources, [*many])).tolist() if many else ():
            yield at, self.sources[at], many[self.sources[at]]

    @cached_property
    def _different(self) -> NDArray[np.int64]:
        """The numbers of the first of equal pairs."""
        return np.unique(np.asarray(self.pairs), return_index=True)[1]


def faults_of(
    one: str,
    other: str,
    both: tuple[str, str],
    kind: "Kind",
    said: tuple[str | None, str | None],
    odd: bool,
    known: Collection[str],
    near: Overlap,
) -> Iterator[tuple[str, str]]:
    """The faults of one pair, each with what is wrong in it. `said` are the languages that its sides were found in;
    `odd`: whether it may have one of the faults that few pairs have."""
    if not (texts.has_words(one) and texts.has_words(other)):
        yield "empty", ""
        return
    if both[0] == both[1] and any(character.isalpha() for character in one):
        yield "copies", ""
    else:
        for text, language, code, expected in zip((one, other), said, kind.codes, kind.scripts, strict=True):
            if found := languages.another(language, code):
                yield "wrong_language", f"{found}, not {code}"
                break
            if odd and (script := scripts.another_script(text, expected)):
                yield "wrong_language", f"{scripts.in_words(script)} letters"
                break
    for text in (one, other):
        if mended := texts.undecoded(text):
            yield "mojibake", f"reads {mended}"
            break
    if odd:
        yield from _odd_faults((one, other), kind)
    if ratio := kind.usual.too_far(one, other):
        yield "length_ratio", f"{ratio:.1f} times the usual"
    source, target = (code or "" for code in kind.codes)
    yield from _unlike(
        "numbers", texts.lost_numbers(one, other, (source, target)), texts.lost_numbers(other, one, (target, source))
    )
    left, right = Counter(texts.placeholders(one)), Counter(texts.placeholders(other))
    yield from _unlike("placeholders", left - right, right - left)
    if known and (both[0] in known or both[1] in known):
        yield "overlap_test", ""
    elif known and (near.near(one) or near.near(other)):
        yield "near_overlap_test", ""


def _unlike(fault: str, lost: Iterable[str], added: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The fault of a pair one side of which has what the other has not."""
    if items := [*(f"-{item}" for item in lost), *(f"+{item}" for item in added)]:
        yield fault, " ".join(items)


def _odd_faults(pair: tuple[str, str], kind: "Kind") -> Iterator[tuple[str, str]]:
    if any(map(texts.CONTROL.search, pair)):
        yield "control", ""
    printed = [
        texts.printed_forms(text, wide=not own or bool(own & scripts.WIDE))
        for text, own in zip(pair, kind.scripts, strict=True)
    ]
    signs = {"invisible": map(texts.invisible, pair), "printed_forms": printed, "entities": map(texts.entities, pair)}
    for name, sides in signs.items():
        if found := [sign for side in sides for sign in side]:
            yield name, " ".join(dict.fromkeys(found))
    if not all(map(is_composed, pair)):
        yield "decomposed", ""
    if any(map(texts.is_cut, pair)):
        yield "pieces", ""


class Kind(NamedTuple):
    """What the pairs of a direction are to be like: the languages and the scripts of both sides, and their lengths."""

    codes: tuple[str | None, str | None]
    scripts: tuple[scripts.Scripts, scripts.Scripts]
    usual: "LengthRatios"


def _kinds(pairs: Pairs, source: str, target: str) -> list[Kind]:
    """That of all pairs; where there are several directions, that of each."""
    names = pairs.directions or ((source, target),)
    rows = pairs.by_direction()
    parts = [pairs.rows(rows.get(name, ())) for name in names] if pairs.directions else [pairs]
    return [_kind(part, *way) for way, part in zip(names, parts, strict=True)]


def _kind(part: Pairs, source: str, target: str) -> Kind:
    sides = ((source, part.source), (target, part.target))
    one, other = (languages.expected(name, own) for name, own in sides)
    first, second = (scripts.expected_scripts(languages.named(name), own) for name, own in sides)
    return Kind((one, other), (first, second), LengthRatios(part))


def _looked_at(
    pairs: Pairs, kinds: Sequence[Kind], numbers: range
) -> Iterator[tuple[tuple[str | None, str | None], bool]]:
    """The languages that both sides of each pair are found in, where something is expected of them, and whether the
    pair may have one of the faults that few have. Many pairs are looked at together, which takes far less time."""
    for at in range(0, len(numbers), AT_ONCE):
        own = numbers[at : at + AT_ONCE]
        ways = [pairs.ways[i] if len(pairs.ways) else 0 for i in own]
        codes = [kinds[way].codes for way in ways]
        source = [pairs.source[i] if code else "" for i, (code, _) in zip(own, codes, strict=True)]
        target = [pairs.target[i] if code else "" for i, (_, code) in zip(own, codes, strict=True)]
        both = zip(languages.languages_of(source), languages.languages_of(target), strict=True)
        odd = _odd(pairs, {kinds[way] for way in ways}, own)
        yield from ((said, place in odd) for place, said in enumerate(both))


def _odd(pairs: Pairs, kinds: Collection[Kind], numbers: Sequence[int]) -> set[int]:
    """The indices of the pairs with odd characters, letters of another script than is expected, or texts that are not
    composed."""
    found = set[int]()
    for side, each in enumerate((pairs.source, pairs.target)):
        some = [each[i] for i in numbers]
        found |= texts.having(texts.ODD, some) | texts.not_composed(some)
        if expected := [kind.scripts[side] for kind in kinds if kind.scripts[side]]:
            found |= texts.having(scripts.letters_of_others(frozenset.intersection(*expected)), some)
    return found


class LengthRatios:
    """How long targets are for their sources in these pairs: the median of the ratio, and how far it usually is off."""

    def __init__(self, pairs: Pairs) -> None:
        lengths = zip(map(len, pairs.source), map(len, pairs.target), strict=True)
        long = np.fromiter((right / left for left, right in lengths if min(left, right) >= LEAST_LONG), float)
        ratios = np.log(long if len(long) else [1.0])
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
