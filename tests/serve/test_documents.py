"""Documents over HTTP: by DeepL's official client, by LibreTranslate's protocol, and by our own routes."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import deepl as client
import httpx
import pytest

from documents import BROKEN, DOCUMENTS
from heedful.data.documents.passages import Mark, Passage, passage_json, passage_of
from heedful.data.documents.read import READERS
from heedful.errors import BusyError, LateError
from heedful.serve import documents
from heedful.serve.app import make_app
from heedful.serve.engine import Engine
from heedful.serve.gate import Rules
from heedful.serve.opening import open_engine
from serving import hosted, opened, running, translator
from waiting import PATIENCE, becomes

KEY = "sesam"
HEADERS = {"Authorization": f"Bearer {KEY}"}
TEXT = b"ba de. Gi!\n\nko lu\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    translator(folder / "german", "de", "en", seed=1)
    translator(folder / "noise", "noised text", "text", noise={"objective": "infill", "longest": 40})
    return folder


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    models = {run.name: open_engine(run, engine="own") for run in sorted(folder.iterdir())}
    with running(make_app(models, rules=Rules(key=KEY))) as address:
        yield address


@pytest.fixture
def theirs(address: str) -> Iterator[client.Translator]:
    with closing(client.Translator(KEY, server_url=address)) as made:
        yield made


def by_hand(folder: Path, name: str, data: bytes, place: Path, **options: Any) -> bytes:
    """The document as `heed translate --file` translates it."""
    (place / f"in-{name}").write_bytes(data)
    opened(folder / "german").translate_files(place / f"in-{name}", place / f"out-{name}", **options)
    return (place / f"out-{name}").read_bytes()


def send(address: str, name: str, data: bytes, **asked: Any) -> httpx.Response:
    fields = {"json": json.dumps({"model": "german"} | asked)}
    return httpx.post(f"{address}/api/documents", files={"file": (name, data)}, data=fields, headers=HEADERS)


def state(address: str, name: str) -> httpx.Response:
    return httpx.get(f"{address}/api/documents/{name}", headers=HEADERS)


def ended(address: str, name: str) -> dict[str, Any]:
    assert becomes(lambda: state(address, name).json()["status"] in ("done", "error"))
    found: dict[str, Any] = state(address, name).json()
    return found


def ask_libretranslate(address: str, name: str, data: bytes, timeout: float = PATIENCE) -> httpx.Response:
    files, asked = {"file": (name, data)}, {"source": "de", "target": "en"}
    return httpx.post(f"{address}/translate_file", files=files, data=asked, headers=HEADERS, timeout=timeout)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_deepls_client_translates_each_kind(theirs: client.Translator, folder: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(DOCUMENTS[name])
    out = tmp_path / f"theirs-{name}"
    status = theirs.translate_document_from_filepath(tmp_path / name, out, source_lang="DE", target_lang="EN-GB")
    assert out.read_bytes() == by_hand(folder, name, DOCUMENTS[name], tmp_path)
    assert status.done
    assert status.billed_characters


@pytest.mark.parametrize("name", DOCUMENTS)
def test_libretranslates_form_and_our_own_give_the_same(address: str, folder: Path, tmp_path: Path, name: str) -> None:
    wanted = by_hand(folder, name, DOCUMENTS[name], tmp_path)
    url = ask_libretranslate(address, name, DOCUMENTS[name]).json()["translatedFileUrl"]
    assert httpx.get(url, headers=HEADERS).content == wanted
    made = send(address, name, DOCUMENTS[name]).json()
    found = ended(address, made["id"])
    assert (found["status"], found["translated"]) == ("done", found["passages"])
    answer = httpx.get(f"{address}/api/documents/{made['id']}/file", headers=HEADERS)
    assert answer.content == wanted
    stem, _, suffix = name.partition(".")
    assert f"{stem}.en.{suffix}" in answer.headers["content-disposition"]
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_the_kinds_are_told_as_they_are(address: str, tmp_path: Path) -> None:
    found = httpx.get(f"{address}/frontend/settings", headers=HEADERS).json()
    assert (found["filesTranslation"], found["supportedFilesFormat"]) == (True, [*READERS])
    with running(make_app({})) as nothing:
        found = httpx.get(f"{nothing}/frontend/settings").json()
        assert (found["filesTranslation"], found["supportedFilesFormat"]) == (False, [])
        assert httpx.post(f"{nothing}/api/documents").status_code == 404


def test_a_glossary_is_used(theirs: client.Translator, folder: Path, tmp_path: Path) -> None:
    terms = theirs.create_glossary("terms", source_lang="DE", target_lang="EN", entries={"ko": "su"})
    made = tmp_path / "made.txt"
    (tmp_path / "a.txt").write_bytes(TEXT)
    theirs.translate_document_from_filepath(
        tmp_path / "a.txt", made, source_lang="DE", target_lang="EN-GB", glossary=terms
    )
    assert made.read_bytes() == by_hand(folder, "a.txt", TEXT, tmp_path, glossary={"ko": "su"})
    assert b"su" in made.read_bytes()
    asked = {"target_lang": "EN-GB", "glossary_id": terms.glossary_id}
    answer = httpx.post(
        f"{theirs.server_url}/v2/document", files={"file": ("a.txt", TEXT)}, data=asked, headers=HEADERS
    )
    assert (answer.status_code, "source_lang" in answer.json()["message"]) == (400, True)


def test_our_own_takes_the_options_of_translations(address: str, folder: Path, tmp_path: Path) -> None:
    options = {"glossary": [["ko", "su"]], "flag": 0.9}
    found = ended(address, send(address, "a.xlf", DOCUMENTS["a.xlf"], options=options).json()["id"])
    made = httpx.get(f"{address}/api/documents/{found['id']}/file", headers=HEADERS).content
    assert made == by_hand(folder, "a.xlf", DOCUMENTS["a.xlf"], tmp_path, glossary={"ko": "su"}, flag=0.9)
    assert b"needs-review-translation" in made
    assert any(line.startswith("a.xlf:") and "below 0.9" in line for line in found["warnings"])
    wrong = send(address, "a.txt", TEXT, options={"flag": 2.0})
    assert (wrong.status_code, "flag" in wrong.json()["error"]["message"]) == (422, True)
    assert send(address, "a.txt", TEXT, model="noise").status_code == 200  # it has no pair of languages


@pytest.mark.parametrize("fault", BROKEN)
def test_what_is_no_document_is_told_in_one_line(address: str, folder: Path, tmp_path: Path, fault: str) -> None:
    name, data = BROKEN[fault]
    found = ended(address, send(address, name, data).json()["id"])
    assert found["status"] == "error"
    said = found["error"]["message"]
    assert said.startswith(name)
    assert "\n" not in said
    assert found["error"]["fix"]
    answer = ask_libretranslate(address, name, data)
    assert (answer.status_code, list(answer.json())) == (400, ["error"])
    assert answer.json()["error"].startswith(name)


def test_deepls_client_is_told_what_is_wrong(theirs: client.Translator) -> None:
    for name, wrong, match in (
        ("a.docx", {}, "no Word document"),
        ("a.docx", {"source_lang": "FR"}, "source_lang: 'FR' to 'EN-GB' is not served"),
        ("a.docx", {"formality": "more"}, "formality is not served here"),
        ("a.docx", {"output_format": "pdf"}, "output_format: a document stays what it is, docx"),
        ("a.docx", {"glossary": "none"}, "glossary_id: there is no such glossary"),
        ("a.pdf", {}, r"\.pdf is not the name of a kind of document"),
        ("docx", {}, "no ending is not the name of a kind"),
    ):
        asked: dict[str, Any] = {"source_lang": "DE", "target_lang": "EN-GB", "filename": name} | wrong
        with pytest.raises(client.DeepLException, match=match):
            theirs.translate_document(b"ba", io.BytesIO(), **asked)
    handle = theirs.translate_document_upload(TEXT, filename="a.txt", source_lang="DE", target_lang="EN-GB")
    for other in (client.DocumentHandle(handle.document_id, "a"), client.DocumentHandle("a", handle.document_key)):
        with pytest.raises(client.DeepLException, match="there is no such document"):
            theirs.translate_document_get_status(other)
        with pytest.raises(client.DeepLException, match="Not found"):
            theirs.translate_document_download(other)


@pytest.mark.parametrize(
    ("fields", "files", "word"),
    [
        ({}, {"file": ("a.txt", TEXT)}, "source"),
        ({"source": "de"}, {"file": ("a.txt", TEXT)}, "target"),
        ({"source": "de", "target": "en"}, {"other": ("a.txt", TEXT)}, "file: the document is missing"),
        ({"source": "de", "target": "en", "file": "ba"}, {"x": (None, "y")}, "file: the document is missing"),
        ({"source": "de", "target": "fr"}, {"file": ("a.txt", TEXT)}, "target: 'fr' is not served"),
        ({"source": "de", "target": "en", "format": "x"}, {"file": ("a.txt", TEXT)}, "format: there is no such key"),
        ({"source": "de", "target": "en"}, {"file": ("a.exe", TEXT)}, ".exe is not the name of a kind of document"),
        ({"source": "de", "target": "en"}, {"file": ("", TEXT)}, "file: the document is missing"),
    ],
)
def test_libretranslates_form_is_told_what_is_wrong(address: str, fields: Any, files: Any, word: str) -> None:
    answer = httpx.post(f"{address}/translate_file", data=fields, files=files, headers=HEADERS)
    assert (answer.status_code, list(answer.json())) == (400, ["error"])
    assert word in answer.json()["error"]


def test_a_key_may_be_in_the_form(address: str) -> None:
    asked = {"source": "auto", "target": "en", "api_key": KEY}
    answer = httpx.post(f"{address}/translate_file", files={"file": ("a.txt", TEXT)}, data=asked)
    url = answer.json()["translatedFileUrl"]
    assert httpx.get(url).status_code == 403
    assert set(httpx.get(url).json()) == {"error"}
    assert httpx.get(url, headers=HEADERS).status_code == 200
    assert httpx.post(f"{address}/translate_file", files={"file": ("a.txt", TEXT)}, data={}).status_code == 403


@pytest.mark.parametrize(
    "name",
    [
        "../../a.txt",
        "/etc/a.txt",
        "C:\\x\\a.txt",
        "a/../../b.TXT",
        "ä<b>&'\".txt",
        "a\u202eb.txt",
        "\u0001.txt",
        "x" * 300 + ".txt",
    ],
)
def test_a_name_is_only_a_name(address: str, name: str) -> None:
    found = send(address, name, TEXT).json()
    assert not {"/", "\\"} & {*found["name"]}
    assert found["name"].isprintable()
    assert len(found["name"]) <= 200
    assert ended(address, found["id"])["status"] == "done"
    answer = httpx.get(f"{address}/api/documents/{found['id']}/file", headers=HEADERS)
    assert answer.headers["content-disposition"].isascii()


def test_a_document_is_gone_once_it_is_fetched(address: str, theirs: client.Translator) -> None:
    name = ended(address, send(address, "a.txt", TEXT).json()["id"])["id"]
    assert httpx.get(f"{address}/api/documents/{name}/file", headers=HEADERS).status_code == 200
    assert becomes(lambda: state(address, name).status_code == 404)
    url = ask_libretranslate(address, "a.txt", TEXT).json()["translatedFileUrl"]
    assert httpx.get(url, headers=HEADERS).status_code == 200
    assert becomes(lambda: httpx.get(url, headers=HEADERS).status_code == 404)
    handle = theirs.translate_document_upload(TEXT, filename="a.txt", source_lang="DE", target_lang="EN-GB")
    theirs.translate_document_wait_until_done(handle)
    theirs.translate_document_download(handle, io.BytesIO())
    status = f"{address}/v2/document/{handle.document_id}"
    key = {"document_key": handle.document_key}
    assert becomes(lambda: httpx.post(status, json=key, headers=HEADERS).status_code == 404)
    deleted = send(address, "a.txt", TEXT).json()["id"]
    assert httpx.delete(f"{address}/api/documents/{deleted}", headers=HEADERS).status_code == 204
    assert state(address, deleted).status_code == 404


def test_a_document_is_forgotten_in_time(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "KEPT", 0.001)
    name = send(address, "a.txt", TEXT).json()["id"]
    assert becomes(lambda: state(address, name).status_code == 404)


def test_there_is_room_for_so_many(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name = send(address, "a.txt", TEXT).json()["id"]
    for limit in ("MOST", "MOST_BYTES"):
        monkeypatch.setattr(documents, limit, 1)
        answer = send(address, "a.txt", TEXT)
        assert (answer.status_code, answer.json()["error"]["type"]) == (429, "busy")
        assert answer.headers["retry-after"]
        assert ask_libretranslate(address, "a.txt", TEXT).status_code == 429
        monkeypatch.undo()
    assert httpx.delete(f"{address}/api/documents/{name}", headers=HEADERS).status_code == 204


def test_a_larger_one_is_refused(address: str) -> None:
    answer = send(address, "a.txt", b"ba\n" * (12 << 20))
    assert (answer.status_code, answer.json()["error"]["type"]) == (413, "too_large")


class Held:
    """A model's answers, which wait until they are let go, and may be errors."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *errors: Exception) -> None:
        self.sizes, self.errors, self.free = list[int](), [*errors], not errors
        ask = Engine.ask

        async def held(engine: Engine, verb: str, inputs: Any, settings: Any = None) -> Any:
            self.sizes.append(len(inputs))
            if self.errors:
                raise self.errors.pop(0)
            return await ask(engine, verb, inputs, settings)

        monkeypatch.setattr(Engine, "ask", held)


