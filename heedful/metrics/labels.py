"""Scores of answers, with their usual definitions."""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from math import log, sqrt


def accuracy(found: Sequence[object], right: Sequence[object]) -> float:
    return sum(a == b for a, b in zip(found, right, strict=True)) / len(right)


def by_luck(count: int, share: float = 0.0) -> float:
    """The share of `count` answers that may be right by luck, where each is with probability `share`: two standard
    deviations, two answers, or a hundredth more, whichever is most."""
    return share + max(0.01, 2 / count, 2 * sqrt(share * (1 - share) / count))


def most_frequent(answers: Iterable[Hashable]) -> float:
    """The share of the most frequent answer; 0 without answers."""
    counts = Counter[Hashable](answers)
    return max(counts.values(), default=0) / max(1, counts.total())


def f1(found: Sequence[Sequence[str]], right: Sequence[Sequence[str]]) -> tuple[float, float]:
    """Macro and micro F1 of the labels of each example: the mean over the labels that occur in either, and the score of
    all decisions together. With one label per example, micro F1 is the accuracy."""
    hits, said, true = Counter[str](), Counter[str](), Counter[str]()
    for ours, theirs in zip(found, right, strict=True):
        said.update(ours)
        true.update(theirs)
        hits.update(set(ours) & set(theirs))
    labels = said.keys() | true.keys()
    each = [2 * hits[label] / (said[label] + true[label]) for label in labels]
    total = said.total() + true.total()
    return sum(each) / max(1, len(each)), 2 * hits.total() / max(1, total)


def has_spans(labels: Sequence[str]) -> bool:
    """Whether the labels mark where spans begin and continue: B-X, I-X and O (Ramshaw and Marcus 1995)."""
    return any(label != "O" for label in labels) and all(label == "O" or label[:2] in ("B-", "I-") for label in labels)


def spans(labels: Sequence[str]) -> set[tuple[int, int, str]]:
    """Start, end and kind of each span, by the rules of CoNLL-2000's conlleval, as in seqeval: an I- with no span of
    its kind to continue starts one."""
    found, begin, own = set(), 0, ""
    for i, label in enumerate([*labels, "O"]):
        tag, _, kind = label.partition("-")
        if own and (tag != "I" or kind != own):
            found.add((begin, i, own))
            own = ""
        if tag != "O" and not own:
            begin, own = i, kind
    return found


def span_scores(found: Sequence[Sequence[str]], right: Sequence[Sequence[str]]) -> dict[str, float]:
    """Precision, recall and F1 of all spans of the sentences together."""
    pairs = [(spans(ours), spans(theirs)) for ours, theirs in zip(found, right, strict=True)]
    hits, said, true = (sum(map(len, sets)) for sets in ([a & b for a, b in pairs], *zip(*pairs, strict=True)))
    total = 2 * hits / max(1, said + true)
    return {"span_precision": hits / max(1, said), "span_recall": hits / max(1, true), "span_f1": total}


def pearson(found: Sequence[float], right: Sequence[float]) -> float:
    """The correlation of two series; 0 where one of them does not vary."""
    if len({*found}) < 2 or len({*right}) < 2:  # their means may be others by rounding
        return 0.0
    ours, theirs = sum(found) / len(found), sum(right) / len(right)
    together = sum((a - ours) * (b - theirs) for a, b in zip(found, right, strict=True))
    each = sum((a - ours) ** 2 for a in found) * sum((b - theirs) ** 2 for b in right)
    return together / sqrt(each) if each > 0 else 0.0


def spearman(found: Sequence[float], right: Sequence[float]) -> float:
    """The correlation of the ranks, equal values sharing the mean of theirs."""
    return pearson(_ranks(found), _ranks(right))


def _ranks(values: Sequence[float]) -> list[float]:
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    begin = 0
    for end in range(1, len(order) + 1):
        if end == len(order) or values[order[end]] != values[order[begin]]:
            for index in order[begin:end]:
                ranks[index] = (begin + end - 1) / 2
            begin = end
    return ranks


def entropy(answers: Iterable[Hashable]) -> float:
    """The entropy in nats: the loss of a model that only knows how often each answer is right; 0 without answers."""
    counts = Counter[Hashable](answers)
    total = sum(counts.values())
    return sum((count / total * log(total / count) for count in counts.values()), 0.0)
