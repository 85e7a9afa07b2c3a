"""DeepL's protocol, with its official client and without."""

import asyncio
import html
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import deepl as client
import httpx
import pytest

from heedful.errors import BusyError, LateError
from heedful.serve import glossaries
from heedful.serve.app import make_app
from heedful.serve.gate import Rules
from heedful.serve.glossaries import MOST
from heedful.tasks.translate.searching import Asking, search_texts
from serving import hosted, opened, running, translator

KEY = "sesam"
HEADERS = {"Authorization": f"DeepL-Auth-Key {KEY}"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    translator(folder / "german", "de", "en", seed=1)
    translator(folder / "made", "low", "high", seed=2)
    translator(folder / "portuguese", "en", "pt-BR", seed=3)
    translator(folder / "swedish", "sv", "en", seed=4)
    return folder


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    app = make_app(hosted(*sorted(folder.iterdir())), rules=Rules(key=KEY))
    with running(app) as address:
        yield address


@pytest.fixture
def theirs(address: str) -> Iterator[client.Translator]:
    with closing(client.Translator(KEY, server_url=address)) as made:
        yield made


def own(folder: Path, name: str, text: str) -> str:
    return opened(folder / name).translate(text)


def ask(address: str, **body: Any) -> httpx.Response:
    return httpx.post(f"{address}/v2/translate", json={"text": ["ba"]} | body, headers=HEADERS)


def test_its_client_translates(theirs: client.Translator, folder: Path) -> None:
    texts = ["ba de gi", "", "ko lu"]
    found = theirs.translate_text(texts, source_lang="DE", target_lang="EN-GB")
    assert [each.text for each in found] == [own(folder, "german", text) if text else "" for text in texts]
    assert [each.detected_source_lang for each in found] == ["DE"] * 3
    assert [each.billed_characters for each in found] == [8, 0, 5]
    one = theirs.translate_text("ba de gi", source_lang="sv", target_lang="en-us")
    assert one.text == own(folder, "swedish", "ba de gi")
    assert theirs.translate_text("ba", target_lang="PT-PT").text == own(folder, "portuguese", "ba")
    assert theirs.translate_text("ba", target_lang="HIGH").text == own(folder, "made", "ba")


def test_its_client_lists_the_languages(theirs: client.Translator) -> None:
    assert [(each.code, each.name) for each in theirs.get_source_languages()] == [
        ("DE", "German"),
        ("LOW", "low"),
        ("EN", "English"),
        ("SV", "Swedish"),
    ]
    found = theirs.get_target_languages()
    assert [each.code for each in found] == ["EN-GB", "EN-US", "HIGH", "PT-BR"]
    assert found[0].name == "English (United Kingdom)"
    assert found[0].supports_formality is False


def test_its_client_counts_characters(theirs: client.Translator) -> None:
    before = theirs.get_usage().character
    theirs.translate_text(["ba", "é😀"], source_lang="DE", target_lang="EN-GB")
    after = theirs.get_usage().character
    assert after.count is not None
    assert before.count is not None
    assert after.count - before.count == 4
    assert not after.limit_reached


def test_tags_go_through_unharmed(theirs: client.Translator, folder: Path) -> None:
    text = '<p id="1 &gt; 0">ba <b>de &amp; gi</b>. Ko <x n="&quot;"/>lu <keep>ma</keep></p><!-- ne --><![CDATA[<pi>]]>'
    found = theirs.translate_text(
        text, source_lang="DE", target_lang="EN-GB", tag_handling="xml", ignore_tags=["keep", "other"]
    )
    tags = re.compile("<!--.*?-->|<[^>]*>")
    assert sorted(tags.findall(found.text)) == sorted(tags.findall(text))
    assert found.text.startswith('<p id="1 &gt; 0">')
    assert found.text.endswith("</p><!-- ne --><![CDATA[<pi>]]>")
    assert found.text.index("<b>") < found.text.index("</b>")
    assert "<keep>ma</keep>" in found.text
    bare = html.unescape(tags.sub("", found.text.replace("<keep>ma</keep>", "").split("<!--")[0]))
    assert bare.split() == " ".join(own(folder, "german", each) for each in ("ba de & gi.", "Ko lu")).split()
    page = "<p>ba<br>de <i class=notranslate>gi</i></p>"
    made = theirs.translate_text(page, source_lang="DE", target_lang="EN-GB", tag_handling="html").text
    assert made.startswith("<p>")
    assert made.endswith(" <i class=notranslate>gi</i></p>")
    assert made.count("<br>") == 1


def test_lines_between_tags_are_kept(theirs: client.Translator, folder: Path) -> None:
    def found(text: str, **how: str) -> str:
        return theirs.translate_text(text, source_lang="DE", target_lang="EN-GB", tag_handling="xml", **how).text

    ba, de, gi = (own(folder, "german", each).replace("&", "&amp;") for each in ("ba", "de", "gi"))
    assert found("ba\n  <c>de</c>\r\n\n<c>gi</c>") == f"{ba}\n  <c>{de}</c>\r\n\n<c>{gi}</c>"
    assert found("<p>ba&#10;<c>de\ngi</c></p>") == f"<p>{ba}&#10;<c>{de}\n{gi}</c></p>"
    whole = own(folder, "german", "ba de").replace("&", "&amp;")
    assert found("<p>ba\nde</p>", split_sentences="nonewlines") == f"<p>{whole}</p>"


def test_tags_part_texts_where_they_are_told_to(theirs: client.Translator, folder: Path) -> None:
    def found(**tags: list[str]) -> str:
        text = "ba <k>de</k> gi"
        return theirs.translate_text(text, source_lang="DE", target_lang="EN-GB", tag_handling="xml", **tags).text

    apart = [own(folder, "german", each).replace("&", "&amp;") for each in ("ba", "de", "gi")]
    assert found(splitting_tags=["k"]) == f"{apart[0]} <k>{apart[1]}</k> {apart[2]}"
    assert found(non_splitting_tags=["k"]) == found()
    assert found().replace("<k>", "").replace("</k>", "").split() == own(folder, "german", "ba de gi").split()


@pytest.mark.parametrize("text", ["<b>ba", "ba</b>", "<b><i>ba</b></i>", "ba & de", "<!DOCTYPE x>", "<a x=1>ba</a>"])
def test_what_is_not_well_formed_is_refused(theirs: client.Translator, text: str) -> None:
    with pytest.raises(client.DeepLException, match="text 2 is not well-formed XML"):
        theirs.translate_text(["ba", text], source_lang="DE", target_lang="EN-GB", tag_handling="xml")


def test_how_sentences_are_split(theirs: client.Translator, folder: Path) -> None:
    text = "Ba de.\nKo gi. Lu"

    def found(how: str) -> str:
        return theirs.translate_text(text, source_lang="DE", target_lang="EN-GB", split_sentences=how).text

    one, two, three = (own(folder, "german", each) for each in ("Ba de.", "Ko gi.", "Lu"))
    assert found("1") == f"{one}\n{two} {three}"
    model = opened(folder / "german")
    (whole,) = search_texts(model, ["Ba de. Ko gi. Lu"], Asking(model.decoding()))
    assert found("0") == whole.text
    assert found("nonewlines") == f"{one}\n{two} {three}"
    folded = theirs.translate_text("ba\nde", source_lang="DE", target_lang="EN-GB", split_sentences="nonewlines").text
    assert folded == own(folder, "german", "ba de")


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"formality": "more"}, "formality is not served here"),
        ({"glossary_ids": ["a-b"]}, "glossary_ids is not served here"),
        ({"context": "about"}, "context is not served here"),
        ({"custom_instructions": ["be kind"]}, "custom_instructions is not served here"),
        ({"extra_body_parameters": {"tone": 1}}, "tone: there is no such key"),
        ({"split_sentences": "2"}, "split_sentences"),
        ({"source_lang": "FR"}, "source_lang: 'FR' to 'EN-GB' is not served: choose de, sv"),
        ({"source_lang": None}, "not detected here: choose source_lang from de, sv"),
        ({"target_lang": "FR"}, "target_lang: 'FR' is not served"),
    ],
)
def test_what_cannot_be_followed_is_refused(theirs: client.Translator, options: dict[str, Any], word: str) -> None:
    with pytest.raises(client.DeepLException, match=word) as raised:
        theirs.translate_text("ba", **{"source_lang": "DE", "target_lang": "EN-GB"} | options)
    assert raised.value.http_status_code == 400


