"""A model of several directions, served: every protocol answers each of them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import deepl
import httpx
import openai
import pytest

from heedful.errors import InputError
from heedful.serve.app import make_app
from heedful.tasks.translate.pairs.pharaoh import align_pairs
from heedful.tasks.translate.pairs.weigh import weigh
from serving import chat_model, hosted, opened, running, translator

LANGUAGES = {"tokens": {"de": 40, "fr": 91, "en": 142}, "target": "before", "directions": ["en>de", "en>fr", "fr>en"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return translator(tmp_path_factory.mktemp("runs") / "several", "en", "de", seed=2, languages=LANGUAGES, before=[40])


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    with running(make_app(hosted(folder, chat_model(folder.parent / "talker")))) as address:
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


@pytest.mark.parametrize("verb", ["translate", "align", "score", "steps"])
def test_each_verb_takes_the_language(address: str, folder: Path, verb: str) -> None:
    """By the same name, beside the text or among the options."""

    def asked(**more: object) -> httpx.Response:
        text = "ko\tba" if verb == "score" else "ko"
        return httpx.post(f"{address}/api/{verb}", json={"model": "several", "text": text, **more})

    ours = opened(folder)
    found = {}
    for source, target in (("en", "de"), ("en", "fr"), ("fr", "en")):
        given = {"from_language": source, "to": target}
        answers = [asked(**given), asked(options=given), asked(to=target)]
        found[target] = answers[0].json()["answers"]
        assert [answer.json()["answers"] for answer in answers] == [found[target]] * 3
        told = found[target][0]["logprob" if verb == "score" else "text"]
        if verb == "score":
            (one,) = weigh(ours.directed(source, target), [("ko", "ba")])
            assert told == pytest.approx(one["logprob"], abs=1e-4)
        else:
            assert told == own(folder, source, target)
    assert asked().json()["answers"] == found["de"]
    refused = asked(to="Klingon")
    assert refused.status_code == 400
    assert refused.json()["error"]["message"] == "to: no language 'Klingon': there are 'de', 'fr', 'en'"


def test_what_is_looked_at_takes_the_language(address: str, folder: Path) -> None:
    layer = "decoder.blocks.0.cross_attention"
    body = {"model": "several", "text": "ko"}
    for path, more in (("look", {}), ("view", {}), ("walk", {"layer": layer})):
        asked = [httpx.post(f"{address}/api/{path}", json=body | to | more) for to in ({}, {"to": "fr"})]
        assert [answer.status_code for answer in asked] == [200, 200]
        assert asked[0].json() != asked[1].json(), path
        if path == "view":
            assert asked[1].json()["said"] == own(folder, "en", "fr")


def test_a_language_is_named_once(address: str) -> None:
    refused = httpx.post(f"{address}/api/translate", json={"text": "ko", "to": "fr", "target": "de"})
    assert refused.status_code == 400
    assert refused.json()["error"]["message"].startswith("to, target: two names of the same")


def test_nothing_is_told_of_a_language_that_was_not_named(tmp_path: Path) -> None:
    """By a model that has no language to translate to unless one is asked for."""
    any_way = {"tokens": LANGUAGES["tokens"], "target": "before"}
    ours = opened(translator(tmp_path / "any", "en", "", languages=any_way, before=[]))
    for verb, text, settings in (
        ("translate", "ko", {}),
        ("align", "ko", {"target": "ba"}),
        ("score", "ko\tba", {}),
        ("steps", "ko", {"chosen": [20]}),
    ):
        with pytest.raises(InputError, match="to which one"):
            ours.ask(verb, text, settings)
        assert ours.ask(verb, text, settings | {"to": "fr"})
    with pytest.raises(InputError, match="to which one"):
        ours.attention("ko", {"target": "ba"})
    with pytest.raises(InputError, match="to which one"):
        [*align_pairs(ours, [("ko", "ba")])]


def test_openai_takes_the_language_by_keys_of_ours(address: str, folder: Path) -> None:
    client = openai.OpenAI(base_url=f"{address}/v1", api_key="any", max_retries=0)
    said: list[Any] = [{"role": "user", "content": "ko"}]

    def asked(**more: str) -> str | None:
        answer = client.chat.completions.create(model="several", messages=said, extra_body=more)
        return answer.choices[0].message.content

    assert asked() == own(folder, "en", "de")
    assert asked(to="fr") == asked(to="French", from_language="en") == own(folder, "en", "fr")
    assert asked(from_language="fr") == own(folder, "fr", "en")
    with pytest.raises(openai.BadRequestError, match="no language 'Klingon'"):
        asked(to="Klingon")
    client.close()
    refused = httpx.post(f"{address}/v1/chat/completions", json={"model": "talker", "messages": said, "to": "fr"})
    assert refused.json()["error"]["message"] == "to is for translators: leave it out"


def test_fragments_take_the_language(address: str, folder: Path) -> None:
    for given in ({"to": "fr"}, {"target": "fr"}):
        answer = httpx.post(f"{address}/api/fragment", json={"text": "ko", **given}).json()
        assert answer["answers"][0]["text"] == own(folder, "en", "fr")
