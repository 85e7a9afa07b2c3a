"""Which language a text is in, by a small model that comes with its library (Lui and Baldwin 2012)."""

from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from heedful.data.text.headers import SIDES, meaning
from heedful.data.text.quality.scripts import in_words, mostly_another_script, scripts_of

if TYPE_CHECKING:
    from heedful.data.text.quality.many_languages import LanguageBatches

LEAST = 25  # characters: shorter texts are not judged
SURE = 0.95  # the model's own probability, from which on it is believed
ROUNDED = 0.01  # how far probabilities can be apart whose sums were rounded in another order, with room
LOOKED_AT = 1000  # texts, from which a language is told that was not named
FEW = 200  # texts, from which it is told whether they are in the one that was
JOINED = 400  # characters of texts that are judged together
FEWEST_JOINED, AGREED = 8, 0.97  # how many such, and which share must be in one language for it to be sure
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


@cache
def batches() -> "LanguageBatches":
    from heedful.data.text.quality.many_languages import LanguageBatches

    return LanguageBatches(identifier())


def languages_of(texts: Sequence[str]) -> list[str | None]:
    """`language` of each text."""
    different = [text for text in dict.fromkeys(texts) if len(text) >= LEAST]
    found: dict[str, str | None] = {}
    for text, said in zip(different, batches().classify(different), strict=True) if different else ():
        if said is None or abs(said[1] - SURE) < ROUNDED:
            found[text] = language(text)
        else:
            found[text] = said[0] if said[1] >= SURE else None
    return [found.get(text) for text in texts]


def expected(name: str, texts: Sequence[str]) -> str | None:
    """The code of the language that a side is in: as it is called, or else what most of its texts are in."""
    return named(name) or _most(texts, LOOKED_AT) or common_language(texts)


def common_language(texts: Sequence[str]) -> str | None:
    """The code of the language that texts are in, where that is sure: short ones are joined and judged together, and
    hardly any may be in another."""
    joined = [""]
    for text in dict.fromkeys(texts[:: max(1, len(texts) // LOOKED_AT)]):
        if len(joined[-1]) >= JOINED:
            joined.append("")
        joined[-1] = f"{joined[-1]} {text}".strip()
    whole = [text[:JOINED] for text in joined if len(text) >= JOINED]
    found = Counter(language for language in languages_of(whole) if language and scripts_of(language))
    most = found.most_common(1)
    sure = most and len(whole) >= FEWEST_JOINED and most[0][1] >= AGREED * len(whole)
    return most[0][0] if sure else None


def another(found: str | None, code: str | None) -> str | None:
    """The language that was found of a text, where it is not the one of this code, nor may be."""
    same = found is None or code is None or found == code or any({found, code} <= own for own in ALIKE)
    return None if same else found


def mostly_another(name: str, texts: Sequence[str]) -> tuple[str, str] | None:
    """The language that most texts of a side are in, or their script, where that is not the one that it is called, and
    this one."""
    code = named(name)
    if code is None:
        return None
    script = mostly_another_script(texts, code)
    found = another(_most(texts, FEW), code) or (script and f"{in_words(script)} letters")
    return (found, code) if found else None


def named(name: str) -> str | None:
    code = meaning(name)
    return None if code in SIDES else code


def _most(texts: Sequence[str], looked_at: int) -> str | None:
    step = max(1, len(texts) // looked_at)
    found = Counter(filter(None, languages_of(texts[::step])))
    most = found.most_common(1)
    return most[0][0] if most and most[0][1] > found.total() / 2 else None
