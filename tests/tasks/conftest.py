"""A tiny language whose words are said backwards in another alphabet: learnable in seconds, and not by looking up."""

import random

import pytest

from heedful.data.text import Corpus, Pairs

SYLLABLES = ["ba", "de", "gi", "ko", "lu", "ma", "ne", "pi", "ro", "su"]


def backwards(count: int, seed: int) -> Pairs:
    draw = random.Random(seed)
    source = [" ".join(draw.choice(SYLLABLES) for _ in range(draw.randint(2, 6))) for _ in range(count)]
    return Pairs(source, [" ".join(reversed(line.upper().split())) for line in source], f"made-{seed}")


@pytest.fixture(scope="session")
def corpus() -> Corpus:
    return Corpus(backwards(1200, 1), backwards(60, 2), {"test": backwards(60, 3)}, "low", "high", (), ("a note",))
