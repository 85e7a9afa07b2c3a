"""Whether one system is better than another on the same texts, or only lucky: sacreBLEU's paired bootstrap
(Koehn 2004)."""

from collections.abc import Sequence
from dataclasses import dataclass

from heedful.data.lines import composed
from heedful.metrics.texts import (
    MeasuredScore,
    References,
    Scores,
    composed_references,
    measures,
    scores_of,
    transposed,
)

RESAMPLES = 1000


@dataclass(frozen=True)
class Compared:
    """The scores of two systems, and by measure how probable such a difference is between equal systems."""

    one: Scores
    other: Scores
    p: dict[str, float]

    def difference(self, name: str) -> float:
        """By how much the score of the one is above that of the other."""
        return getattr(self.one, name) - getattr(self.other, name)


def compare(
    one: Sequence[str], other: Sequence[str], references: References, *, samples: int = 0, ter: bool = False
) -> Compared:
    """Compares two systems. `samples`: how many resamples are drawn, the same for both; 0 for RESAMPLES. No p is below
    that of the sign test where one system is better on all texts: resamples of few texts are much alike."""
    from sacrebleu.significance import PairedTest, Result

    one, other, references = [*map(composed, one)], [*map(composed, other)], composed_references(references)
    own = measures(references, ter=ter)
    systems: list[tuple[str, Sequence[str]]] = [("other", other), ("one", one)]  # the first is what it compares with
    test = PairedTest(systems, own, transposed(references), test_type="bs", n_samples=samples or RESAMPLES)
    signatures, results = test()
    found: tuple[dict[str, MeasuredScore], dict[str, MeasuredScore]] = {}, {}
    p, least = {}, 2.0 ** (1 - len(one))
    for name, theirs in zip(own, signatures, strict=True):  # theirs has parameters in it: "chrF2"
        rows = [row for row in results[theirs] if isinstance(row, Result)]
        for system, row in zip(found, rows, strict=True):
            system[name] = MeasuredScore(
                row.score, str(signatures[theirs]), float(row.ci or 0) if len(one) > 1 else None
            )
        # The test counts resamples that are more extreme than what was seen, and finds none among equal ones.
        p[name] = 1.0 if rows[0].score == rows[1].score else max(least, float(rows[1].p_value or 0))
    return Compared(scores_of(found[1], one, references), scores_of(found[0], other, references), p)
