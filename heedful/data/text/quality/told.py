"""What a training says of its pairs before it begins, from some of them."""

from heedful.data.text.pairs import Pairs
from heedful.data.text.quality import CHECKS
from heedful.data.text.quality.report import examine

LOOKED_AT = 5000  # pairs, evenly spread
TOLD = (
    "wrong_language",
    "mojibake",
    "control",
    "length_ratio",
    "placeholders",
    "numbers",
)  # what some show as well as all
SHARE = 0.002  # of the pairs, from which on it is worth saying


def in_a_line(pairs: Pairs, source: str, target: str) -> list[str]:
    """At most one line: which faults are there, and how often."""
    step = -(-len(pairs) // LOOKED_AT)
    report = examine(pairs, source=source, target=target, step=step)
    found = [(report.counts[name], name) for name in TOLD if report.counts[name] >= max(2, SHARE * report.looked_at)]
    if not found:
        return []
    told = "; ".join(f"{count:,} have {CHECKS[name].meaning}" for count, name in sorted(found, reverse=True))
    return [f"of {report.looked_at:,} pairs looked at, {told}: heed data check shows them"]
