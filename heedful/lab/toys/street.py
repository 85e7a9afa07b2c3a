"""Sentences in which "it" is one of two nouns, depending only on the last word: the animal that was too tired, or the
street that was too wide. The French has to agree with it in gender."""

from functools import cache
from random import Random

from heedful.lab.whole_words import Learnt, Pair, WordVocabulary, small, translator

ANIMALS = {
    "animal": ("l' animal", False), "lion": ("le lion", False), "dog": ("le chien", False), "cat": ("le chat", False),
    "giraffe": ("la girafe", True), "cow": ("la vache", True), "goat": ("la chèvre", True),
    "mouse": ("la souris", True), "child": ("l' enfant", False), "frog": ("la grenouille", True),
}  # fmt: skip
SPOTS = {
    "street": ("la rue", True), "road": ("la route", True), "river": ("la rivière", True), "bridge": ("le pont", False),
    "field": ("le champ", False), "garden": ("le jardin", False), "path": ("le chemin", False),
    "square": ("la place", True),
}  # fmt: skip
OF_ANIMALS = {
    "tired": ("fatigué", "fatiguée"), "scared": ("effrayé", "effrayée"), "alone": ("seul", "seule"),
    "slow": ("lent", "lente"), "small": ("petit", "petite"),
}  # fmt: skip
OF_SPOTS = {
    "wide": ("large", "large"), "long": ("long", "longue"), "dangerous": ("dangereux", "dangereuse"),
    "narrow": ("étroit", "étroite"), "wet": ("humide", "humide"),
}  # fmt: skip


def crossing(animal: str, place: str, last: str) -> Pair:
    """The pair for: The animal did not cross the place because it was too ..."""
    (one, feminine), (other, also) = ANIMALS[animal], SPOTS[place]
    forms, gender = (OF_ANIMALS[last], feminine) if last in OF_ANIMALS else (OF_SPOTS[last], also)
    english = f"the {animal} did not cross the {place} because it was too {last}"
    return english, f"{one} n' a pas traversé {other} car {'elle' if gender else 'il'} était trop {forms[gender]}"


def feeling(animal: str, first: str, last: str) -> Pair:
    """The pair for: The animal was ... since it was ..."""
    (one, feminine), pronoun = ANIMALS[animal], "elle" if ANIMALS[animal][1] else "il"
    how, why = OF_ANIMALS[first][feminine], OF_ANIMALS[last][feminine]
    return f"the {animal} was {first} since it was {last}", f"{one} était {how} car {pronoun} était {why}"


def held_out(animal: str, place: str, last: str) -> bool:
    """Whether a combination of words is held out for testing, as about one in five is."""
    return sum(map(ord, animal + place + last)) % 5 == 0


def any_sentence(draw: Random) -> Pair:
    if draw.random() < 0.2:
        return feeling(draw.choice([*ANIMALS]), draw.choice([*OF_ANIMALS]), draw.choice([*OF_ANIMALS]))
    while True:
        chosen = draw.choice([*ANIMALS]), draw.choice([*SPOTS]), draw.choice([*OF_ANIMALS, *OF_SPOTS])
        if not held_out(*chosen):
            return crossing(*chosen)


def tests() -> list[Pair]:
    """All pairs that are held out."""
    every = [(a, p, last) for a in ANIMALS for p in SPOTS for last in [*OF_ANIMALS, *OF_SPOTS]]
    return [crossing(*chosen) for chosen in every if held_out(*chosen)]


@cache
def vocabulary() -> WordVocabulary:
    draw = Random(0)
    pairs = [any_sentence(draw) for _ in range(2000)]
    return WordVocabulary([side for pair in pairs for side in pair])


@cache
def learnt(steps: int) -> Learnt:
    return translator(small(64), any_sentence, vocabulary(), steps=steps, lr=3e-3)