TERMS = {"ba": "Zug", "ko": "Haus|Häuser"}
WAY = {"source_lang": "DE", "target_lang": "EN-GB"}


def make_glossary(theirs: client.Translator, **words: Any) -> client.GlossaryInfo:
    return theirs.create_glossary(**{"name": "terms", "entries": TERMS} | WAY | words)


def test_its_client_keeps_glossaries(theirs: client.Translator) -> None:
    pairs = [(each.source_lang, each.target_lang) for each in theirs.get_glossary_languages()]
    assert pairs == [("de", "en"), ("low", "high"), ("en", "pt"), ("sv", "en")]
    before = {each.glossary_id for each in theirs.list_glossaries()}
    made = make_glossary(theirs)
    assert (made.name, made.ready, made.source_lang, made.target_lang) == ("terms", True, "DE", "EN")
    assert made.entry_count == 2
    assert vars(theirs.get_glossary(made.glossary_id)) == vars(made)
    assert {each.glossary_id for each in theirs.list_glossaries()} == before | {made.glossary_id}
    assert theirs.get_glossary_entries(made) == TERMS
    theirs.delete_glossary(made)
    assert {each.glossary_id for each in theirs.list_glossaries()} == before
    for call in (theirs.get_glossary, theirs.get_glossary_entries, theirs.delete_glossary):
        with pytest.raises(client.GlossaryNotFoundException, match="no such glossary"):
            call(made.glossary_id)


