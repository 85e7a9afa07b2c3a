"""Which language a text is in, by a small model that comes with its library (Lui and Baldwin 2012)."""

from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Protocol, runtime_checkable

from heedful.data.text.headers import SIDES, meaning

LEAST = 25  # characters: shorter texts are not judged
SURE = 0.95  # the model's own probability, from which on it is believed
LOOKED_AT = 1000  # texts, from which a language is told that was not named
FEW = 200  # texts, from which it is told whether they are in the one that was
# What the model holds for others of the same texts so often that it is no fault.
ALIKE = ({"no", "nb", "nn", "da"}, {"hr", "sr", "bs", "sl"}, {"id", "ms"}, {"cs", "sk"}, {"gl", "pt"}, {"xh", "zu"})


@runtime_checkable
class Identifier(Protocol):
    def classify(self, text: str) -> tuple[str, float]: ...


@cache
def identifier() -> Identifier:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def language(text: str) -> str | None:
    """The code of a text's language, where it is long enough and the model is sure."""
    if len(text) < LEAST:
        return None
    code, probability = identifier().classify(text)
    return code if probability >= SURE else None


def expected(name: str, texts: Sequence[str]) -> str | None:
    """The code of the language that a side is in: as it is called, or else what most of its texts are in."""
    return _named(name) or _most(texts, LOOKED_AT)


def another(text: str, code: str | None) -> str | None:
    """The language of a text that is not in the one of this code; None of one that is, or may be."""
    return _unlike(language(text), code) if code else None


def mostly_another(name: str, texts: Sequence[str]) -> tuple[str, str] | None:
    """The language that most texts of a side are in, where that is not the one that it is called, and this one."""
    code = _named(name)
    found = _unlike(_most(texts, FEW), code) if code else None
    return (found, code) if found and code else None


def _named(name: str) -> str | None:
    code = meaning(name)
    return None if code in SIDES else code


def _most(texts: Sequence[str], looked_at: int) -> str | None:
    step = max(1, len(texts) // looked_at)
    found = Counter(filter(None, map(language, texts[::step])))
    most = found.most_common(1)
    return most[0][0] if most and most[0][1] > found.total() / 2 else None


def _unlike(found: str | None, code: str) -> str | None:
    same = found is None or found == code or any({found, code} <= own for own in ALIKE)
    return None if same else found
