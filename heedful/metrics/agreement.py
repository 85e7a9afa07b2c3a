"""How far several rankings of the same things agree."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import fmean

from scipy.stats import kendalltau

Ranks = Sequence[int]  # of the same things, in their order; alike ones share a rank, and -1 is not ranked


def kendall(one: Ranks, other: Ranks) -> float | None:
    """Kendall's tau-b (1945) of two rankings: 1 where they are the same, -1 where they are opposite; None where one
    of them has only ties."""
    if len(set(one)) < 2 or len(set(other)) < 2:
        return None
    return float(kendalltau(one, other).statistic)


def agreement(judged: Mapping[str, Mapping[str, Ranks]]) -> dict[str, float | int]:
    """The agreement of rankings, given by item and by annotator: how many items two or more have ranked, the mean of
    Kendall's tau over every two who ranked the same item, and the share of pairs of things in the same order, among
    those that both ranked without a tie. What one of the two did not rank is not compared. The means are left out where
    there is nothing to compare."""
    taus, same, both, shared = [], 0, 0, 0
    for rankings in judged.values():
        shared += len(rankings) > 1
        for one, other in combinations(rankings.values(), 2):
            ranked = [pair for pair in zip(one, other, strict=True) if min(pair) >= 0]
            tau = kendall([a for a, _ in ranked], [b for _, b in ranked])
            taus += [] if tau is None else [tau]
            for (a, b), (c, d) in combinations(ranked, 2):
                signs = (a - c) * (b - d)
                same, both = same + (signs > 0), both + (signs != 0)
    found: dict[str, float | int] = {"items": shared, "comparisons": both}
    if taus:
        found["kendall_tau"] = fmean(taus)
    if both:
        found["same_order"] = same / both
    return found