def test_terms_of_a_glossary_are_said(theirs: client.Translator, folder: Path) -> None:
    made, model = make_glossary(theirs), opened(folder / "german")
    texts = ["ba de gi", "lu", "KO."]
    for glossary in (made, made.glossary_id):
        found = theirs.translate_text(texts, glossary=glossary, **WAY)
        assert [each.text for each in found] == model.translate(texts, glossary=TERMS)
    assert "Zug" in found[0].text
    assert found[1].text == own(folder, "german", "lu")
    (tagged,) = theirs.translate_text(["<p>lu b<b>a</b></p>"], glossary=made, tag_handling="xml", **WAY)
    assert "Zug" in re.sub("<[^>]*>", "", tagged.text), "a tag does not hide a term"
    theirs.delete_glossary(made)


def test_glossaries_are_read_from_csv(theirs: client.Translator) -> None:
    text = 'ba,"Zug, der"\n\nko , Haus\n'
    for content in (text, 'ba,"Zug, der",de,en\nko,Haus,DE,EN-US'):
        made = theirs.create_glossary_from_csv("table", "DE", "EN", content)
        assert theirs.get_glossary_entries(made) == {"ba": "Zug, der", "ko": "Haus"}
        theirs.delete_glossary(made)


def send_glossary(address: str, **body: Any) -> httpx.Response:
    entries = {"name": "terms", "source_lang": "de", "target_lang": "en", "entries_format": "tsv", "entries": "ba\tZug"}
    return httpx.post(f"{address}/v2/glossaries", json=entries | body, headers=HEADERS)


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ({"name": ""}, "name: "),
        ({"entries": ""}, "entries: "),
        ({"entries": " \n"}, "entries: no term"),
        ({"entries": "ba Zug"}, "entries: line 1 has 1 column "),
        ({"entries": "ba\tZug\nko\tHaus\tde"}, "entries: line 2 has 3 columns"),
        ({"entries": "ba\t"}, "without a translation: 'ba'"),
        ({"entries": "...\tZug"}, "without a word: '...'"),
        ({"entries": "ba\tZug\nba\tHaus"}, "'ba' comes twice"),
        ({"entries": 'ba,"Zug', "entries_format": "csv"}, "entries: line 1"),
        ({"entries": "ba,Zug,de,fr", "entries_format": "csv"}, "line 1 is not a term, its translation, de, en"),
        ({"entries_format": "tbx"}, "entries_format: "),
        ({"target_lang": "fr"}, "target_lang: 'fr' is not served"),
        ({"source_lang": "pt"}, "source_lang: 'pt' to 'en' is not served"),
        ({"dictionaries": []}, "dictionaries: there is no such key"),
    ],
)
def test_what_is_no_glossary_is_refused(address: str, body: dict[str, Any], word: str) -> None:
    answer = send_glossary(address, **body)
    assert answer.status_code == 400
    assert word in answer.json()["message"]


def test_a_glossary_of_other_languages_or_of_none_is_refused(address: str, theirs: client.Translator) -> None:
    made = make_glossary(theirs)
    for options, status, word in (
        ({"source_lang": "SV"}, 400, "glossary_id: its terms are translated from de to en"),
        ({"source_lang": None}, 400, "source_lang: it is needed where a glossary is used"),
        ({"glossary_id": "gone"}, 404, "glossary_id: there is no such glossary"),
    ):
        answer = ask(address, **{"source_lang": "DE", "target_lang": "EN", "glossary_id": made.glossary_id} | options)
        assert (answer.status_code, answer.json()["message"].startswith(word)) == (status, True)
    theirs.delete_glossary(made)


def test_glossaries_are_bounded_in_number_and_size(folder: Path) -> None:
    with running(make_app(hosted(folder / "german"))) as address:
        assert [send_glossary(address).status_code for _ in range(MOST + 1)] == [201] * MOST + [400]
        kept = httpx.get(f"{address}/v2/glossaries").json()["glossaries"]
        assert len({each["glossary_id"] for each in kept}) == MOST
        assert httpx.delete(f"{address}/v2/glossaries/{kept[0]['glossary_id']}").status_code == 204
        many = "".join(f"ba{n}\tZug{n}\n" for n in range(40_000))
        assert send_glossary(address, entries=many[:900_000].rpartition("\n")[0]).json()["entry_count"] > 30_000
        assert send_glossary(address, entries=many * 2).status_code == 413


