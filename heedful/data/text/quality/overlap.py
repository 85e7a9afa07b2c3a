"""Texts to train on that are in a test set too, or nearly."""

from collections import defaultdict
from collections.abc import Iterable
from math import ceil

from heedful.data.text.quality.texts import letters

SIZE = 5  # letters and digits that follow each other
SHARE = 0.8  # of the smaller text's, that both must have
FEWEST = 20  # letters and digits: shorter texts are near each other by chance


class Overlap:
    """Finds out of many texts those that some few have."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.pieces: list[frozenset[str]] = []
        self.having: defaultdict[str, list[int]] = defaultdict(list)
        for number, text in enumerate(dict.fromkeys(texts)):
            own = _pieces(text)
            self.pieces.append(own)
            for piece in own:
                self.having[piece].append(number)

    def near(self, text: str) -> bool:
        """Whether it has most of its pieces in common with one of them.

        Of any so many of its pieces that the others alone are too few, such a text has one: the rarest are looked for.
        """
        own = _pieces(text)
        known = own & self.having.keys()
        spare = len(known) - ceil(SHARE * len(own))
        if not own or spare < 0:
            return False
        rarest = sorted(map(self.having.__getitem__, known), key=len)[: spare + 1]
        found = set[int]().union(*rarest)
        return any(len(own & self.pieces[i]) >= SHARE * max(len(own), len(self.pieces[i])) for i in found)


def _pieces(text: str) -> frozenset[str]:
    own = letters(text)
    return frozenset(own[i : i + SIZE] for i in range(len(own) - SIZE + 1)) if len(own) >= FEWEST else frozenset()
