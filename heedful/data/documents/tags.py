"""Moves marks from a text to its translation by word alignment.

No mark is lost and none is added, and what was inside a pair of marks stays inside it: the alignment only determines
where the marks go.

A pair encloses the words of the translation that are aligned mostly with the words it enclosed in the text: of all
spans, the one with the largest sum of (share inside - 1/2). A single mark goes where as many words as possible before
it are aligned with words before it in the text, and after it with words after it.

A paragraph may have thousands of marks, so each pair considers only the links of its own words, and single marks are
placed together.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

import numpy

from heedful.data.documents.passages import Mark, merged
from heedful.data.documents.words import Span

BEFORE_SIGN = frozenset(f" {sign}" for sign in ".,;:!?)")  # a space that belongs to the punctuation after it
MOST_INSIDE = 64  # marks inside a word, as of letters in different colours; a word with more is not split at them


@dataclass(frozen=True)
class Alignment:
    """The words of a text and of its translation, as spans of characters, and for each word of the translation the
    shares of the text's words that it is aligned with; they sum to at most 1."""

    source: Sequence[Span]
    target: Sequence[Span]
    shares: Sequence[Mapping[int, float]]


@dataclass
class Node:
    """A single mark, or a pair with the nodes inside it. `begin` and `end` are words of the translation, once it is
    placed; a single mark is then before word `begin`."""

    opens: Mark
    closes: Mark | None
    words: range  # of the text
    begin: int = 0
    end: int = 0
    inner: list["Node"] = field(default_factory=list)


def moved(text: str, marks: Sequence[Mark], translation: str, alignment: Alignment) -> list[str | Mark]:
    """Returns the translation in parts, with the marks between them."""
    if not marks:
        return [translation]
    alignment = _finer(text, marks, translation, alignment)
    mover = _Mover(text, translation, alignment)
    nodes = mover.tree(marks)
    mover.place(nodes, 0, len(alignment.target))
    return merged(mover.put(nodes))


def _finer(text: str, marks: Sequence[Mark], translation: str, alignment: Alignment) -> Alignment:
    """Splits words at marks inside them, and likewise identical words of the translation that are aligned with them."""
    likeliest = [max(row, key=row.__getitem__, default=None) for row in alignment.shares]
    same = [
        word is not None and text[slice(*alignment.source[word])] == translation[slice(*span)]
        for word, span in zip(likeliest, alignment.target, strict=True)
    ]
    copied = {word for word, copies in zip(likeliest, same, strict=True) if copies}
    starts = [mark.at for mark in marks]
    parts = [
        [*pairwise([begin, *(_inside(starts, begin, end) if word in copied else ()), end])]
        for word, (begin, end) in enumerate(alignment.source)
    ]
    first = [*accumulate(map(len, parts), initial=0)]
    target, shares = list[Span](), list[Mapping[int, float]]()
    for word, copies, span, row in zip(likeliest, same, alignment.target, alignment.shares, strict=True):
        copied_word = word if copies else None
        even = {
            first[w] + k: own / len(parts[w])
            for w, own in row.items()
            if w != copied_word
            for k in range(len(parts[w]))
        }
        if copied_word is None:
            target.append(span)
            shares.append(even)
            continue
        off = span[0] - alignment.source[copied_word][0]
        for k, (begin, end) in enumerate(parts[copied_word], first[copied_word]):
            target.append((begin + off, end + off))
            shares.append(even | {k: row[copied_word]})
    return Alignment([span for own in parts for span in own], target, shares)


def _inside(starts: Sequence[int], begin: int, end: int) -> list[int]:
    """Returns the positions of marks inside a word, if they are not too many."""
    found = sorted({*starts[bisect_right(starts, begin) : bisect_left(starts, end)]})
    return found if len(found) <= MOST_INSIDE else []