def test_what_changes_no_answer_is_accepted(theirs: client.Translator, folder: Path) -> None:
    found = theirs.translate_text(
        "ba",
        source_lang="DE",
        target_lang="EN-GB",
        formality="default",
        context="",
        preserve_formatting=True,
        outline_detection=False,
        splitting_tags=["p"],
        tag_handling_version="v2",
        model_type="prefer_quality_optimized",
    )
    assert found.text == own(folder, "german", "ba")


def test_forms_are_read_as_json_is(address: str, folder: Path) -> None:
    form = {"text": ["ba <b>de</b>", "ko"], "target_lang": "EN", "source_lang": "DE", "tag_handling": "xml"}
    more = {"ignore_tags": "b,i", "show_billed_characters": "1"}
    given = httpx.post(f"{address}/v2/translate", data=form | more, headers=HEADERS).json()["translations"]
    assert [each["text"] for each in given] == [f"{own(folder, 'german', 'ba')} <b>de</b>", own(folder, "german", "ko")]
    assert [each["billed_characters"] for each in given] == [12, 2]
    one = httpx.post(f"{address}/v2/translate", data=form | {"text": "ba", "auth_key": KEY})
    assert one.json() == {"translations": [{"detected_source_language": "DE", "text": own(folder, "german", "ba")}]}
    for listed in (
        httpx.post(f"{address}/v2/languages", data={"type": "target"}, headers=HEADERS),
        httpx.get(f"{address}/v2/languages?type=target", headers=HEADERS),
    ):
        assert listed.json()[0]["language"] == "EN-GB"


@pytest.mark.parametrize(
    "body",
    [
        {"text": "ba"},
        {"text": []},
        {"text": ["ba"] * 51},
        {"text": [3]},
        {"text": None},
        {"show_billed_characters": 3},
        {"target_lang": 3},
        {"tag_handling": "markdown"},
    ],
)
def test_malformed_bodies_are_refused(address: str, body: dict[str, Any]) -> None:
    answer = ask(address, **{"source_lang": "DE", "target_lang": "EN"} | body)
    assert answer.status_code == 400
    assert list(answer.json()) == ["message"]
    assert next(iter(body)) in answer.json()["message"]


def test_broken_requests_have_an_answer(address: str) -> None:
    for content, kind in ((b"{", "application/json"), (b"[]", "application/json"), (b"x", "multipart/form-data")):
        sent = httpx.post(f"{address}/v2/translate", content=content, headers=HEADERS | {"Content-Type": kind})
        assert sent.status_code == 400, sent.text
        assert list(sent.json()) == ["message"]
    assert httpx.get(f"{address}/v2/languages?type=both", headers=HEADERS).status_code == 400
    large = ask(address, text=["a" * 131_072], target_lang="EN")
    assert (large.status_code, "131,072 bytes" in large.json()["message"]) == (413, True)


def test_without_the_key_nothing_is_answered(address: str, folder: Path) -> None:
    for key in ("other", KEY + "x"):
        with closing(client.Translator(key, server_url=address)) as wrong:
            for call in (wrong.get_usage, wrong.get_source_languages, wrong.get_target_languages):
                with pytest.raises(client.AuthorizationException):
                    call()
            with pytest.raises(client.AuthorizationException):
                wrong.translate_text("ba", target_lang="EN-GB")
    assert httpx.get(f"{address}/v2/usage").status_code == 403
    assert httpx.get(f"{address}/v2/usage", headers={"Authorization": f"Bearer {KEY}"}).status_code == 200


@pytest.mark.parametrize(("error", "status"), [(BusyError("full"), 429), (LateError("late"), 504), (OSError(), 500)])
def test_a_server_that_cannot_says_so(
    folder: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int
) -> None:
    models = hosted(folder / "german")

    async def fail(*given: object) -> None:
        raise error

    monkeypatch.setattr(models["german"], "ask", fail)
    app = make_app(models)
    with running(app) as address:
        answer = ask(address, target_lang="EN")
        assert answer.status_code == status
        assert list(answer.json()) == ["message"]
        assert answer.headers.get("retry-after") == ("1" if status == 429 else None)


def test_a_glossary_is_read_in_another_thread(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that others are answered meanwhile."""
    entries_in = glossaries.entries_in

    def noted(text: str, *, where: str) -> Any:
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()
        return entries_in(text, where=where)

    monkeypatch.setattr(glossaries, "entries_in", noted)
    assert send_glossary(address).status_code == 201
