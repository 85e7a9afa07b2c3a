"""The phrasebook: an embedded English-French corpus of any size, for a demonstration that needs no download.

Figures (numbers, dates, times of day, prices) and everyday sentences are built by a small grammar in both
languages at once, so that an English sentence has exactly one French. Held out are new combinations of words.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Literal

from heedful.data.made.phrasebook import everyday, reckoning
from heedful.data.made.phrasebook.grammar import Pair
from heedful.errors import InputError

__all__ = ["KINDS", "Phrasebook", "phrasebook", "split_of"]

KINDS: dict[str, Callable[[Random], Pair]] = {
    "number": reckoning.number,
    "arithmetic": reckoning.arithmetic,
    "rank": reckoning.rank,
    "age": reckoning.age,
    "date": reckoning.date,
    "clock": reckoning.clock,
    "price": reckoning.price,
    "shopping": reckoning.shopping,
    "appointment": reckoning.appointment,
    "statement": everyday.statement,
    "negation": everyday.negation,
    "question": everyday.question,
    "wh_question": everyday.wh_question,
    "which": everyday.which,
    "command": everyday.command,
    "description": everyday.description,
    "comparison": everyday.comparison,
    "possession": everyday.possession,
    "pronoun": everyday.pronoun,
    "relative": everyday.relative,
    "coordination": everyday.coordination,
    "quantity": everyday.quantity,
    "giving": everyday.giving,
    "location": everyday.location,
}

# One sentence in _PARTS belongs to the test set, and as many to the validation set.
_PARTS = 16
# A kind is taken to be exhausted after so many draws in a row without a new sentence.
_PATIENCE = 2000


@dataclass(frozen=True)
class Phrasebook:
    """English-French pairs in three sets that share no sentence, and the kind of each English sentence."""

    train: list[tuple[str, str]]
    valid: list[tuple[str, str]]
    test: list[tuple[str, str]]
    kinds: dict[str, str]


def split_of(english: str) -> Literal["train", "valid", "test"]:
    """The set that a sentence belongs to, whatever the seed: a hash of its lower-case English decides."""
    digest = hashlib.blake2b(english.lower().encode(), digest_size=8).digest()
    part = int.from_bytes(digest, "big") % _PARTS
    return "test" if part == 0 else "valid" if part == 1 else "train"


def phrasebook(size: int = 60_000, seed: int = 0, *, held_out: int = 1000) -> Phrasebook:
    """Draw `size` training pairs, and `held_out` pairs for validation and as many for test, all distinct.

    The kinds of sentence take equal shares. The same arguments give the same pairs on every machine. Raises
    `InputError` for a negative size, or one beyond what the grammar can say.
    """
    if size < 0 or held_out < 0:
        raise InputError("a phrasebook cannot have a negative size", fix="ask for zero pairs or more")
    rng, draws = Random(seed), list(KINDS.items())
    left = {"train": size, "valid": held_out, "test": held_out}
    pairs: dict[str, list[tuple[str, str]]] = {name: [] for name in left}
    kinds: dict[str, str] = {}
    seen: set[str] = set()
    turn = 0
    while any(left.values()):
        kind, draw = draws[turn % len(draws)]
        turn += 1
        for _ in range(_PATIENCE):
            english, french = draw(rng)
            if english.lower() not in seen:
                break
        else:
            raise InputError(f"the phrasebook has no more sentences of kind {kind!r}", fix="ask for a smaller size")
        seen.add(english.lower())
        name = split_of(english)
        if left[name]:
            left[name] -= 1
            pairs[name].append((english, french))
            kinds[english] = kind
    return Phrasebook(pairs["train"], pairs["valid"], pairs["test"], kinds)