def test_a_busy_model_is_asked_again_and_a_late_one_for_less(
    address: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = b"ba de.\n\n" * 4
    monkeypatch.setattr(documents, "PAUSE", 0.001)
    held = Held(monkeypatch, BusyError("busy"), LateError("late"), LateError("late"))
    found = ended(address, send(address, "a.txt", text).json()["id"])
    made = httpx.get(f"{address}/api/documents/{found['id']}/file", headers=HEADERS).content
    assert held.sizes == [4, 4, 2, 1, 1, 1, 1]
    assert made == by_hand(folder, "a.txt", text, tmp_path)
    held.errors = [LateError("it is late", fix="ask for less") for _ in range(3)]
    found = ended(address, send(address, "a.txt", text).json()["id"])
    assert found["error"] == {"message": "it is late", "fix": "ask for less"}
    held.errors = [ValueError("a secret")]
    found = ended(address, send(address, "a.txt", text).json()["id"])
    assert found["error"]["message"] == "this request failed"


def children() -> list[int]:
    """The processes that read documents."""

    def told(path: Path) -> bytes:
        try:
            return path.read_bytes()
        except (FileNotFoundError, ProcessLookupError):  # a thread, or a process, that has just ended
            return b""

    own = Path(f"/proc/{os.getpid()}/task")
    found = [int(child) for task in own.iterdir() for child in told(task / "children").split()]
    return [child for child in found if b"document_process" in told(Path(f"/proc/{child}/cmdline"))]


def test_those_that_failed_take_no_room(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MOST", 2)
    with running(make_app(hosted(folder / "german"), rules=Rules(key=KEY))) as address:
        first = ended(address, send(address, "a.docx", b"no archive").json()["id"])
        ended(address, send(address, "a.docx", b"no archive").json()["id"])
        assert ended(address, send(address, "a.txt", TEXT).json()["id"])["status"] == "done"
        assert state(address, first["id"]).status_code == 404
        assert ended(address, send(address, "a.txt", TEXT).json()["id"])["status"] == "done"
        assert send(address, "a.txt", TEXT).status_code == 429


def test_one_that_nobody_waits_for_is_stopped(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "PAUSE", 3600.0)
    Held(monkeypatch, *[BusyError("busy")] * 4)
    running_one = send(address, "a.txt", TEXT).json()["id"]
    assert becomes(lambda: len(children()) == 1)
    queued = send(address, "a.txt", TEXT).json()["id"]
    assert state(address, queued).json()["status"] == "queued"  # one at a time
    httpx.delete(f"{address}/api/documents/{running_one}", headers=HEADERS)
    assert becomes(lambda: state(address, queued).json()["status"] == "translating")
    httpx.delete(f"{address}/api/documents/{queued}", headers=HEADERS)
    assert becomes(lambda: not children())
    with pytest.raises(httpx.ReadTimeout):
        ask_libretranslate(address, "a.txt", TEXT, timeout=1)
    assert becomes(lambda: not children())


def test_nothing_is_left_when_the_server_ends(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "PAUSE", 3600.0)
    Held(monkeypatch, *[BusyError("busy")] * 4)
    with running(make_app(hosted(folder / "german"), rules=Rules(key=KEY))) as address:
        send(address, "a.txt", TEXT)
        assert becomes(lambda: len(children()) == 1)
    assert becomes(lambda: not children())


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("import signal; signal.raise_signal(signal.SIGALRM)", "it takes more than 60 s to be read"),
        ("raise SystemExit", "the process that reads documents has ended"),
        (
            "import heedful.serve.document_process as own; own.MEMORY = 1 << 28; own.main()",
            "it needs more than 256 MiB to be read",
        ),
    ],
)
def test_a_document_that_takes_too_much_costs_its_own_process_only(
    address: str, program: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "PROGRAM", ("-c", program))
    found = ended(address, send(address, "a.txt", b"a\n\n" * (1 << 20)).json()["id"])
    assert message in found["error"]["message"]


