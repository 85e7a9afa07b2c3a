"""Worked numbers, computed again in numpy by another way."""

import numpy as np
import pytest

from heedful.lab.lectern import show

KEYS = np.array([[1, 2], [2, 5], [0, 1]])
VALUES = np.array([[5, 2, 1, 4], [0, 1, 0, 1], [8, 4, 2, 1]])
QUERIES = np.array([[1, 1], [0, 1], [1, 0], [2, 2], [1, 2]])
SEEN = [[0], [0, 1], [0, 1, 2], [1, 2], [2]]


def computed(name: str, **settings: str) -> dict[str, np.ndarray]:
    return {line.claim: np.array(line.computed) for line in show(name, settings).lines}


def attended(query: np.ndarray, keys: np.ndarray, values: np.ndarray, scale: float) -> np.ndarray:
    """One query by the sum that the paper writes, without a mask: keys that are not seen are left out."""
    powers = [np.exp(scale * float(query @ key)) for key in keys]
    return sum(power * value for power, value in zip(powers, values, strict=True)) / sum(powers)


@pytest.mark.parametrize("scale", [0.7, 2**-0.5])
def test_five_queries(scale: float) -> None:
    found, masked = computed("N1", scale=str(scale)), computed("N2", scale=str(scale))
    for number, (query, seen) in enumerate(zip(QUERIES, SEEN, strict=True), 1):
        own, under_mask = found[f"output of q{number}"], masked[f"output of q{number}"]
        np.testing.assert_allclose(own, attended(query, KEYS, VALUES, scale), atol=1e-6)
        np.testing.assert_allclose(under_mask, attended(query, KEYS[seen], VALUES[seen], scale), atol=1e-6)


def test_rows_of_weights_in_the_order_of_their_words() -> None:
    """Each word of the phrase by the cosines of its vector (tech, fruit, other) with those of all three."""
    vectors = {"phone": [4, 0, 0], "apple": [2, 2, 0], "an": [0, 0, 3]}
    rows = np.array([*vectors.values()]) / np.linalg.norm([*vectors.values()], axis=1)[:, None]
    powers = np.exp(rows @ rows.T)
    weights = powers / powers.sum(1, keepdims=True)
    lines = {line.claim: (line.deck, line.computed) for line in show("N4").lines}
    for word, row in (("Phone", weights[0]), ("An", weights[2])):
        printed, here = lines[f"an apple phone: row of {word}"]
        np.testing.assert_allclose(here, row, atol=1e-6)
        assert np.argmax(printed) == np.argmax(row)


def test_the_exercise() -> None:
    keys, values = np.array([[1, 2], [-1, 1], [0, 1]]), np.array([[1, 1, 1, 1], [1, 0, 0, 1], [0, 0, 1, 1]])
    found = computed("N3")
    for number, query in enumerate(np.array([[0, 1], [1, 1]]), 1):
        np.testing.assert_allclose(found[f"output of q{number}"], attended(query, keys, values, 2**-0.5), atol=1e-6)
