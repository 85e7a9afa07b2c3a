"""The bottleneck: the share of correct translations by sentence length, with and without attention."""

from heedful.lab.drawn import curves
from heedful.lab.exhibit import Rows, Says, Shown, Steps, holds, unsaid
from heedful.lab.recurrent.lists import MOST, SIZES, learnt, tests
from heedful.lab.recurrent.translators import STEPS
from heedful.lab.whole_words import parameters


def bottleneck(says: Says, *, steps: Steps = STEPS, sentences: Rows = 60) -> Shown:
    """Three translators of similar sizes learn the same lists of up to six things; each length is tested separately."""
    found = {kind: learnt(kind, steps) for kind in SIZES}
    lengths = range(1, MOST + 1)
    right = {kind: [one.right(tests(sentences, n)) for n in lengths] for kind, one in found.items()}
    lost = {kind: shares[0] - shares[-1] for kind, shares in right.items()}
    more = lost["thought vector"] > lost["attention"] + 0.3
    lines = [
        holds(says, "without attention, long sentences lose more", more),
        *unsaid({f"right of 1 to {MOST} things, {kind}": shares for kind, shares in right.items()}),
        *unsaid({f"parameters, {kind}": parameters(one.model) for kind, one in found.items()}),
    ]
    words = [4 * n - 1 for n in lengths]
    drawn = {str(kind): (words, shares) for kind, shares in right.items()}
    return Shown(lines, curves(drawn, x="words of the sentence", y="translated right, word for word"))
