"""One text gets the same answer by every door: Python, terminal, standard input, documents, and every protocol."""

import io
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import deepl
import httpx
import openai
import pytest
from libretranslatepy import LibreTranslateAPI

from commands import heed, standard_input
from heedful.serve.app import make_app
from heedful.tasks.translate.use import Translator
from serving import hosted, opened, running, translator
from waiting import becomes

TEXTS = {
    "a sentence": "Ba de gi.",
    "two sentences": "Ba de gi. Ko lu!",
    "eight sentences": "Ba. De? Gi! Ko ba. Lu de. Ma gi. Ne ko. Pi lu.",
    "lines": "Ba de\n\nGi ko. Lu\r\n  Ma\n",
    "blanks around": "  ba de \u00a0",
    "blank": " ",
    "no letters": "12345",
    "emoji": "🌷🌷",
    "signs": "— 7 —",
    "a placeholder alone": "{name}",
    "a placeholder": "Ba {name} de.",
    "an address": "Ba https://a.org/b?c=1 de.",
    "a kept sentence among others": "Ba de. 12! Gi ko.",
    "a number": "Ba 3.5 de 1,234.50 gi.",
    "no punctuation": "ba de gi ko lu ma ne pi " * 20,
    "one long word": "bade" * 60,
    "escapes": "Ba de.\\nGi ko {n}\\r\\n\\tLu ma.\\n",
    "versions": "Ba 0.85.x de v2.10 gi.",
    "capitals": "BA DE GI. KO LU!",
    "soft hyphens and narrow blanks": "Ba\u00adde gi\u202fko.",
    "unseen signs and wide blanks": "\u200eBa\u200b de\u3000gi\u2009ko.\ufeff",
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lengths = {"longest": 24, "centile_99": 20}
    return translator(tmp_path_factory.mktemp("runs") / "made", "en", "de", seed=6, source_tokens=lengths)


@pytest.fixture(scope="module")
def model(run: Path) -> Translator:
    return opened(run)


@pytest.fixture(scope="module")
def address(run: Path) -> Iterator[str]:
    with running(make_app(hosted(run))) as address:
        yield address


@pytest.fixture(params=TEXTS)
def text(request: pytest.FixtureRequest) -> str:
    return TEXTS[request.param]


@pytest.fixture
def expected(model: Translator, text: str) -> str:
    return model.search(text).text


@pytest.mark.filterwarnings("ignore")
def test_from_python(model: Translator, text: str, expected: str) -> None:
    assert model.translate(text) == expected
    assert model.ask("translate", text)[0]["text"] == expected
    assert model.ask("fragment", text)[0]["text"] == expected
    if text.strip():
        assert model.ask("align", text)[0]["text"] == expected


def test_on_the_command_line(run: Path, text: str, expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert heed("translate", run, "--json", "--", text) == 0
    assert json.loads(capsys.readouterr().out)["text"] == expected


def test_on_standard_input(model: Translator, run: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each line is a text of its own."""
    lines = text.splitlines()
    with standard_input("".join(f"{line}\n" for line in lines)):
        assert heed("translate", run, "--json") == 0
    found = [json.loads(line)["text"] for line in capsys.readouterr().out.splitlines()]
    assert found == [one.text for one in model.search(lines)]


def test_as_a_document(run: Path, text: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(text.encode())
    assert heed("translate", run, "--file", tmp_path / "a.txt", "--out", tmp_path / "b.txt") == 0
    assert (tmp_path / "b.txt").read_bytes() == expected.encode()


def test_over_http(address: str, text: str, expected: str) -> None:
    (found,) = httpx.post(f"{address}/api/translate", json={"text": text}).json()["answers"]
    assert found["text"] == expected
    if text.strip():
        (found,) = httpx.post(f"{address}/api/align", json={"text": text}).json()["answers"]
        assert found["text"] == expected


def test_by_the_protocols_of_others(address: str, text: str, expected: str) -> None:
    assert LibreTranslateAPI(address).translate(text, "en", "de") == expected
    if text.strip():  # their client refuses a blank text
        with closing(deepl.Translator("any", server_url=address)) as theirs:
            assert theirs.translate_text(text, source_lang="EN", target_lang="DE").text == expected
    with openai.OpenAI(base_url=f"{address}/v1", api_key="any") as client:
        asked = [{"role": "user", "content": text}]
        answer = client.chat.completions.create(model="made", messages=asked)  # type: ignore[call-overload]
        assert answer.choices[0].message.content == expected


def test_as_a_document_over_http(address: str, text: str, expected: str) -> None:
    files = {"file": ("a.txt", text.encode())}
    asked = {"source": "en", "target": "de"}
    url = httpx.post(f"{address}/translate_file", files=files, data=asked).json()["translatedFileUrl"]
    assert httpx.get(url).content == expected.encode()
    with closing(deepl.Translator("any", server_url=address)) as theirs:
        made = io.BytesIO()
        theirs.translate_document(text.encode(), made, filename="a.txt", source_lang="EN", target_lang="DE")
    assert made.getvalue() == expected.encode()
    document = httpx.post(f"{address}/api/documents", files=files).json()["id"]
    state = f"{address}/api/documents/{document}"
    assert becomes(lambda: httpx.get(state).json()["status"] == "done")
    assert httpx.get(f"{state}/file").content == expected.encode()
