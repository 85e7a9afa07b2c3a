"""Languages by their names."""

from contextlib import closing
from pathlib import Path
from urllib.error import HTTPError

import deepl
import pytest
from libretranslatepy import LibreTranslateAPI

import heedful
from heedful.serve.app import make_app
from heedful.serve.languages import code, in_english, listed
from heedful.verbs.info import name_languages
from serving import hosted, running, translator


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


def test_a_run_whose_languages_are_named_later_answers_the_clients_of_others(tmp_path: Path) -> None:
    run = translator(tmp_path / "run", "source", "target")
    text = "ba de gi"
    for named in (False, True):
        if named:
            name_languages(run, ["source=en", "target=de"])
        own = heedful.load(run).translate(text)
        with (
            running(make_app(hosted(run))) as address,
            closing(deepl.Translator("any", server_url=address)) as theirs,
        ):
            free = LibreTranslateAPI(address)
            if named:
                assert theirs.translate_text(text, source_lang="EN", target_lang="DE").text == own
                assert free.translate(text, "en", "de") == own
                assert [each.code for each in theirs.get_source_languages()] == ["EN"]
                continue
            with pytest.raises(deepl.DeepLException, match="is not served"):
                theirs.translate_text(text, source_lang="EN", target_lang="DE")
            with pytest.raises(HTTPError):
                free.translate(text, "en", "de")
