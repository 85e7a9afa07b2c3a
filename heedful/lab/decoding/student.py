"""A translator of short French sentences, which trains in seconds, for watching it decode."""

from functools import cache
from random import Random

from heedful.lab.whole_words import Learnt, Pair, WordVocabulary, small, translator

WHO = {"je": ("suis", "I", "am"), "tu": ("es", "you", "are"), "il": ("est", "he", "is"), "elle": ("est", "she", "is")}
WHAT = {"étudiant": "student", "professeur": "teacher", "médecin": "doctor", "peintre": "painter", "artiste": "artist"}
HOW = {"fatigué": "tired", "content": "happy", "ici": "here", "malade": "ill"}
STEPS = 150  # a second or two
STUDENT = ("je suis étudiant", "I am a student")


def any_sentence(draw: Random) -> Pair:
    """A French sentence and its English translation, which needs an article where French has none: "a" or "an"."""
    who = draw.choice([*WHO])
    verb, person, be = WHO[who]
    if draw.random() < 0.6:
        what = draw.choice([*WHAT])
        english = WHAT[what]
        return f"{who} {verb} {what}", f"{person} {be} {'an' if english[0] in 'aeiou' else 'a'} {english}"
    how = draw.choice([*HOW])
    return f"{who} {verb} {how}", f"{person} {be} {HOW[how]}"


@cache
def learnt(steps: int, blocks: int = 1) -> Learnt:
    draw = Random(0)
    words = WordVocabulary([side for _ in range(500) for side in any_sentence(draw)])
    return translator(small(32, blocks, 2), any_sentence, words, steps=steps, lr=5e-3, batch=32)
