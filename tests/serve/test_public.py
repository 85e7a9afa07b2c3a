"""What the three public protocols share."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from pydantic import ValidationError

from heedful.errors import BusyError, HeedError, InputError, LateError, StorageError
from heedful.serve import deepl, libretranslate, openai
from heedful.serve.app import make_app
from heedful.serve.documents import Documents
from heedful.serve.openai_requests import ChatRequest, CompletionRequest, EmbeddingRequest
from heedful.serve.public import RequestBody, in_one_line, verdict
from heedful.serve.refusals import OPENAI, refused, shaped
from serving import hosted, translator

BODIES = (
    ChatRequest,
    CompletionRequest,
    EmbeddingRequest,
    libretranslate.LibreTranslateRequest,
    libretranslate.DocumentRequest,
    deepl.DeepLRequest,
    deepl.DocumentRequest,
    deepl.DocumentKey,
)


def test_all_of_them_fit_on_one_page(tmp_path: Path) -> None:
    models = hosted(translator(tmp_path / "en-de", "en", "de"))
    app = FastAPI()
    for router in (
        openai.routes(models),
        libretranslate.routes(models, Documents()),
        deepl.routes(models, Documents()),
    ):
        app.include_router(router)
    page = json.loads(json.dumps(app.openapi()))
    expected = "/v1/models /v1/models/{name} /v1/completions /v1/chat/completions /v1/embeddings /translate /languages"
    expected += " /detect /frontend/settings /v2/translate /v2/languages /v2/usage /v2/glossary-language-pairs"
    expected += " /v2/glossaries /v2/glossaries/{glossary_id} /v2/glossaries/{glossary_id}/entries"
    expected += " /translate_file /download_file/{name}"
    expected += " /v2/document /v2/document/{document_id} /v2/document/{document_id}/result"
    assert set(page["paths"]) == {*expected.split()}
    for path in ("/translate", "/v2/translate"):
        shown = page["paths"][path]["post"]["requestBody"]["content"]
        assert {"application/json", "application/x-www-form-urlencoded"} == set(shown)


@pytest.mark.parametrize("sent", ["[]", '[{"q": "ba", "source": "en", "target": "de"}]', '"ba"', "5", "true"])
def test_a_body_that_is_no_object_is_told_so_by_every_route(tmp_path: Path, sent: str) -> None:
    """In words of JSON: a client knows no classes of ours."""
    app = make_app(hosted(translator(tmp_path / "en-de", "en", "de")))
    client, told = TestClient(app, base_url="http://localhost"), {}
    for path, methods in app.openapi()["paths"].items():
        if "application/json" in methods.get("post", {}).get("requestBody", {}).get("content", {}):
            answer = client.post(path, content=sent, headers={"Content-Type": "application/json"})
            assert 400 <= answer.status_code < 500
            told[path] = answer.text
    assert {"/translate", "/v2/translate", "/v1/chat/completions", "/api/translate"} <= set(told)
    assert [path for path, text in told.items() if "the body must be a JSON object" not in text] == []


@pytest.mark.parametrize(
    ("body", "sent"),
    [
        (ChatRequest, {"messages": ["ba"]}),
        (ChatRequest, {"messages": [{"role": "user", "content": [["ba"]]}]}),
        (EmbeddingRequest, {"input": [{}]}),
    ],
)
def test_a_value_of_another_type_is_told_in_words_of_json(body: type[RequestBody], sent: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as caught:
        body.model_validate({"model": "a", **sent})
    assert not re.search("instance of|dictionary|[a-z][A-Z]", verdict(caught.value).message)


@pytest.mark.parametrize("body", BODIES)
def test_the_page_of_documentation_has_every_key(body: type[RequestBody], root: Path) -> None:
    text = (root / "docs/serve.md").read_text()
    keys = [*body.IGNORED, *body.ONLY, *body.model_fields]
    assert len(keys) > 1
    assert [key for key in keys if f"`{key}`" not in text] == []
    assert not set(body.IGNORED) & set(body.ONLY)
    assert not {*body.IGNORED, *body.ONLY} & set(body.model_fields)


@pytest.mark.parametrize(
    ("body", "given", "message"),
    [
        (EmbeddingRequest, {"input": []}, "input: List should have at least 1 item"),
        (CompletionRequest, {"prompt": [-1]}, "prompt: Input should be greater than or equal to 0"),
        (CompletionRequest, {"prompt": "a", "stop": ["a", ""]}, "stop: String should have at least 1 character"),
        (CompletionRequest, {"prompt": 5}, "prompt: Input should be a valid string"),
        (
            CompletionRequest,
            {"prompt": "a", "stream_options": {"ba": True}},
            "stream_options: ba: there is no such key",
        ),
        (
            ChatRequest,
            {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
            "messages: type: Input should be",
        ),
    ],
)
def test_a_value_is_told_what_is_wrong_by_its_own_type(
    body: type[RequestBody], given: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValidationError) as raised:
        body.model_validate({"model": "m"} | given)
    assert verdict(raised.value).message.startswith(message)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (InputError("wrong"), "invalid_request_error"),
        (BusyError("full"), "rate_limit_error"),
        (LateError("late"), "server_error"),
        (StorageError("gone"), "server_error"),
    ],
)
def test_what_openais_clients_are_told_of_whose_fault_it_is(error: HeedError, kind: str) -> None:
    assert shaped(OPENAI, in_one_line(error))["error"]["type"] == kind


@pytest.mark.parametrize(
    ("said", "in_keys"),
    [
        ("--from-language: no language 'Klingon'", "from_language: no language 'Klingon'"),
        ("leave out --from-language, or give --to", 'leave out "from_language", or give "to"'),
        ("a--to and what --", "a--to and what --"),
        ("heed export RUN --to ctranslate2", "heed export RUN --to ctranslate2"),
    ],
)
def test_options_are_told_as_keys(said: str, in_keys: str) -> None:
    assert refused(InputError("a", fix=said)).fix == in_keys
    assert refused(InputError(said)).message == in_keys


def test_the_description_refers_to_what_is_in_it(tmp_path: Path) -> None:
    described = make_app(hosted(translator(tmp_path / "en-de", "en", "de"))).openapi()

    def refer(value: Any) -> None:
        if isinstance(value, dict):
            if isinstance(value.get("$ref"), str):
                root, *way = value["$ref"].split("/")
                assert root == "#"
                found = described
                for part in way:
                    found = found[part]
            for each in value.values():
                refer(each)
        elif isinstance(value, list):
            for each in value:
                refer(each)

    refer(described)
