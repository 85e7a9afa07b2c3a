"""Numbers of a source are in its translation with the same value, in digits or in words."""

import pytest

from heedful.data.numbers import changed_numbers


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