class _Mover:
    def __init__(self, text: str, translation: str, alignment: Alignment) -> None:
        self.text, self.translation, self.alignment = text, translation, alignment
        self.begins = [begin for begin, _ in alignment.source]
        self.ends = [end for _, end in alignment.source]
        self.links: list[list[tuple[int, float]]] = [[] for _ in alignment.source]  # links to words of the translation
        for t, row in enumerate(alignment.shares):
            for word, own in row.items():
                self.links[word].append((t, own))
        counts = [len(row) for row in alignment.shares]
        # The links in the order of the words of the translation: these, the words of the text, and the shares.
        self.linked = numpy.repeat(numpy.arange(len(counts)), counts)
        self.linked_to = numpy.array([word for row in alignment.shares for word in row], dtype=int)
        self.linked_by = numpy.array([own for row in alignment.shares for own in row.values()], dtype=float)
        self.made: list[str | Mark] = []
        self.cursor = 0  # the position in the translation up to which it is in `made`
        self.blank = False  # whether the next word needs a space before it

    def tree(self, marks: Sequence[Mark]) -> list[Node]:
        top: list[Node] = []
        stack: list[Node] = []
        for mark in marks:
            if mark.role == "closes":
                node = stack.pop()
                node.closes = mark
                node.words = range(node.words.start, bisect_left(self.begins, mark.at))
                continue
            first = bisect_right(self.ends, mark.at)  # the first word that does not end before the mark
            node = Node(mark, None, range(first, first))
            (stack[-1].inner if stack else top).append(node)
            if mark.role == "opens":
                stack.append(node)
        return top

    def place(self, nodes: list[Node], low: int, high: int) -> None:
        """Assigns to adjacent nodes words from `low` to before `high`, and to the nodes inside them words among
        these."""
        todo = [(nodes, low, high)]
        while todo:
            todo += self._place(*todo.pop())

    def _place(self, nodes: list[Node], low: int, high: int) -> Iterator[tuple[list[Node], int, int]]:
        """Puts the nodes; yields for each the nodes inside it, and the words among which these are placed."""
        pairs = [node for node in nodes if node.closes is not None and node.words]
        free = [(low, high)] if low < high else []  # spans of words, in order
        shares = [self.share(node.words, low, high) for node in pairs]
        sure = [max(own.values(), default=0.0) for own in shares]

        def around(word: int) -> int:
            """The index of the free span that contains the word, or -1."""
            return bisect_right(free, (word, high)) - 1

        for number in sorted(range(len(pairs)), key=lambda number: -sure[number]):
            if free:
                node, own = pairs[number], shares[number]
                near = {around(t) for t in own} - {-1} | {len(free) - 1}  # all others have no shares
                linked = [*own]
                _, node.begin, node.end = max(_best(own, linked, *free[span]) for span in near)
                span = around(node.begin)
                left = ((free[span][0], node.begin), (node.end, free[span][1]))
                free[span : span + 1] = [each for each in left if each[0] < each[1]]
        alone = [node for node in nodes if node.begin == node.end]
        inside = {k for node in pairs for k in range(node.begin + 1, node.end)}
        if alone:
            allowed = numpy.array([k for k in range(low, high + 1) if k not in inside] or [low])
            cuts = self.cuts([node.words.start for node in alone], low, high, allowed)
            for node in alone:
                node.begin = node.end = cuts[node.words.start]
        yield from ((node.inner, node.begin, node.end) for node in nodes if node.inner)

    def share(self, words: range, low: int, high: int) -> dict[int, float]:
        """Returns how much of each word of the translation is aligned with these words, in order, without words that
        are not."""
        found = dict[int, float]()
        for word in words:
            for t, own in self.links[word]:
                if low <= t < high:
                    found[t] = found.get(t, 0.0) + own
        return dict(sorted(found.items()))

    def cuts(self, words: Sequence[int], low: int, high: int, allowed: numpy.ndarray) -> dict[int, int]:
        """Returns for each of these words of the text, in order, the word of the translation, among the `allowed`,
        before which a single mark goes that was before it.

        A mark further on in the text goes no less far in the translation, so the word in the middle is placed first;
        those before it then go no further, and those after it no less far."""
        found = {0: 0} if low == 0 else dict[int, int]()
        if high == len(self.alignment.target):
            found.setdefault(len(self.alignment.source), high)
        left = sorted({*words} - {*found})
        todo = [(0, len(left), 0, len(allowed) - 1)]
        while todo:
            first, last, least, most = todo.pop()
            if first < last:
                middle = (first + last) // 2
                at = least + self._cut(left[middle], allowed[least : most + 1])
                found[left[middle]] = int(allowed[at])
                todo += [(first, middle, least, at), (middle + 1, last, at, most)]
        return found

    def _cut(self, word: int, allowed: numpy.ndarray) -> int:
        """Returns the index of the best of the `allowed` words of the translation; of equals, of the nearest."""
        low, high = allowed[0], allowed[-1]
        links = slice(*numpy.searchsorted(self.linked, (low, high)))
        shares = self.linked_by[links]
        gains = numpy.bincount(
            self.linked[links] - low, numpy.where(self.linked_to[links] < word, shares, -shares), high - low
        )
        sums = numpy.concatenate([[0.0], gains.cumsum()]).round(9)[allowed - low]
        best = numpy.flatnonzero(sums == sums.max())
        return int(best[abs(allowed[best] - word).argmin()])

    def put(self, nodes: list[Node]) -> list[str | Mark]:
        todo = [(node, True) for node in _last_first(nodes)]  # each node, and whether it begins here
        while todo:
            node, begins = todo.pop()
            if begins:
                self._mark(node.opens, node.begin, opens=node.begin < node.end)
                todo += [(node, False), *((inner, True) for inner in _last_first(node.inner))]
            elif node.closes is not None:
                self._mark(node.closes, node.end, closes=node.begin < node.end)
        self._text(len(self.translation))
        return self.made

    def _mark(self, mark: Mark, word: int, *, opens: bool = False, closes: bool = False) -> None:
        at = max(self.cursor, self._character(mark, word, opens, closes))
        self._text(at)
        beside = self.text[max(0, mark.at - 1) : mark.at + 1]
        spaced = beside == "  "  # the mark has spaces on both sides
        spaced |= beside in BEFORE_SIGN and not opens and not closes  # or one before it, and no words inside
        last = self.made[-1] if self.made else ""
        after_thing = isinstance(last, Mark) and self.blank and last.at != mark.at
        if spaced and (after_thing or (isinstance(last, str) and last and not last.endswith(" "))):
            self.made.append(" ")
        self.made.append(mark)
        self.blank |= spaced

    def _text(self, end: int) -> None:
        own = self.translation[self.cursor : end]
        self.cursor = end
        if own:
            self.made.append(f" {own}" if self.blank and own[0].isalnum() else own)
            self.blank = False

    def _character(self, mark: Mark, word: int, opens: bool, closes: bool) -> int:
        """Returns the position of a mark in the white space before a word, corresponding to its position in the
        text."""
        target, source = self.alignment.target, self.alignment.source
        low = target[word - 1][1] if word else 0
        high = target[word][0] if word < len(target) else len(self.translation)
        before = bisect_right(self.ends, mark.at)
        if before < len(source) and source[before][0] < mark.at:  # inside a word
            within = mark.at - source[before][0]
            own = word - 1 if closes else word
            same = 0 <= own < len(target) and self._word(own) == self.text[slice(*source[before])]
            return target[own][0] + within if same else high if opens or not closes else low
        gap = self.text[source[before - 1][1] if before else 0 : source[before][0] if before < len(source) else None]
        after = mark.at - (source[before - 1][1] if before else 0)
        if gap == self.translation[low:high]:
            return low + after
        return low if closes or (after == 0 and not opens) else high

    def _word(self, number: int) -> str:
        return self.translation[slice(*self.alignment.target[number])]


def _last_first(nodes: Sequence[Node]) -> list[Node]:
    """Sorts nodes for a stack: the last first; of nodes at the same word, the last in the text first."""
    order = sorted(range(len(nodes)), key=lambda number: (nodes[number].begin, nodes[number].end, number))
    return [nodes[number] for number in reversed(order)]


def _best(shares: Mapping[int, float], linked: Sequence[int], low: int, high: int) -> tuple[float, int, int]:
    """Returns the span of at least one word, from `low` to before `high`, with the largest sum of (share - 1/2), after
    that sum (Kadane). Words that are missing from the shares, whose words in order are `linked`, have the share 0. Of
    equal spans, the first."""
    best, begin, total, last = (float("-inf"), low, low), low, 0.0, low - 1
    for t in (low, *linked[bisect_right(linked, low) : bisect_left(linked, high)]):
        total -= (t - last - 1) / 2
        if total < 0:
            begin, total = t, 0.0
        total += shares.get(t, 0.0) - 0.5
        if total > best[0] + 1e-9:
            best = (total, begin, t + 1)
        last = t
    return best
