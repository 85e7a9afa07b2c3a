"""The numbers of a text and of its translation, compared by value: 1,234.50 in English is 1.234,50 in German.

How a language writes numbers is known by Babel (Unicode's CLDR), and their words by num2words. In a language that is
not known, 1.234 may be more than a thousand or little more than one.
"""

import re
import unicodedata
from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from heedful.data.protected import NUMBER, PLACEHOLDER

OPENS = re.compile(r"<(?!/)|\\")  # placeholders behind which a text begins
TIME = re.compile(r"(\d{1,2})(?:\s?h\s?|:)(\d{2})")
DIGIT = re.compile(r"\d")
GROUPED = re.compile(r"[1-9]\d{0,2}(?:[.,]\d{3})+")
SPACES = re.compile(r"[\s'\u2019]")  # also separate thousands, in any language
MARKS = ("37", "46", "82", "59", "64", "73", "28", "91")  # stand for numbers
IN_WORDS = 10_000  # numbers up to this may be written in words
LONGEST = 1000  # numbers below this are told from those that they are a part of
HYPHENS = re.compile(r"[-\u2010\u2011]")
UNSPACED = ("ja", "ko", "th")  # in which words for numbers do not stand alone
# A minus sign before a digit, not a hyphen of a range, a date, a name or a list; and what may be meant for one.
MINUS = re.compile(r"(?:(?<![\d%\u00b0\u20ac$])\s|[(\[{<>=~\u2248\u00b1\u201c\u2018\u201e\u00ab])[-\u2212]\Z")
LIKE_MINUS = re.compile(r"(?<!\d)[-\u2010-\u2013\u2212\uff0d]\s?\Z")
MINUS_WORDS = {"ar": ("سالب", "ناقص"), "fa": ("منفی",), "it": ("meno",), "vi": ("âm",), "zh": ("负", "負", "零下")}
NEAR = 30  # characters: "5 degrees below zero" is a negative number
MARK = re.compile(r"[.,]")
ARABIC = str.maketrans("\u066b\u066c", ".,")  # what separates decimals and thousands there


class Symbols(NamedTuple):
    """What separates the decimals of a language's numbers, and their thousands."""

    decimal: str
    group: str


class Number(NamedTuple):
    """A number as it is written, and the values that it may have."""

    text: str
    values: frozenset[Decimal]


@lru_cache(maxsize=256)
def symbols_of(language: str) -> Symbols | None:
    """None for a name that is no language's code."""
    from babel import Locale, UnknownLocaleError
    from babel.numbers import get_decimal_symbol, get_group_symbol

    try:
        locale = Locale.parse(language.replace("-", "_"))
    except (ValueError, UnknownLocaleError):
        return None
    return Symbols(get_decimal_symbol(locale), get_group_symbol(locale))


def numbers_in(text: str, language: str = "", *, translated: bool = False) -> list[Number]:
    """The numbers outside of placeholders, in their order. 2:30 is 2.30, or 14.30; those of a date or a version count
    one by one. With a minus sign directly before it a number is negative; in a translation, one that may be (minus 5,
    - 5) has both values."""
    found = list[Number]()
    if DIGIT.search(text) is None:
        return found
    text = PLACEHOLDER.sub(lambda match: " " if OPENS.match(match[0]) else " )", text)
    for match in NUMBER.finditer(_in_ascii_digits(text)):
        written = text[match.start() : match.end()]
        if time := TIME.fullmatch(match[0]):
            hour = int(time[1])
            found.append(Number(written, frozenset(Decimal(f"{(hour + late) % 24}.{time[2]}") for late in (0, 12))))
        elif values := _values(SPACES.sub("", match[0]), symbols_of(language)):
            begin, end = match.span()
            if translated:
                both = values | _negative(values) if _may_be_negative(text, begin, end, language) else values
                found.append(Number(written, both))
            elif MINUS.search(text[max(begin - 3, 0) : begin].rjust(3)):
                found.append(Number(text[begin - 1 : end], _negative(values)))
            else:
                found.append(Number(written, values))
        else:
            found += [Number(part, frozenset([Decimal(part)])) for part in re.findall(r"\d+", match[0])]
    return found


def _negative(values: frozenset[Decimal]) -> frozenset[Decimal]:
    return frozenset(-value for value in values)


def _may_be_negative(text: str, begin: int, end: int, language: str) -> bool:
    """Whether a number may be meant as a negative one: by a sign or a word before it, or by a zero behind it."""
    before, (words, zero) = text[max(begin - NEAR, 0) : begin], _minus_words(_code(language))
    if LIKE_MINUS.search(before) or before.lower().rstrip().endswith(words):
        return True
    return zero is not None and zero.search(re.split("[.!?;]", text[end : end + NEAR].lower())[0]) is not None


