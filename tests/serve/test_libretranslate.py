"""LibreTranslate's protocol, with its own client and without."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import httpx
import pytest
from libretranslatepy import LibreTranslateAPI

from heedful.serve.app import make_app
from heedful.serve.gate import Rules
from serving import hosted, opened, running, translator


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    translator(folder / "en-de", "en", "de", seed=1)
    translator(folder / "german", "German", "English", seed=2)
    translator(folder / "other", "en", "de", seed=3)
    translator(folder / "brazil", "en", "pt-BR", seed=4)
    translator(folder / "made", "low", "high", seed=5)
    translator(folder / "summaries", "article", "summary", scores="rouge")
    translator(folder / "noise", "noised text", "text", noise={"objective": "infill", "longest": 40})
    return folder


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    app = make_app(hosted(*(run for run in sorted(folder.iterdir()))))
    with running(app) as address:
        yield address


def own(folder: Path, name: str, text: str) -> str:
    return opened(folder / name).translate(text)


def ask(address: str, route: str = "translate", **body: Any) -> httpx.Response:
    return httpx.post(f"{address}/{route}", json=body)


def refused(answer: httpx.Response, *words: str, status: int = 400) -> None:
    assert answer.status_code == status, answer.text
    assert list(answer.json()) == ["error"]
    for word in words:
        assert word in answer.json()["error"]


def test_its_client_translates(address: str, folder: Path) -> None:
    client = LibreTranslateAPI(address)
    assert client.translate("ba de gi", "en", "de") == own(folder, "en-de", "ba de gi")
    assert client.translate("ba de gi", "de-AT", "en-US") == own(folder, "german", "ba de gi")
    assert client.translate("ba de gi", "en", "pt") == own(folder, "brazil", "ba de gi")
    assert client.translate("ba de gi", "low", "high") == own(folder, "made", "ba de gi")


def test_its_client_lists_the_languages(address: str) -> None:
    assert LibreTranslateAPI(address).languages() == [
        {"code": "en", "name": "English", "targets": ["pt-BR", "de"]},
        {"code": "de", "name": "German", "targets": ["en"]},
        {"code": "low", "name": "low", "targets": ["high"]},
    ]


def test_a_language_is_not_detected(address: str) -> None:
    with pytest.raises(HTTPError) as raised:
        LibreTranslateAPI(address).detect("ba de gi")
    assert raised.value.code == 400
    with raised.value as answer:
        said = json.loads(answer.read())["error"]
    assert "not detected here" in said
    assert "en, de, low" in said


def test_auto_is_the_one_language_that_leads_to_the_target(address: str, folder: Path, tmp_path: Path) -> None:
    found = ask(address, q=["ba", "ko"], source="auto", target="de").json()
    assert found == {
        "translatedText": [own(folder, "en-de", "ba"), own(folder, "en-de", "ko")],
        "detectedLanguage": [{"confidence": 0, "language": "en"}] * 2,
    }
    runs = [translator(tmp_path / f"{code}-de", code, "de") for code in ("en", "fr")]
    app = make_app(hosted(*runs))
    with running(app) as other:
        refused(ask(other, q="ba", source="auto", target="de"), "not detected", "en, fr")


def test_lines_and_sentences_are_translated_one_by_one(address: str, folder: Path) -> None:
    text = "  Ba de. Ko gi!\n\nLu ma ne 3.5 pi.\n"
    one, two, three = (own(folder, "en-de", each) for each in ("Ba de.", "Ko gi!", "Lu ma ne 3.5 pi."))
    found = ask(address, q=text, source="en", target="de").json()["translatedText"]
    assert found == f"  {one} {two}\n\n{three}\n"


def test_tags_of_html_stay_in_their_places(address: str, folder: Path) -> None:
    page = '<p class="a > b">ba &amp; de<br>ko <b translate="no">gi</b></p><script>if (a < b) ba()</script>'
    page += "<!-- <i>ma</i> -->"
    one, two = (own(folder, "en-de", each) for each in ("ba & de", "ko"))
    found = ask(address, q=page, source="en", target="de", format="html").json()["translatedText"]
    escaped = [text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") for text in (one, two)]
    assert found == page.replace("ba &amp; de", escaped[0]).replace("ko", escaped[1])


def test_alternatives_are_the_next_best(address: str, folder: Path) -> None:
    (best,) = opened(folder / "en-de").search(["ba de gi"], beam=4, n_best=4)
    texts = list(dict.fromkeys(text for text, _ in best.hypotheses))
    assert len(texts) > 2
    found = ask(address, q="ba de gi", source="en", target="de", alternatives=3).json()
    assert found == {"translatedText": texts[0], "alternatives": texts[1:]}
    several = ask(address, q=["ba de gi"], source="en", target="de", alternatives=3).json()
    assert several == {"translatedText": texts[:1], "alternatives": [texts[1:]]}


def test_the_first_of_a_pair_answers_or_the_one_that_is_named(address: str, folder: Path) -> None:
    body = {"q": "ba de gi", "source": "en", "target": "de"}
    first, second = own(folder, "en-de", "ba de gi"), own(folder, "other", "ba de gi")
    assert first != second
    assert ask(address, **body).json()["translatedText"] == first
    assert ask(address, **body, model="other").json()["translatedText"] == second
    refused(ask(address, **body, model="none"), "model", "'none'", "en-de, german, made, other")


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"source": "fr"}, "source: 'fr' to 'de' is not served"),
        ({"target": "fr"}, "target: 'fr' is not served: choose pt-BR, de, en, high"),
        ({"q": 3}, "q"),
        ({"q": None}, "q"),
        ({"q": "a" * 50_001}, "q"),
        ({"q": ["a" * 200] * 300}, "50,000 characters"),
        ({"format": "markdown"}, "format"),
        ({"alternatives": 11}, "alternatives"),
        ({"alternatives": -1}, "alternatives"),
        ({"alternative": 1}, "alternative: there is no such key"),
        ({"target": ""}, "target"),
    ],
)
def test_what_cannot_be_answered_is_refused(address: str, change: dict[str, Any], word: str) -> None:
    refused(ask(address, **{"q": "ba", "source": "en", "target": "de"} | change), word)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"3", b"\xff", b'{"q": "\\ud800"}', b"[" * 100_000])
def test_a_malformed_body_is_refused(address: str, body: bytes) -> None:
    refused(httpx.post(f"{address}/translate", content=body))


@pytest.mark.parametrize("route", ["translate", "v1/completions", "v2/translate"])
def test_json_that_is_called_a_form_is_told_so(address: str, route: str) -> None:
    body = {"content": '{"q": "ba & de = gi"}', "headers": {"Content-Type": "application/x-www-form-urlencoded"}}
    assert "send Content-Type: application/json" in httpx.post(f"{address}/{route}", **body).text


def test_a_large_body_is_refused(address: str) -> None:
    refused(httpx.post(f"{address}/translate", content=b" " * 900_000), "800,000 bytes", status=413)


def test_nothing_is_translated_by_nothing(address: str) -> None:
    for text in ("", "  \n ", "...", "<"):
        assert ask(address, q=text, source="en", target="de").json() == {"translatedText": text}


def test_settings_of_its_page(address: str) -> None:
    found = httpx.get(f"{address}/frontend/settings").json()
    assert found["charLimit"] == 50_000
    assert not found["apiKeys"]
    assert found["language"]["source"] == {"code": "en", "name": "English"}


def test_a_key_is_taken_wherever_its_clients_put_it(folder: Path) -> None:
    app = make_app(hosted(folder / "en-de"), rules=Rules(key="sesam"))
    body = {"q": "ba", "source": "en", "target": "de"}
    with running(app) as address:
        said = own(folder, "en-de", "ba")
        theirs = LibreTranslateAPI(address, "sesam")
        assert theirs.translate("ba", "en", "de") == said
        assert [each["code"] for each in theirs.languages()] == ["en"]  # in the body of a GET
        for sent in (body | {"api_key": "sesam"}, body):
            given = httpx.post(f"{address}/translate", json=sent, headers={"Authorization": "Bearer sesam"})
            assert given.json() == {"translatedText": said}
        assert httpx.get(f"{address}/languages", params={"api_key": "sesam"}).status_code == 403  # addresses are logged
        bearer = {"Authorization": "Bearer sesam"}
        assert httpx.get(f"{address}/frontend/settings", headers=bearer).json()["keyRequired"]
        for wrong in (body, body | {"api_key": "sesame"}, body | {"api_key": 3}, body | {"api_key": "é😀"}):
            refused(ask(address, **wrong), "the key is missing or wrong", status=403)
        for route in ("languages", "frontend/settings"):
            refused(httpx.get(f"{address}/{route}"), "the key is missing or wrong", status=403)
        refused(httpx.post(f"{address}/detect", json={"q": "ba"}), "the key is missing or wrong", status=403)
