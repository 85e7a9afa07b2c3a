"""Kneser-Ney: its probabilities sum to one, and are those of the definition, written out over dictionaries."""

import random
from collections import Counter
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from benchmarks.ngram import KneserNey, check, numbered, read_words
from heedful.errors import InputError

VOCABULARY = 7


def made(length: int, seed: int = 0) -> list[int]:
    """Words that mostly follow from the two before them; the last word of the vocabulary is never used."""
    draw, text = random.Random(seed), [1, 2]
    while len(text) < length:
        a, b = text[-2:]
        text.append((a * 2 + b) % (VOCABULARY - 1) if draw.random() < 0.6 else draw.randrange(VOCABULARY - 1) // 2)
    return text


def by_definition(text: list[int], order: int, history: tuple[int, ...], word: int) -> float:
    """Chen and Goodman 1999, one n-gram at a time."""
    text = [0] * (order - 1) + text
    grams = {k: [tuple(text[i : i + k]) for i in range(len(text) - k + 1)] for k in range(1, order + 1)}

    def counts(k: int) -> Counter[tuple[int, ...]]:
        return Counter(grams[k]) if k == order else Counter(gram[1:] for gram in set(grams[k + 1]))

    def probability(history: tuple[int, ...]) -> float:
        shorter = probability(history[1:]) if history else 1 / VOCABULARY
        count = counts(len(history) + 1)
        after = {gram[-1]: n for gram, n in count.items() if gram[:-1] == history}
        if not after:
            return shorter
        n1, n2, n3, n4 = (sum(n == times for n in count.values()) for times in (1, 2, 3, 4))
        y = n1 / (n1 + 2 * n2) if n1 else 0.0
        loss = (1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3) if n1 * n2 * n3 * n4 else (0.5,) * 3
        loss = tuple(min(max(lost, 0.0), times) for lost, times in zip(loss, (1, 2, 3), strict=True))
        lost = {w: loss[min(n, 3) - 1] for w, n in after.items()}
        total = sum(after.values())
        own = (after[word] - lost[word]) / total if word in after else 0.0
        return own + sum(lost.values()) / total * shorter

    return probability(history)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_it_is_the_definition(order: int) -> None:
    text = made(150)
    model = KneserNey(np.array(text), order=order, vocabulary=VOCABULARY)
    for history in list(product(range(VOCABULARY), repeat=order - 1))[:: 1 if order < 4 else 17]:
        found = model.probabilities(np.array([[*history, word] for word in range(VOCABULARY)]))
        expected = [by_definition(text, order, history, word) for word in range(VOCABULARY)]
        np.testing.assert_allclose(found, expected, rtol=1e-9)
        assert sum(expected) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("order", [1, 2, 5])
def test_probabilities_sum_to_one(order: int) -> None:
    check(KneserNey(np.array(made(400)), order=order, vocabulary=VOCABULARY), np.array(made(100, seed=1)))


def test_the_check_finds_a_fault() -> None:
    model = KneserNey(np.array(made(400)), order=3, vocabulary=VOCABULARY)
    model.levels[1] = model.levels[1]._replace(rest=model.levels[1].rest * 1.001)
    with pytest.raises(AssertionError):
        check(model, np.array(made(100, seed=1)))


def test_a_text_is_its_words_one_after_the_other() -> None:
    text = made(60, seed=1)
    model = KneserNey(np.array(made(300)), order=3, vocabulary=VOCABULARY)
    begun = [0, 0, *text]
    each = [model.probabilities(np.array([begun[i : i + 3]])) for i in range(len(text))]
    assert model.nats(np.array(text)) == pytest.approx(-np.log(each).sum())


def test_words_and_line_ends_are_counted(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text(" \n = A lobster = \n \n It is <unk> . \n")
    words = read_words(tmp_path / "train.txt")
    assert words == ["<eos>", "=", "A", "lobster", "=", "<eos>", "<eos>", "It", "is", "<unk>", ".", "<eos>"]
    texts, vocabulary = numbered({"train": words, "test": ["It", "<eos>"]})
    assert vocabulary == 8
    assert texts["test"][1] == 0


def test_a_word_outside_the_vocabulary_is_refused() -> None:
    with pytest.raises(InputError, match="'crab'"):
        numbered({"train": ["A", "lobster"], "test": ["A", "crab"]})
