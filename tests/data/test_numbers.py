"""Numbers of a source are in its translation with the same value, in digits or in words."""

import re

import pytest

from heedful.data.numbers import changed_numbers, forms_of_number, marked_numbers, numbers_in


@pytest.mark.parametrize(
    ("number", "language", "text"),
    [
        ("1", "fr", "une idée commune"),
        ("10", "fr", "dix-sept voitures"),
        ("20", "fr", "quatre-vingts hommes"),
        ("4", "fr", "quatre-vingts hommes"),
        ("2", "fr", "vingt-deux jours"),
        ("1", "fr", "vingt-et-un jours"),
        ("20", "fr", "vingt et un jours"),
        ("5", "fr", "en mille neuf cent quatre-vingt-cinq"),
        ("30", "es", "treinta y uno"),
        ("6", "en", "sixty dogs"),
        ("8", "en", "eighteen dogs"),
        ("7", "en", "seventy dogs"),
        ("1", "en", "someone"),
        ("2", "en", "two hundred dogs"),
        ("2", "de", "zweiundzwanzig Hunde"),
        ("2", "ja", "二十一"),
    ],
)
def test_a_part_of_a_word_is_no_number(number: str, language: str, text: str) -> None:
    assert changed_numbers(number, text, ("en", language)) == [number]


@pytest.mark.parametrize(
    ("number", "language", "text"),
    [
        ("1", "fr", "un chien"),
        ("17", "fr", "Dix-sept voitures"),
        ("80", "fr", "quatre-vingts hommes"),
        ("21", "fr", "vingt-et-un jours"),
        ("22", "fr", "vingt-deux jours"),
        ("1985", "fr", "en mille neuf cent quatre-vingt-cinq"),
        ("31", "es", "treinta y uno"),
        ("2", "en", "a two-door car, two and three"),
        ("200", "en", "two hundred dogs"),
        ("2", "de", "zwei Hunde"),
        ("22", "de", "Zweiundzwanzig Hunde"),
        ("2", "ja", "犬が二匹"),
        ("1000", "en", "one thousand dogs"),
    ],
)
def test_a_small_number_may_be_in_words(number: str, language: str, text: str) -> None:
    assert changed_numbers(number, text, ("en", language)) == []


@pytest.mark.parametrize(
    ("source", "translation", "changed"),
    [
        ("It is -5 degrees.", "Il fait 5 degrés.", ["-5"]),
        ("It is \u22125 degrees.", "Il fait 5 degrés.", ["\u22125"]),
        ("-1,234.5 and 5", "1 234,5 et -5", ["-1,234.5"]),
        ("-5", "5", ["-5"]),
        ("It is <b>-5</b> (-6).", "Il fait <b>5</b> (6).", ["-5", "-6"]),
        ("It is -5 degrees.", "Il fait cinq degrés.", ["-5"]),
        ("From -5 to 5", "De 5 à 5", ["-5"]),
        *(
            ("It is -5 degrees.", text, [])
            for text in (
                *(
                    "Il fait -5 degrés.",
                    "Il fait \u22125 degrés.",
                    "Il fait \u2013 5 degrés.",
                    "Il fait moins 5 degrés.",
                ),
                *("Il fait moins cinq degrés.", "Moins cinq.", "Il fait 5 degrés au-dessous de zéro.", "minus 5"),
            )
        ),
        ("5 and -5", "-5 et 5", []),
        *(
            (text, re.sub("[-a-zA-Z)(}{%+]+", " / ", text), [])
            for text in ("A-5", "2019-5", "10-20", "2019-05-06", "+49 (30)-123-45", "10 -20", "- 5 apples", "5% -6%")
        ),
        ("{x}-5", "{x} 5", []),
        ("minus 5", "-5", []),
    ],
)
def test_a_minus_sign_is_part_of_a_number(source: str, translation: str, changed: list[str]) -> None:
    assert changed_numbers(source, translation, ("en", "fr")) == changed


def test_a_minus_sign_may_be_written_in_another_way() -> None:
    for language, text in (("zh", "气温零下5度"), ("zh", "气温-5度"), ("it", "meno 5"), ("de", "5 Grad unter null")):
        assert changed_numbers("It is -5", text, ("en", language)) == []
    assert forms_of_number("\u22121.5", ("en", "de")) == ("\u22121,5", "-1,5")
    assert marked_numbers("It is -5", ["-5"], ("en", "de")) == ("It is 37", {"37": "-5"})
    assert [number.text for number in numbers_in("-5 to -6, 7-8")] == ["-5", "-6", "7", "8"]