def test_the_process_that_reads_documents_loads_no_engine() -> None:
    """It would take two seconds, and a quarter of its memory, for each document."""
    code = "import sys, heedful.serve.document_process; sys.exit(bool({'torch', 'numpy'} & {*sys.modules}))"
    assert subprocess.run([sys.executable, "-P", "-c", code], check=False).returncode == 0


def test_a_long_paragraph_is_refused(address: str) -> None:
    found = ended(address, send(address, "a.txt", b"ba " * 7000).json()["id"])
    assert found["error"]["message"].startswith("a.txt:1: a paragraph of 20,999 characters, at most 20,000")


def test_a_paragraph_of_very_many_tags_is_refused(address: str) -> None:
    data = f"<p>ba de{'<i></i>' * 3000} gi</p>".encode()
    found = ended(address, send(address, "a.html", data).json()["id"])
    assert "a paragraph with 6,000 tags, at most 5,000" in found["error"]["message"]


def test_marks_at_the_same_place_stay_apart() -> None:
    marks = (Mark(2, "<a/>"), Mark(2, "<b/>"), Mark(3, "<i>", "opens", 2), Mark(5, "</i>", "closes", 2))
    found = passage_of(passage_json(Passage("ba de", marks)))
    assert (found.text, [mark.raw for mark in found.marks]) == ("ba de", ["0", "1", "2", "3"])
    assert [(mark.at, mark.role, mark.pair) for mark in found.marks] == [
        (mark.at, mark.role, mark.pair) for mark in marks
    ]
