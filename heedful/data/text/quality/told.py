"""What a training says of its pairs before it begins, from some of them."""

from collections.abc import Sequence

from heedful.data.text.pairs import Pairs
from heedful.data.text.quality import CHECKS
from heedful.data.text.quality.report import examine
from heedful.errors import counted

LOOKED_AT = 5000  # pairs, evenly spread
TOLD = (
    "wrong_language",
    "mojibake",
    "control",
    "invisible",
    "printed_forms",
    "entities",
    "length_ratio",
    "placeholders",
    "numbers",
)  # what some show as well as all
SHARE = 0.002  # of the pairs, from which on it is worth saying


def in_three_lines(
    pairs: Pairs, tests: Sequence[Pairs] = (), source: str = "", target: str = "", much: str = ""
) -> list[str]:
    """How much there is (where these are a sample, `much`), and of which languages; which faults are there, and how
    often; and what of the texts that the model is measured on is there too."""
    step = -(-len(pairs) // LOOKED_AT)
    report = examine(pairs, tests, source=source, target=target, step=step)
    codes = " and ".join(code or "a language that is not told" for code in report.languages)
    words = " and ".join(f"{count:,}" for count in report.tokens)
    much = f"{much or counted(len(pairs), 'pair') + f' to train on, of {words} words'}, in {codes}"
    counts = report.counts
    found = [(counts[name], name) for name in TOLD if counts[name] >= max(2, SHARE * report.looked_at)]
    told = "; ".join(f"{count:,} have {CHECKS[name].meaning}" for count, name in sorted(found, reverse=True))
    looked_at, found_wrong = counted(report.looked_at, "pair"), told or "hardly any has a fault"
    wrong = f"of {looked_at} looked at, {found_wrong}: heed data check shows all"
    same, near = counts["overlap_test"], counts["near_overlap_test"]
    known = "none has a text of the validation or test data, or nearly one"
    if same or near:
        verb = "has" if same == 1 else "have"
        known = f"{same:,} {verb} a text of the validation or test data, and {near:,} nearly one"
    return [much, wrong, f"of as many, {known}"]
