"""An n-gram language model with interpolated modified Kneser-Ney smoothing: what counting alone reaches.

    python -m benchmarks.ngram --data PATH/TO/wikitext2

Chen and Goodman 1999, section 3 ("modified Kneser-Ney"), on words that spaces divide; the end of a line is a word
too, <eos>, and histories go on across it, as they do for the models that this one is compared with. The folder holds
train.txt, valid.txt and test.txt; the vocabulary is the training text's, and texts with other words are refused.
"""

import argparse
import math
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from heedful.data.lines import read_lines
from heedful.errors import HeedError, InputError

EOS = "<eos>"
SPLITS = ("train", "valid", "test")


def read_words(path: Path) -> list[str]:
    """The words of a text, with EOS where a line ends."""
    return [word for line in read_lines(path) for word in (*line.split(), EOS)]


def numbered(texts: dict[str, list[str]]) -> tuple[dict[str, Int[ndarray, "T"]], int]:
    """Each text as word numbers, and how many different words "train" has. Raises InputError.

    EOS is 0, and the more frequent of two others comes first.
    """
    frequent = [word for word, _ in Counter(texts["train"]).most_common()]
    number = {word: i for i, word in enumerate(dict.fromkeys([EOS, *frequent]))}
    unknown = {word for words in texts.values() for word in words} - number.keys()
    if unknown:
        what = f"{len(unknown):,} words that the training text has not, {sorted(unknown)[0]!r} among them"
        raise InputError(what, fix="write <unk> in their place, in the training text too")
    return {name: np.array([number[word] for word in words]) for name, words in texts.items()}, len(number)


class Level(NamedTuple):
    """The n-grams of one length. A history is known by its number among the n-grams of one word less."""

    keys: Int[ndarray, "G"]  # history x vocabulary + last word, sorted; an n-gram's number is its place here
    share: Float[ndarray, "G"]  # of its history's probability, discounted
    rest: Float[ndarray, "H"]  # of each history: what the discounts leave to the shorter one

    def find(self, history: Int[ndarray, "B"], word: Int[ndarray, "B"], vocabulary: int) -> Int[ndarray, "B"]:
        """The numbers of these n-grams, -1 for one never seen."""
        keys = np.where(history < 0, -1, history * vocabulary + word)
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[places] == keys, places, -1)


class KneserNey:
    """Of some order, learnt from a text of word numbers below `vocabulary`, which begins at the start of a line."""

    def __init__(self, text: Int[ndarray, "T"], *, order: int, vocabulary: int) -> None:
        self.order, self.vocabulary = order, vocabulary
        text = self._begun(text)
        history = np.zeros_like(text)  # the number of the empty one, before each word
        seen = []  # for each length: the n-grams, where each was first seen, and which of them ends at each word
        for _ in range(order):
            keys = history * vocabulary + text[len(text) - len(history) :]
            seen.append(np.unique(keys, return_index=True, return_inverse=True))
            history = seen[-1][2][:-1]
        self.levels = []
        for k, (keys, _, grams) in enumerate(seen):
            if k + 1 < order:  # each longer one counts once: what tells is how many words were seen before this one
                grams = grams[1:][seen[k + 1][1]]
            count = np.bincount(grams, minlength=len(keys))
            histories = len(seen[k - 1][0]) if k else 1
            self.levels.append(level(keys, count, keys // vocabulary, histories))

    def _begun(self, text: Int[ndarray, "T"]) -> Int[ndarray, "W"]:
        """With a history for its first word: line ends."""
        return np.concatenate([np.zeros(self.order - 1, dtype=np.int64), text])

    def probabilities(self, grams: Int[ndarray, "B N"]) -> Float[ndarray, "B"]:
        """Of the last word of each row, given the order - 1 words before it."""
        word = grams[:, -1]
        found = np.full(len(grams), 1 / self.vocabulary)
        for k, one in enumerate(self.levels):
            history = np.zeros(len(grams), dtype=np.int64)
            for j in range(k):
                history = self.levels[j].find(history, grams[:, self.order - 1 - k + j], self.vocabulary)
            gram = one.find(history, word, self.vocabulary)
            longer = np.where(gram < 0, 0.0, one.share[gram]) + one.rest[history] * found
            found = np.where(history < 0, found, longer)
        return found

    def nats(self, text: Int[ndarray, "T"]) -> float:
        """The negative log-probability of a whole text that begins at the start of a line."""
        rows = np.lib.stride_tricks.sliding_window_view(self._begun(text), self.order)
        return float(-np.log(self.probabilities(rows)).sum())

    def perplexity(self, text: Int[ndarray, "T"]) -> float:
        return math.exp(self.nats(text) / len(text))


def level(keys: Int[ndarray, "G"], count: Int[ndarray, "G"], history: Int[ndarray, "G"], histories: int) -> Level:
    """Shares from counts, with one discount each for counts of one, two, and more."""
    discount = discounts(count)[np.minimum(count, 3)]
    total = np.bincount(history, weights=count, minlength=histories)
    taken = np.bincount(history, weights=discount, minlength=histories)
    followed = total > 0
    rest = np.divide(taken, total, out=np.ones(histories), where=followed)
    share = np.divide(count - discount, total[history], out=np.zeros(len(keys)), where=followed[history])
    return Level(keys, share, rest)


def discounts(count: Int[ndarray, "G"]) -> Float[ndarray, "4"]:
    """What counts of 0, 1, 2, and 3 or more lose; half of one, where the text is too small to tell."""
    n1, n2, n3, n4 = (int((count == times).sum()) for times in (1, 2, 3, 4))
    if 0 in (n1, n2, n3, n4):
        return np.array([0.0, 0.5, 0.5, 0.5])
    y = n1 / (n1 + 2 * n2)
    found = [0.0, 1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3]
    return np.clip(found, 0, [0, 1, 2, 3])


def check(model: KneserNey, text: Int[ndarray, "T"], histories: int = 20) -> None:
    """That the probabilities of all words sum to one after some histories of `text`, and after ones made up."""
    draw = np.random.default_rng(0)
    words = np.arange(model.vocabulary)[:, None]
    length = model.order - 1
    for i in range(histories):
        start = draw.integers(len(text) - length)
        past = text[start : start + length] if i % 2 else draw.integers(model.vocabulary, size=length)
        found = model.probabilities(np.concatenate([np.tile(past, (model.vocabulary, 1)), words], axis=1))
        assert (found > 0).all(), past
        assert abs(found.sum() - 1) < 1e-9, (past, found.sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--order", type=int, default=5, help="the longest; all shorter ones are measured too")
    parser.add_argument("--check", action="store_true", help="also that probabilities sum to one")
    chosen = parser.parse_args()
    texts, vocabulary = numbered({name: read_words(chosen.data / f"{name}.txt") for name in SPLITS})
    print(", ".join(f"{name} {len(text):,} words" for name, text in texts.items()), f"vocabulary {vocabulary:,}")
    for order in range(1, chosen.order + 1):
        begin = time.perf_counter()
        model = KneserNey(texts["train"], order=order, vocabulary=vocabulary)
        valid, test = model.perplexity(texts["valid"]), model.perplexity(texts["test"])
        print(f"order {order}: valid {valid:.2f}, test {test:.2f} ({time.perf_counter() - begin:.0f} s)", flush=True)
        if chosen.check:
            check(model, texts["test"])
            print("         probabilities sum to one")


if __name__ == "__main__":
    try:
        main()
    except HeedError as error:
        raise SystemExit(f"error: {error}") from None
