"""Lists of things in English and French, of any length. French adjectives follow their nouns and agree in gender."""

from collections.abc import Sequence
from functools import cache
from random import Random
from typing import Literal

from torch import Tensor

from heedful.lab.whole_words import Learnt, Pair, WordVocabulary, small, translator
from heedful.models.presets import RNNSize, TranslatorSize

NOUNS = {
    "car": ("voiture", True), "house": ("maison", True), "door": ("porte", True), "flower": ("fleur", True),
    "shirt": ("chemise", True), "book": ("livre", False), "boat": ("bateau", False), "hat": ("chapeau", False),
    "table": ("table", True), "sofa": ("canapé", False), "bag": ("sac", False), "pencil": ("crayon", False),
}  # fmt: skip
COLOURS = {
    "green": ("vert", "verte"), "blue": ("bleu", "bleue"), "white": ("blanc", "blanche"),
    "black": ("noir", "noire"), "grey": ("gris", "grise"), "purple": ("violet", "violette"),
}  # fmt: skip
MOST = 6  # things of a list
OWN_WORDS = "nouns and colours that look most at their own word"
Kind = Literal["thought vector", "attention", "transformer"]
SIZES: dict[Kind, TranslatorSize] = {
    "thought vector": RNNSize(d_embed=48, d_hidden=96, d_align=48, d_readout=48, attention=False),
    "attention": RNNSize(d_embed=48, d_hidden=64, d_align=48, d_readout=48),
    "transformer": small(48),
}


def things(draw: Random, count: int) -> Pair:
    """Such as "a green car and a blue boat", and the French."""
    english, french = [], []
    for _ in range(count):
        noun, colour = draw.choice([*NOUNS]), draw.choice([*COLOURS])
        (word, feminine), shades = NOUNS[noun], COLOURS[colour]
        english.append(f"a {colour} {noun}")
        french.append(f"{'une' if feminine else 'un'} {word} {shades[feminine]}")
    return " and ".join(english), " et ".join(french)


def any_length(draw: Random) -> Pair:
    return things(draw, draw.randint(1, MOST))


@cache
def vocabulary() -> WordVocabulary:
    draw = Random(0)
    pairs = [any_length(draw) for _ in range(500)]
    return WordVocabulary([side for pair in pairs for side in pair])


@cache
def learnt(kind: Kind | Literal["one block"], steps: int) -> Learnt:
    """A translator of such lists; "one block" is a transformer with one on each side, whose attention is followed most
    easily."""
    size = small(48, 1, 2) if kind == "one block" else SIZES[kind]
    return translator(size, any_length, vocabulary(), steps=steps, lr=4e-3, batch=48)


def at_own_words(weights: Tensor, rows: Sequence[str], columns: Sequence[str]) -> float:
    """The share of the French nouns and colours in `rows` that look most at the English word they translate."""
    french = {word: english for english, (word, _) in NOUNS.items()}
    french |= {form: english for english, forms in COLOURS.items() for form in forms}
    hits = [columns[int(weights[at].argmax())] == french[word] for at, word in enumerate(rows) if word in french]
    return sum(hits) / max(1, len(hits))


def tests(count: int, length: int) -> list[Pair]:
    """Test pairs: lists of `length` things."""
    draw = Random(length + 1_000)
    return [things(draw, length) for _ in range(count)]
