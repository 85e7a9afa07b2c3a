"""What is done to sentences so that they look as people type them."""

import random
import re
from collections import Counter

import pytest

from heedful.data.text.rough import made_url, with_typos, without_punctuation

TEXT = "My sister isn't buying 3.5 kilograms of red apples, is she?"


def test_errors_are_in_letters_of_longer_words() -> None:
    made = {with_typos(TEXT, random.Random(seed)) for seed in range(40)}
    assert len(made) > 20
    for text in made:
        assert abs(len(text) - len(TEXT)) <= 1
        changed = [(old, new) for old, new in zip(TEXT.split(), text.split(), strict=True) if old != new]
        assert len(changed) <= 1  # of the six longer words
        assert all(len(old) >= 4 for old, _ in changed)
    kinds = Counter(len(text) - len(TEXT) for text in made)
    assert {*kinds} == {-1, 0, 1}
    long = " ".join(["apples"] * 30)
    words = with_typos(long, random.Random(1)).split()
    assert 1 <= sum(word != "apples" for word in words) <= 3


@pytest.mark.parametrize("text", ["", "a b", "1234 !", "日本"])
def test_what_has_no_long_word_stays(text: str) -> None:
    assert with_typos(text, random.Random(1)) == text


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        (TEXT, "My sister isn't buying 3.5 kilograms of red apples is she"),
        ("\u201cWell\u201d, (he) said: no\u2026", "Well he said no"),
        ("5 € + 3 %", "5 € + 3"),
        ("Où va-t-elle ?", "Où va-t-elle"),
        ("?!", "?!"),
    ],
)
def test_punctuation_goes_and_what_is_in_words_stays(text: str, bare: str) -> None:
    assert without_punctuation(text) == bare


def test_urls_are_urls() -> None:
    made = [made_url(random.Random(seed)) for seed in range(50)]
    assert len({*made}) == 50
    assert all(re.fullmatch(r"https://(www\.)?[a-z]{3,10}\.[a-z]{2,4}(/[a-z0-9]{1,8})?", url) for url in made)
    assert any("/" in url[8:] for url in made) > all("/" in url[8:] for url in made)
