"""Marks moved from a text to its translation, by which words of one belong to which of the other.

No mark is lost and none invented, and what was within a pair of marks stays within it: whatever the alignment says, it
chooses where they stand and nothing else.

A pair goes around the words of the translation that belong, more than not, to the words that it was around: of all
stretches of words the one with the largest sum of (share within - 1/2). A mark alone goes where as many words as may be
before it belong to what was before it, and as many after it to what was after it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

from heedful.data.documents.passages import Mark, merged
from heedful.data.documents.words import Span


@dataclass(frozen=True)
class Alignment:
    """The words of a text and of its translation, as characters, and for each of the translation's the shares of those
    of the text that it belongs to; they sum up to at most 1."""

    source: Sequence[Span]
    target: Sequence[Span]
    shares: Sequence[Mapping[int, float]]


@dataclass
class Node:
    """A mark alone, or a pair with what is inside it. `begin` and `end` are words: of the text at first, and once it is
    placed of the translation, where a mark alone stands before word `begin`."""

    opens: Mark
    closes: Mark | None
    words: range  # of the text
    begin: int = 0
    end: int = 0
    inner: list["Node"] = field(default_factory=list)


def moved(text: str, marks: Sequence[Mark], translation: str, alignment: Alignment) -> list[str | Mark]:
    """The translation in parts, with the marks between them."""
    if not marks:
        return [translation]
    alignment = _finer(text, marks, translation, alignment)
    mover = _Mover(text, translation, alignment)
    nodes = mover.tree(marks)
    mover.place(nodes, 0, len(alignment.target))
    return merged(mover.put(nodes))


def _finer(text: str, marks: Sequence[Mark], translation: str, alignment: Alignment) -> Alignment:
    """A word with marks inside is parted there, and so is the same word of the translation where it belongs to it."""
    likeliest = [max(row, key=row.__getitem__, default=None) for row in alignment.shares]
    same = [
        word is not None and text[slice(*alignment.source[word])] == translation[slice(*span)]
        for word, span in zip(likeliest, alignment.target, strict=True)
    ]
    copied = {word for word, copies in zip(likeliest, same, strict=True) if copies}
    parts = [
        [*pairwise([begin, *(_inside(marks, begin, end) if word in copied else ()), end])]
        for word, (begin, end) in enumerate(alignment.source)
    ]
    first = [*accumulate(map(len, parts), initial=0)]
    target, shares = list[Span](), list[Mapping[int, float]]()
    for word, copies, span, row in zip(likeliest, same, alignment.target, alignment.shares, strict=True):
        even = {first[w] + k: own / len(parts[w]) for w, own in row.items() for k in range(len(parts[w]))}
        if word is None or not copies:
            target.append(span)
            shares.append(even)
            continue
        off = span[0] - alignment.source[word][0]
        for k, (begin, end) in enumerate(parts[word]):
            own = {first[word] + other: row[word] * (other == k) for other in range(len(parts[word]))}
            target.append((begin + off, end + off))
            shares.append(even | own)
    return Alignment([span for own in parts for span in own], target, shares)


def _inside(marks: Sequence[Mark], begin: int, end: int) -> list[int]:
    """Where marks stand inside of a word."""
    return sorted({mark.at for mark in marks if begin < mark.at < end})


class _Mover:
    def __init__(self, text: str, translation: str, alignment: Alignment) -> None:
        self.text, self.translation, self.alignment = text, translation, alignment
        self.begins = [begin for begin, _ in alignment.source]
        self.ends = [end for _, end in alignment.source]
        self.made: list[str | Mark] = []
        self.cursor = 0  # how much of the translation is in it
        self.blank = False  # whether the next word is to have a blank before it

    def tree(self, marks: Sequence[Mark]) -> list[Node]:
        top: list[Node] = []
        stack: list[Node] = []
        for mark in marks:
            if mark.role == "closes":
                node = stack.pop()
                node.closes = mark
                node.words = range(node.words.start, bisect_left(self.begins, mark.at))
                continue
            first = bisect_right(self.ends, mark.at)  # the first word that does not end before it
            node = Node(mark, None, range(first, first))
            (stack[-1].inner if stack else top).append(node)
            if mark.role == "opens":
                stack.append(node)
        return top

    def place(self, nodes: list[Node], low: int, high: int) -> None:
        """Gives the nodes, which are side by side, their words among those from `low` to before `high`, and those
        inside of them theirs."""
        todo = [(nodes, low, high)]
        while todo:
            todo += self._place(*todo.pop())

    def _place(self, nodes: list[Node], low: int, high: int) -> Iterator[tuple[list[Node], int, int]]:
        """What is inside of each, and the words that it is placed among."""
        pairs = [node for node in nodes if node.closes is not None and node.words]
        free = [(low, high)] if low < high else []
        shares = [self.share(node.words, low, high) for node in pairs]
        sure = [max(own, default=0.0) for own in shares]
        for number in sorted(range(len(pairs)), key=lambda number: -sure[number]):
            if free:
                node = pairs[number]
                _, node.begin, node.end = max(_best(shares[number], low, *span) for span in free)
                around = next(span for span in free if span[0] <= node.begin and node.end <= span[1])
                free.remove(around)
                free += [span for span in ((around[0], node.begin), (node.end, around[1])) if span[0] < span[1]]
                yield node.inner, node.begin, node.end
        placed = [node for node in pairs if node.begin < node.end]
        inside = {k for node in placed for k in range(node.begin + 1, node.end)}
        for node in nodes:
            if node.begin == node.end:
                node.begin = node.end = self.cut(node.words.start, low, high, inside)
                yield node.inner, node.begin, node.end

    def share(self, words: range, low: int, high: int) -> list[float]:
        """How much of each word of the translation belongs to these words."""
        rows = self.alignment.shares[low:high]
        return [sum((own for word, own in row.items() if word in words), 0.0) for row in rows]

    def cut(self, word: int, low: int, high: int, not_at: set[int]) -> int:
        """Before which word of the translation a mark stands that stood before this word."""
        if low == 0 and word == 0:
            return 0
        if high == len(self.alignment.target) and word == len(self.alignment.source):
            return high
        gains = []
        for t in range(low, high):
            shares = self.alignment.shares[t]
            before = sum((own for each, own in shares.items() if each < word), 0.0)
            gains.append(2 * before - sum(shares.values()))
        sums = [*accumulate(gains, initial=0.0)]
        allowed = [k for k in range(low, high + 1) if k not in not_at] or [low]
        return max(allowed, key=lambda k: (round(sums[k - low], 9), -abs(k - word)))

    def put(self, nodes: list[Node]) -> list[str | Mark]:
        todo = [(node, True) for node in _last_first(nodes)]  # each, and whether it begins
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
        spaced = self.text[max(0, mark.at - 1) : mark.at + 1] == "  "  # what stands there has blanks on both sides
        last = self.made[-1] if self.made else ""
        if spaced and isinstance(last, str) and last and not last.endswith(" "):
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
        """Where in the blanks before a word a mark stands: as it stood in those of the text."""
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
    """The last to be written first; of those at the same place, the last in the text."""
    order = sorted(range(len(nodes)), key=lambda number: (nodes[number].begin, nodes[number].end, number))
    return [nodes[number] for number in reversed(order)]


def _best(shares: Sequence[float], first: int, low: int, high: int) -> tuple[float, int, int]:
    """The stretch of words from `low` to before `high`, at least one, with the largest sum of (share - 1/2), and that
    sum (Kadane); the first of shares is that of word `first`. Of equals, the first."""
    best, begin, total = (float("-inf"), low, low), low, 0.0
    for t in range(low, high):
        if total < 0:
            begin, total = t, 0.0
        total += shares[t - first] - 0.5
        if total > best[0] + 1e-9:
            best = (total, begin, t + 1)
    return best
