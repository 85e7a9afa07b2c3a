"""Which script a text is in, by its letters: also of texts that are too short for their language to be identified."""

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from itertools import groupby

Scripts = frozenset[str]  # the first words of Unicode's names of their letters

LATIN, HAN = "LATIN", "CJK"
EAST_ASIAN = frozenset([HAN, "HIRAGANA", "KATAKANA"])  # which Japanese has beside each other
# By the codes of ISO 15924, as CLDR has them.
NAMES = {
    "Arab": "ARABIC", "Armn": "ARMENIAN", "Beng": "BENGALI", "Cyrl": "CYRILLIC", "Deva": "DEVANAGARI",
    "Ethi": "ETHIOPIC", "Geor": "GEORGIAN", "Grek": "GREEK", "Gujr": "GUJARATI", "Guru": "GURMUKHI", "Hang": "HANGUL",
    "Hani": HAN, "Hebr": "HEBREW", "Hira": "HIRAGANA", "Kana": "KATAKANA", "Khmr": "KHMER", "Knda": "KANNADA",
    "Laoo": "LAO", "Latn": LATIN, "Mlym": "MALAYALAM", "Mong": "MONGOLIAN", "Mymr": "MYANMAR", "Orya": "ORIYA",
    "Sinh": "SINHALA", "Syrc": "SYRIAC", "Taml": "TAMIL", "Telu": "TELUGU", "Thaa": "THAANA", "Thai": "THAI",
    "Tibt": "TIBETAN",
}  # fmt: skip
UNITED = {"Jpan": ("Hira", "Kana", "Hani"), "Kore": ("Hang", "Hani"), "Hans": ("Hani",), "Hant": ("Hani",)}
KNOWN = frozenset(NAMES.values())
WIDE = EAST_ASIAN | {"HANGUL"}  # in which letters of full width are usual
FEWEST = 2  # letters of another script
LOOKED_AT = 1000  # texts, from which the script of a side is told


@cache
def script_of(character: str) -> str:
    """The script of a letter; "" of other characters, and of scripts that are not known here."""
    if not character.isalpha():
        return ""
    name = unicodedata.name(character, "").removeprefix("FULLWIDTH ").removeprefix("HALFWIDTH ").partition(" ")[0]
    return name if name in KNOWN else ""


def _counted(text: str) -> Counter[str]:
    """How many letters of each script a text has."""
    found = Counter(map(script_of, text))
    found.pop("", None)
    return found


@cache
def scripts_of(code: str) -> Scripts:
    """The scripts that a language is written in, by CLDR; empty where that is not known."""
    from babel.core import get_global
    from babel.localedata import locale_identifiers

    usual = get_global("likely_subtags").get(code) or ""
    named = (one.split("_") for one in (usual, *locale_identifiers()))
    codes = {parts[1] for parts in named if len(parts) > 1 and parts[0] == code and len(parts[1]) == 4}
    found = {NAMES[each] for one in codes for each in UNITED.get(one, (one,)) if each in NAMES}
    return frozenset(found)


def main_script(texts: Iterable[str]) -> str | None:
    """The script that most texts have most letters of."""
    counts = Counter(own.most_common(1)[0][0] for own in map(_counted, texts) if own)
    most = counts.most_common(1)
    return most[0][0] if most and most[0][1] > counts.total() / 2 else None


def expected_scripts(code: str | None, texts: Sequence[str]) -> Scripts:
    """The scripts that texts of a side may be in: those of the language that it is called (None: it is not called by
    one), or else that of most of its texts. Names stay in Latin in many languages, so that is among them, unless most
    texts of a side that should not be are. Empty where nothing is expected."""
    some = texts[:: max(1, len(texts) // LOOKED_AT)]
    own, most = scripts_of(code) if code else frozenset[str](), main_script(some)
    if own:
        return own if most == LATIN and LATIN not in own else own | {LATIN}
    if most is None:
        return own
    return (EAST_ASIAN if most in EAST_ASIAN else frozenset([most])) | {LATIN}


@cache
def letters_of_others(expected: Scripts) -> re.Pattern[str]:
    """Letters of known scripts that are not expected."""
    return re.compile(f"[{''.join(''.join(own) for script, own in _letters().items() if script not in expected)}]+")


@cache
def _letters() -> dict[str, list[str]]:
    """The letters of each known script, as ranges of a class of characters."""
    found: dict[str, list[str]] = {}
    for script, own in groupby(map(chr, range(0xFFFF)), script_of):
        letters = [*own]
        if script:
            found.setdefault(script, []).append(f"{letters[0]}-{letters[-1]}")
    return found


def another_script(text: str, expected: Collection[str]) -> str | None:
    """The script of most letters of a text, where that is none of those that are expected."""
    counts = _counted(text) if expected else Counter[str]()
    others = Counter({script: count for script, count in counts.items() if script not in expected})
    if others.total() < FEWEST or 2 * others.total() <= counts.total():
        return None
    return others.most_common(1)[0][0]


def mostly_another_script(texts: Sequence[str], code: str) -> str | None:
    """The script that most texts are in, where a language of this code is not written in it."""
    most, own = main_script(texts[:: max(1, len(texts) // LOOKED_AT)]), scripts_of(code)
    return most if most and own and most not in own else None


def in_words(script: str) -> str:
    return "Han" if script == HAN else script.capitalize()
