"""Embeddings by OpenAI's protocol, with its own client and without."""

import base64
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import openai as client
import pytest
import torch
from PIL import Image
from torch.nn.functional import normalize

from heedful.serve.app import make_app
from heedful.tasks.shared.embed import TextEncoder
from serving import encoder, hosted, language_model, opened, running, translator


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    language_model(folder / "lm")
    translator(folder / "en-de", "en", "de", seed=1)
    encoder(folder / "encoder")
    return folder


def embed(address: str, **body: Any) -> httpx.Response:
    return httpx.post(f"{address}/v1/embeddings", json=body)


def test_embeddings(theirs: client.OpenAI, folder: Path) -> None:
    for name in ("encoder", "lm", "en-de"):
        own = TextEncoder.load(folder / name)
        texts = ["ba de", "ko lu ma"]
        exact = normalize(own.embed(texts), dim=1)
        plain = theirs.embeddings.create(model=name, input=texts, encoding_format="float")
        packed = theirs.embeddings.create(model=name, input=texts)
        tokens = theirs.embeddings.create(model=name, input=own.tokenizer.encode(texts))
        for found in (plain, packed, tokens):
            assert [each.index for each in found.data] == [0, 1]
            torch.testing.assert_close(torch.tensor([each.embedding for each in found.data]), exact)
            assert found.usage.prompt_tokens == sum(map(len, own.tokenizer.encode(texts)))
        one = theirs.embeddings.create(model=name, input="ba de", dimensions=16).data
        torch.testing.assert_close(torch.tensor(one[0].embedding), exact[0])


def test_texts_for_pictures_are_no_paths(
    run_of: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A matcher's embedder reads pictures by their paths, which nothing from outside may name."""
    monkeypatch.chdir(tmp_path)
    Image.new("RGB", (32, 32)).save("a.png")
    app = make_app(hosted(run_of("match")))
    with running(app) as address:
        found = embed(address, model="match", input=["a", "a.png"]).json()["data"]
        exact, _ = opened(run_of("match")).text_vectors(["a", "a.png"])
        torch.testing.assert_close(torch.tensor([each["embedding"] for each in found]), exact)
        tokens = embed(address, model="match", input=[5])
        assert (tokens.status_code, "reads no tokens" in tokens.text) == (400, True)


def test_vectors_of_words_are_embeddings_too(run_of: Callable[[str], Path]) -> None:
    with running(make_app(hosted(run_of("vectors")))) as address:
        found = embed(address, model="vectors", input=["ba gi", "ba"]).json()
        exact, _ = opened(run_of("vectors")).vectors_of(["ba gi", "ba"])
        torch.testing.assert_close(torch.tensor([each["embedding"] for each in found["data"]]), normalize(exact))
        assert found["usage"]["prompt_tokens"] == 3
        unknown = embed(address, model="vectors", input="zzzz").json()["error"]
        assert (unknown["message"], unknown["code"]) == ("input 1: no word of it has a vector", None)


def test_base64_is_little_endian_float32(address: str) -> None:
    body = {"model": "encoder", "input": "ba de"}
    plain = embed(address, **body).json()["data"][0]["embedding"]
    packed = embed(address, **body, encoding_format="base64").json()["data"][0]["embedding"]
    assert [*struct.unpack("<16f", base64.b64decode(packed))] == plain


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ({"dimensions": 8}, "dimensions: the vectors of this model have 16"),
        ({"input": ""}, "an empty text"),
        ({"input": []}, "input"),
        ({"input": ["ba", ""]}, "an empty text"),
        ({"input": [9999]}, "input 1: 9999 is no token"),
        ({"input": [[5], [6] * 30]}, "input 2: 30 tokens, but the model reads at most 24"),
        ({"input": [6] * 23}, "input 1: 23 tokens, but the model reads at most 24 with 2 of its own"),
        ({"input": "ba de " * 30}, "input 1"),
        ({"input": 3}, "input"),
        ({"encoding_format": "hex"}, "encoding_format"),
    ],
)
def test_what_cannot_be_embedded_is_refused(theirs: client.OpenAI, body: dict[str, Any], word: str) -> None:
    with pytest.raises(client.BadRequestError) as raised:
        theirs.embeddings.create(model="encoder", input="ba", extra_body=body)
    assert word in raised.value.body["message"]
