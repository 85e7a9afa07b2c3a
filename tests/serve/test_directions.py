"""A model of several directions, served: every protocol answers each of them."""

from collections.abc import Iterator
from pathlib import Path

import deepl
import httpx
import pytest

from heedful.serve.app import make_app
from serving import hosted, opened, running, translator

LANGUAGES = {"tokens": {"de": 40, "fr": 91, "en": 142}, "target": "before", "directions": ["en>de", "en>fr", "fr>en"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return translator(tmp_path_factory.mktemp("runs") / "several", "en", "de", seed=2, languages=LANGUAGES, before=[40])


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    with running(make_app(hosted(folder))) as address:
        yield address


def own(folder: Path, source: str, target: str) -> str:
    return opened(folder).directed(source, target).translate("ko")


def test_libretranslate(address: str, folder: Path) -> None:
    assert own(folder, "en", "de") != own(folder, "en", "fr")
    for source, target in (("en", "de"), ("en", "fr"), ("fr", "en")):
        body = {"q": "ko", "source": source, "target": target}
        answer = httpx.post(f"{address}/translate", json=body).json()
        assert answer["translatedText"] == own(folder, source, target)
    listed = httpx.get(f"{address}/languages").json()
    assert [(one["code"], one["targets"]) for one in listed] == [("en", ["de", "fr"]), ("fr", ["en"])]
    refused = httpx.post(f"{address}/translate", json={"q": "x", "source": "fr", "target": "de"})
    assert refused.status_code == 400
    assert "'fr' to 'de' is not served" in refused.json()["error"]


def test_deepl(address: str, folder: Path) -> None:
    client = deepl.DeepLClient("key", server_url=address)
    for target in ("DE", "FR"):
        found = client.translate_text("ko", source_lang="EN", target_lang=target)
        assert found.text == own(folder, "en", target.lower())  # type: ignore[union-attr]


def test_our_own(address: str, folder: Path) -> None:
    answer = httpx.post(f"{address}/api/translate", json={"text": "ko", "target": "French"})
    assert answer.status_code == 200, answer.text
    assert answer.json()["answers"][0]["text"] == own(folder, "en", "fr")