@lru_cache(maxsize=64)
def _minus_words(code: str) -> tuple[tuple[str, ...], re.Pattern[str] | None]:
    """The words for minus in a language, and a pattern for its zero; None if it is not known."""
    from num2words import CONVERTER_CLASSES, num2words

    if code not in CONVERTER_CLASSES:
        return ("minus", *MINUS_WORDS.get(code, ())), None
    sign = (getattr(CONVERTER_CLASSES[code], "negword", None) or "").strip()
    words = [sign] if sign.isalpha() else []
    return ("minus", *words, *MINUS_WORDS.get(code, ())), re.compile(_whole([_plain(num2words(0, lang=code))], code))


def _in_ascii_digits(text: str) -> str:
    """The text with its digits as 0 to 9, and what separates them in Arabic as a point and a comma."""
    if text.isascii():
        return text
    return "".join(str(unicodedata.decimal(character, character)) for character in text.translate(ARABIC))


def _values(digits: str, symbols: Symbols | None) -> frozenset[Decimal]:
    """The values of digits with points and commas; none where these separate numbers."""
    marks = MARK.findall(digits)
    if not re.fullmatch(r"[\d.,]+", digits):
        return frozenset()
    if not marks:
        return frozenset([Decimal(digits)])
    whole, _, rest = digits.rpartition(marks[-1])
    as_decimal = {Decimal(f"{MARK.sub('', whole)}.{rest}")}
    as_groups = {Decimal(MARK.sub("", digits))} if GROUPED.fullmatch(digits) and len({*marks}) == 1 else set()
    if len(marks) > 1:
        grouped = GROUPED.fullmatch(whole) and marks[-1] not in whole and len({*marks}) == 2
        return frozenset(as_decimal if grouped else as_groups)
    if as_groups and symbols is not None:
        return frozenset(as_decimal if marks[0] == symbols.decimal else as_groups)
    return frozenset(as_decimal | as_groups)


def changed_numbers(source: str, translation: str, languages: tuple[str, str]) -> list[str]:
    """The numbers of a source, as they are written there, whose value its translation does not have as often, neither
    in digits nor, if it is small, in words."""
    numbers, missing = numbers_in(source, languages[0]), list[str]()
    left = numbers_in(translation, languages[1], translated=True) if numbers else []
    for number in sorted(numbers, key=lambda each: min(each.values) >= 0):  # the negative ones have less choice
        same = next((other for other in left if number.values & other.values), None)
        if same is not None:
            left.remove(same)
        elif not _in_words(number, translation, languages[1]):
            missing.append(number.text)
    return missing


def _in_words(number: Number, translation: str, language: str) -> bool:
    """Whether a number is in a text in words, which are whole words and no part of a longer number: twenty-two is
    not two."""
    from num2words import CONVERTER_CLASSES, num2words

    code = _code(language)
    small = [int(value) for value in number.values if value == int(value) and abs(value) <= IN_WORDS]
    if code not in CONVERTER_CLASSES:
        return False
    text = _plain(translation)
    for value in small:
        words = _plain(num2words(abs(value), lang=code))
        if words in text:
            pattern = _numbers_in_words(code) if abs(value) < LONGEST else re.compile(_whole([words], code))
            spans = [match.span() for match in pattern.finditer(text) if match[0] == words]
            if any(value >= 0 or _may_be_negative(text, *span, language) for span in spans):
                return True
    return False


def _code(language: str) -> str:
    return re.split("[-_]", language.lower())[0]


def _plain(text: str) -> str:
    """The text in lower case, with blanks for hyphens."""
    return " ".join(HYPHENS.sub(" ", text.lower()).split())


def _whole(words: Sequence[str], code: str) -> str:
    """A pattern for any of these as whole words, the longest first."""
    either = "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
    return either if code in UNSPACED else rf"(?<!\w)(?:{either})(?!\w)"


@lru_cache(maxsize=64)
def _numbers_in_words(code: str) -> re.Pattern[str]:
    from num2words import num2words

    return re.compile(_whole(list({_plain(num2words(value, lang=code)) for value in range(LONGEST)}), code))


def forms_of_number(number: str, languages: tuple[str, str]) -> tuple[str, ...]:
    """How a number may be written in the language of the translation, the usual way first."""
    if number.startswith("\u2212"):  # which is often written as a hyphen
        forms = forms_of_number(number[1:], languages)
        return tuple(sign + form for sign in "\u2212-" for form in forms)
    here, there = map(symbols_of, languages)
    if here is None or there is None or here.decimal == there.decimal or not MARK.search(number):
        return (number,)
    swapped = {here.decimal: there.decimal, here.group: there.group}
    usual = "".join(swapped.get(letter, letter) for letter in number)
    groups: Sequence[str] = [there.group] if not there.group.isspace() else ["\u202f", "\u00a0", " ", ""]
    return tuple(dict.fromkeys([*(usual.replace(there.group, group) for group in groups), usual]))


def marked_numbers(text: str, numbers: Sequence[str], languages: tuple[str, str]) -> tuple[str, dict[str, str]]:
    """A text with other numbers in place of these, and what each of those stands for in its translation."""
    stands = dict[str, str]()
    free = (mark for mark in MARKS if mark not in text)
    for number, mark in zip(numbers, free, strict=False):
        text = text.replace(number, mark, 1)
        stands[mark] = forms_of_number(number, languages)[0]
    return text, stands
