"""The quality of a reward model, by judgements that it has not learnt from: pairs of a better and a worse answer."""

from collections.abc import Sequence
from math import exp, sqrt
from typing import NamedTuple

from heedful.metrics.labels import spearman

BINS = 10


class RewardedPair(NamedTuple):
    """The rewards of the better and of the worse answer, and their lengths."""

    better: float
    worse: float
    better_length: int
    worse_length: int


def calibration_error(chances: Sequence[float], right: Sequence[float | bool]) -> float:
    """The expected calibration error (Guo et al. 2017, equation 5): how far the predicted chance of being right is
    from the share that is right, on average over ten bins of equal width. A chance of 0.5 counts as half right."""
    bins: list[list[int]] = [[] for _ in range(BINS)]
    for i, chance in enumerate(chances):
        bins[min(BINS - 1, int(chance * BINS))].append(i)
    gaps = (abs(sum(chances[i] for i in own) - sum(right[i] for i in own)) for own in bins)
    return sum(gaps) / len(chances)


def beats_chance(pair_accuracy: float, pairs: int) -> bool:
    """Whether so large a share of so many pairs is in order less than once in twenty times by chance (the normal
    approximation of a binomial test, one-sided)."""
    return pair_accuracy - 0.5 > 1.645 * 0.5 / sqrt(pairs)


def pair_scores(pairs: Sequence[RewardedPair]) -> dict[str, float]:
    """The share of pairs in their right order (equal rewards count half); how far the chances that follow from the
    rewards are from that; and whether the reward depends on length: the rank correlation of reward and length over all
    answers, and the share in the right order where the better answer is the shorter one, and where it is the longer
    one."""
    hits = [0.5 if one.better == one.worse else float(one.better > one.worse) for one in pairs]
    chances = [1 / (1 + exp(-min(700.0, abs(one.better - one.worse)))) for one in pairs]  # of the one rewarded more
    rewards = [reward for one in pairs for reward in (one.better, one.worse)]
    lengths = [float(length) for one in pairs for length in (one.better_length, one.worse_length)]
    scores = {
        "pair_accuracy": sum(hits) / len(hits),
        "calibration_error": calibration_error(chances, hits),
        "length_correlation": spearman(rewards, lengths),
    }
    shorter = [hit for hit, one in zip(hits, pairs, strict=True) if one.better_length < one.worse_length]
    longer = [hit for hit, one in zip(hits, pairs, strict=True) if one.better_length > one.worse_length]
    for name, own in (("accuracy_shorter", shorter), ("accuracy_longer", longer)):
        if own:
            scores[name] = sum(own) / len(own)
    return scores
