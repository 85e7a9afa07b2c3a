"""Languages by their names."""

import pytest

from heedful.serve.languages import code, in_english, listed


@pytest.mark.parametrize(
    ("name", "its_code", "told", "english"),
    [
        ("en", "en", "en", "English"),
        ("EN-us", "en", "en-US", "English (United States)"),
        ("pt_BR", "pt", "pt-BR", "Portuguese (Brazil)"),
        ("German", "de", "de", "German"),
        ("Deutsch", "de", "de", "German"),
        ("deu", "de", "de", "German"),
        ("zh", "zh", "zh", "Chinese"),
        ("source", "source", "source", "source"),
        ("low", "low", "low", "low"),
        ("noised text", "noised text", "noised text", "noised text"),
        ("../x", "../x", "../x", "../x"),
    ],
)
def test_languages_by_their_names(name: str, its_code: str, told: str, english: str) -> None:
    assert (code(name), listed(name), in_english(told)) == (its_code, told, english)


def test_names_that_clients_invent_are_not_kept_for_ever() -> None:
    for number in range(3000):
        listed(f"invented {number}")
    assert max(code.cache_info().currsize, listed.cache_info().currsize) < 2000
