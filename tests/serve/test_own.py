"""Our own API: what each verb answers over HTTP, what is refused, and that hostile requests do no harm."""

import io
import json
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from PIL import Image

from answering import answering
from disks import Faulty
from heedful.serve import own
from heedful.serve.app import make_app
from heedful.serve.engine import Engine
from heedful.serve.gate import Rules
from heedful.serve.limits import Limits
from heedful.serve.opening import open_engine
from heedful.store import files
from heedful.verbs.use import ask_each
from nearly import like
from waiting import PATIENCE, becomes

Post = Callable[..., httpx.Response]


@pytest.fixture(scope="module")
def engines(runs: dict[str, Any]) -> Iterator[dict[str, Engine]]:
    made = {name: open_engine(run, engine="own") for name, run in runs.items()}
    yield made
    for one in made.values():
        one.close()


@pytest.fixture(scope="module")
def client(engines: dict[str, Engine]) -> TestClient:
    return TestClient(make_app(engines), base_url="http://localhost", raise_server_exceptions=False)


ASKED = {
    "translate": ("transformer", ["ba de", "gi"], {"decoding": {"beam": 2, "n_best": 2}}),
    "fill": ("fill", ["ba <mask>", "<mask> de <mask>"], {"top": 2}),
    "tag": ("tag", ["ba de", "gi"], {}),
    "classify": ("label", ["ba de", "gi"], {}),
    "answer": ("answer", ["ba?", "gi?"], {"context": "ba is de. gi is ko."}),
    "parse": ("parse", ["a ba de"], {"beam": 1}),
    "score": ("writer", ["ba de", "gi"], {"choices": [" ba", " de"]}),
    "generate": ("writer", ["ba", "gi"], {"tokens": 5, "samples": 2, "sampling": {"temperature": 0.7, "seed": 3}}),
}


@pytest.mark.parametrize("verb", sorted(ASKED))
def test_each_verb_answers_as_it_does_in_a_terminal(client: TestClient, engines: dict[str, Engine], verb: str) -> None:
    name, inputs, options = ASKED[verb]
    found = client.post(f"/api/{verb}", json={"model": name, "inputs": inputs, "options": options})
    assert found.status_code == 200, found.text
    records = json.loads(json.dumps(ask_each(engines[name].served, verb, inputs, options)))
    wanted = records if verb in ("fill", "generate") else [own[0] for own in records]
    assert found.json() == {"model": name, "answers": like(wanted)}
    one = client.post(f"/api/{verb}", json={"model": name, "text": inputs[0], "options": options})
    assert one.json() == {"model": name, "answers": like(wanted[:1])}


def test_an_option_that_is_a_text_may_stand_beside(client: TestClient) -> None:
    beside = client.post("/api/answer", json={"text": "ba?", "context": "ba is de."})
    assert beside.status_code == 200, beside.text
    inside = client.post("/api/answer", json={"text": "ba?", "options": {"context": "ba is de."}})
    assert beside.json() == inside.json()


@pytest.mark.parametrize("verb", ["detect", "match"])
def test_pictures_come_as_files(client: TestClient, engines, picture: bytes, tmp_path, verb: str) -> None:
    options = {"match": {"texts": ["a", "b"]}, "detect": {"threshold": 0.0}}.get(verb, {})
    sent = [("file", ("one.png", picture, "image/png")), ("file", ("../two.png", picture, "image/png"))]
    found = client.post(f"/api/{verb}", files=sent, data={"json": json.dumps({"model": verb, "options": options})})
    assert found.status_code == 200, found.text
    (tmp_path / "p").write_bytes(picture)
    ((wanted,),) = ask_each(engines[verb].served, verb, [str(tmp_path / "p")], options)
    wanted = json.loads(json.dumps(wanted))
    for answer, name in zip(found.json()["answers"], ["one.png", "two.png"], strict=True):
        assert answer["input"].endswith(name)
        assert {**answer, "input": ""} == like({**wanted, "input": ""})


def test_what_is_no_picture_or_too_large_a_one(client: TestClient) -> None:
    for content, status, said in (
        (b"not a picture", 400, "x.png"),
        (b"", 400, "x.png"),
        (large_picture(5000, 4000), 413, "20,000,000|5,000 x 4,000 pixels"),
    ):
        found = client.post("/api/detect", files={"file": ("x.png", content)})
        assert found.status_code == status, found.text
        message = found.json()["error"]["message"]
        assert any(part in message for part in said.split("|"))
        assert "/tmp" not in found.text
    by_name = client.post("/api/detect", json={"model": "detect", "inputs": ["/etc/passwd"]})
    assert (by_name.status_code, by_name.json()["error"]["type"]) == (415, "input")
    both = client.post("/api/detect", files={"file": b"x"}, data={"json": '{"inputs": "/etc/passwd"}'})
    assert both.status_code == 422


@pytest.mark.parametrize(
    "name", ["𐐀" * 80, "é" * 300, "😀" * 90 + ".png", "a" * 3000, "../../etc/passwd", "..", ".", "a\0b", "\x1b[31m", ""]
)
def test_a_picture_may_have_any_name(client: TestClient, picture: bytes, name: str) -> None:
    """A file's name has at most 255 bytes, and as a letter may have four."""
    form = b'--B\r\nContent-Disposition: form-data; name="file"; filename="%s"\r\n\r\n' % name.encode()
    headers = {"content-type": "multipart/form-data; boundary=B"}
    found = client.post("/api/detect", content=form + picture + b"\r\n--B--", headers=headers)
    assert (found.status_code, found.json()["answers"][0]["input"]) == (200, name[:200])
    wrong = client.post("/api/detect", content=form + b"no picture\r\n--B--", headers=headers)
    assert (wrong.status_code, name[:9] in wrong.json()["error"]["message"]) == (400, True)
    assert "/tmp" not in wrong.text


def test_pictures_are_opened_beside_the_loop(
    opened: Callable[..., Engine], picture: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which answers others meanwhile; who leaves meanwhile leaves nothing behind."""
    opening, go_on = threading.Event(), threading.Event()
    folders, header = list[Path](), own.image_header

    def slow(file: Any) -> Any:
        folders.append(file.path.parent.parent)
        opening.set()
        assert go_on.wait(PATIENCE)
        return header(file)

    monkeypatch.setattr(own, "image_header", slow)
    with answering(make_app({"detect": opened("detect")})) as served, ThreadPoolExecutor() as pool:
        url = f"http://localhost:{served.port}"
        asked = pool.submit(httpx.post, f"{url}/api/detect", files={"file": ("x.png", picture)}, timeout=PATIENCE)
        assert opening.wait(PATIENCE)
        assert httpx.get(f"{url}/health", timeout=PATIENCE).status_code == 200
        go_on.set()
        assert asked.result().status_code == 200
        opening.clear()
        go_on.clear()
        request = httpx.Request("POST", f"{url}/api/detect", files={"file": ("x.png", picture)})
        head = "".join(f"{key}: {value}\r\n" for key, value in request.headers.items())
        with socket.create_connection(("127.0.0.1", served.port)) as one:
            one.sendall(f"POST /api/detect HTTP/1.1\r\n{head}\r\n".encode() + request.read())
            assert opening.wait(PATIENCE)
        assert becomes(lambda: not served.connections)
        go_on.set()
        assert becomes(lambda: not any(folder.exists() for folder in folders))
    assert len(folders) == 2


@pytest.mark.parametrize("full_disk", ["the folder", "the files"])
def test_where_pictures_have_no_room_the_client_is_told_to_wait(
    client: TestClient,
    picture: bytes,
    full_disk: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    if full_disk == "the folder":
        monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    else:
        monkeypatch.setattr(files, "disk", Faulty("ENOSPC", 1, for_good=True))
    found = client.post("/api/detect", files={"file": ("x.png", picture)})
    assert (found.status_code, found.headers["retry-after"]) == (503, "60")
    assert found.json()["error"]["message"] == "there is no room to keep pictures"
    assert "pictures cannot be kept: " in caplog.text
    assert "Traceback" not in caplog.text
    monkeypatch.undo()
    assert client.post("/api/detect", files={"file": ("x.png", picture)}).status_code == 200


@pytest.mark.parametrize("verb", ["detect", "look", "view"])
def test_what_is_said_of_pictures_is_not_streamed(client: TestClient, picture: bytes, verb: str) -> None:
    files = {"file": ("x.png", picture)}
    found = client.post(f"/api/{verb}", files=files, data={"json": '{"model": "detect", "stream": true}'})
    assert (found.status_code, found.json()["error"]["fix"]) == (400, "leave out stream")
    assert client.post(f"/api/{verb}", files=files, data={"json": '{"model": "detect"}'}).status_code == 200


def test_the_pictures_of_a_request_are_counted_together(client: TestClient) -> None:
    large = large_picture(4000, 3000)
    asked = client.post("/api/detect", files=[("file", (f"{i}.png", large)) for i in range(2)])
    assert asked.status_code == 413
    assert "together 24,000,000 pixels, at most 16,777,216" in asked.text


def large_picture(width: int, height: int) -> bytes:
    """A few bytes that are many pixels."""
    made = io.BytesIO()
    Image.new("1", (width, height)).save(made, "PNG")
    assert len(made.getvalue()) < 10_000
    return made.getvalue()


def test_a_text_is_streamed_as_it_is_made(client: TestClient, engines: dict[str, Engine]) -> None:
    how = {"tokens": 12, "stop": ["zz"], "sampling": {"temperature": 0.0}}
    with client.stream("POST", "/api/generate", json={"text": "ba", "options": how, "stream": True}) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["x-accel-buffering"] == "no"  # of nginx, which else gathers the pieces
        lines = [line.removeprefix("data: ") for line in answer.iter_lines() if line]
    assert lines[-1] == "[DONE]"
    events = [json.loads(line) for line in lines[:-1]]
    ((alone,),) = engines["writer"].served.generate(["ba"], tokens=12, stop=["zz"], temperature=0.0)
    assert "".join(event["text"] for event in events) == alone.text
    assert [event["token"] for event in events if event["token"] is not None] == alone.tokens
    assert [event.get("finish") for event in events] == [None] * (len(events) - 1) + ["length"]
    for asked in ({"inputs": ["a", "b"], "stream": True}, {"text": "a", "stream": True, "options": {"samples": 2}}):
        assert client.post("/api/generate", json=asked).status_code == 400
    searched = {"text": "a", "stream": True, "options": {"beam": 2}}
    assert "cannot be streamed" in client.post("/api/generate", json=searched).json()["error"]["message"]
    assert client.post("/api/tag", json={"text": "a", "stream": True}).status_code == 400


def test_vectors(client: TestClient, engines: dict[str, Engine]) -> None:
    found = client.post("/api/embed", json={"model": "fill", "inputs": ["ba de", "gi"]}).json()
    wanted, _ = engines["fill"].row.embedder().load(engines["fill"].run).vectors_of(["ba de", "gi"])
    assert found == {"model": "fill", "vectors": like(wanted.tolist())}
    assert found.keys() == {"model", "vectors"}
    cut = client.post("/api/embed", json={"model": "fill", "inputs": ["ba de", "ba " * 500]}).json()
    assert [warning[:8] for warning in cut["warnings"]] == ["", "too long"]
    assert client.post("/api/embed", json={"model": "fill", "text": " "}).status_code == 400


def test_models_are_chosen_by_name_or_by_the_verb(client: TestClient) -> None:
    assert client.post("/api/tag", json={"text": "ba"}).json()["model"] == "tag"
    for asked, status, kind, said in (
        ({"text": "ba"}, 400, "input", "models translate"),
        ({"text": "ba", "model": "../rnn"}, 404, "not_found", "no model is called"),
        ({"text": "ba", "model": "tag"}, 400, "input", "tag does not translate"),
    ):
        found = client.post("/api/translate", json=asked)
        assert (found.status_code, found.json()["error"]["type"]) == (status, kind)
        assert said in found.json()["error"]["message"]
        assert found.json()["error"]["fix"]


def test_a_path_or_a_method_that_is_not_served_says_what_is(client: TestClient) -> None:
    for path in ("/nowhere", "/v1/nowhere", "/v2/nowhere", "/chat/completions"):
        found = client.post(path, json={})
        assert found.status_code == 404
        assert "there is no such route" in found.text
        assert "/openapi.json" in found.text
    found = client.get("/api/translate")
    assert found.status_code == 405
    assert found.json()["error"]["fix"] == "ask by POST"
    assert "ask by POST" in client.get("/v1/chat/completions").json()["error"]["message"]


def test_what_the_server_says_of_itself(client: TestClient) -> None:
    assert client.get("/health").json() == {"status": "ok"}
    assert "writer" in client.get("/ready").json()["models"]
    assert client.post("/api/tag", json={"text": "ba"}).status_code == 200
    page = client.get("/metrics").text
    for name in ("heed_queue_length", "heed_batch_size_bucket", "heed_tokens_total", "heed_answer_seconds_bucket"):
        assert name in page


@pytest.mark.skipif(sys.platform != "linux", reason="it is read from /proc")
def test_what_its_process_takes_is_measured(client: TestClient) -> None:
    page = client.get("/metrics").text
    for name in ("process_resident_memory_bytes", "process_open_fds", "process_cpu_seconds_total"):
        assert f"\n{name} " in page
    schema = client.get("/openapi.json").json()
    assert {"/api/translate", "/api/generate", "/api/embed", "/health"} <= {*schema["paths"]}
    assert "http" not in json.dumps(schema["paths"])


def test_each_field_of_a_request_is_described(client: TestClient) -> None:
    def named(schema: dict[str, Any], before: str) -> Iterator[tuple[str, str]]:
        for name, shape in schema.get("properties", {}).items():
            yield f"{before}{name}", shape.get("description") or ""
            for inner in (shape, *shape.get("anyOf", ()), shape.get("items", {})):
                if name != "messages":
                    yield from named(inner, f"{before}{name}.")

    paths, seen = client.get("/openapi.json").json()["paths"], 0
    for path, methods in paths.items():
        content = methods.get("post", {}).get("requestBody", {}).get("content", {})
        if path.startswith("/api/") and "application/json" in content:
            fields = [*named(content["application/json"]["schema"], "")]
            assert [name for name, about in fields if not about] == [], path
            seen += len(fields)
    assert seen > 100


def test_a_busy_model_and_a_late_answer(runs: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    engine = open_engine(runs["tag"], engine="own", limits=Limits(waiting=0))
    slow = open_engine(runs["fill"], engine="own", limits=Limits(seconds=0.05))
    held = threading.Event()
    client = TestClient(make_app({"tag": engine, "fill": slow}), base_url="http://localhost")
    busy = client.post("/api/tag", json={"text": "ba"})
    assert (busy.status_code, busy.headers["retry-after"]) == (429, "1")
    assert busy.json()["error"]["type"] == "busy"
    records = slow._records
    monkeypatch.setattr(slow, "_records", lambda *asked: held.wait(PATIENCE) and records(*asked))
    late = client.post("/api/fill", json={"text": "<mask>"})
    assert late.status_code == 504, late.text
    held.set()
    for one in (engine, slow):
        one.close()


@pytest.mark.parametrize("charset", ["undefined", '"\0"'])
@pytest.mark.parametrize("path", ["/api/detect", "/translate", "/v2/translate"])
def test_a_form_that_cannot_be_read_is_no_fault_of_ours(engines: dict[str, Engine], path: str, charset: str) -> None:
    part = b'--x\r\nContent-Disposition: form-data; name="q\xff"; filename="a"\r\n\r\n\xff\r\n--x--\r\n'
    headers = {"content-type": f"multipart/form-data; boundary=x; charset={charset}"}
    for rules, status in ((Rules(), 400), (Rules(key="k"), 401 if path == "/api/detect" else 400)):
        client = TestClient(make_app(engines, rules=rules), base_url="http://localhost", raise_server_exceptions=False)
        assert client.post(path, content=part, headers=headers).status_code == status


@pytest.mark.parametrize(
    ("verb", "options", "status", "message"),
    [
        ("translate", {"decoding": {"groups": 0}}, 422, "options.decoding.groups: Input should be greater"),
        ("translate", {"decoding": {"groups": 2, "samples": 2}}, 400, "neither held to words nor drawn"),
        ("generate", {"length_penalty": 2.0}, 400, "a length penalty compares texts"),
        ("generate", {"length_penalty": 1000, "best_of": 2}, 422, "options.length_penalty: Input should be less"),
        ("translate", {"decoding": {"length_penalty": -1000}}, 422, "length_penalty: Input should be greater"),
        ("translate", {"decoding": {"length_penalty": 1000}}, 422, "length_penalty: Input should be less"),
    ],
)
def test_what_would_change_no_answer_is_refused(
    client: TestClient, verb: str, options: dict[str, Any], status: int, message: str
) -> None:
    model = {"translate": "transformer", "generate": "writer"}[verb]
    found = client.post(f"/api/{verb}", json={"model": model, "text": "ba", "options": options})
    assert found.status_code == status
    assert message in found.json()["error"]["message"]


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        ({"inputs": []}, "inputs: List should have at least 1 item after validation, not 0"),
        ({"inputs": ["ba", 3]}, "inputs.1: Input should be a valid string"),
        ({"text": "ba", "word": 2}, "word: there is no such key"),
        ({"text": "ba", "options": {"flag": 40.0}}, "options.flag: Input should be less than or equal to 1"),
    ],
)
def test_a_fault_is_named_by_its_key_and_by_the_type_that_it_has(
    client: TestClient, sent: dict[str, Any], message: str
) -> None:
    found = client.post("/api/translate", json={"model": "transformer", **sent})
    assert (found.status_code, found.json()["error"]["message"]) == (422, message)


@pytest.mark.parametrize(
    ("sent", "fix"),
    [
        ({"options": {"beem": 2}}, "known: "),
        ({"options": {"decoding": {"beem": 2}}}, "did you mean 'beam'?"),
        ({"option": {}}, "did you mean 'options'?"),
        ({"text": 3}, None),
    ],
)
def test_a_key_that_is_not_known_names_those_that_are(
    client: TestClient, sent: dict[str, Any], fix: str | None
) -> None:
    found = client.post("/api/translate", json={"model": "transformer", "text": "ba"} | sent)
    told = found.json()["error"]["fix"]
    assert (found.status_code, told if fix is None else told and told[: len(fix)]) == (422, fix)


VALUES = ("-1", "1e9", "true", "null", '"1"', "{}", "[1]", "99999999999999999999")
KEYS = ("top", "tokens", "beam", "decoding")
HOSTILE = [
    *("", "null", "[]", "{}", "0", '"', "{", '{"text": NaN}', '{"text": "a", "x": 1e999}', '{"text": 1}'),
    *('{"text": null}', '{"text": ["a"]}', '{"inputs": []}', '{"inputs": [null]}', '{"text": "\\ud800"}'),
    *('{"inputs": "a", "text": "a"}', '{"text": "a", "model": 3}', '{"text": "a", "text": 3}'),
    *('{"text": "a", "stream": "yes"}', '{"text": "a", "options": []}', '{"text": "a", "options": {"__class__": 1}}'),
    *('{"text": "a", "options": {"images": "/etc"}}', "[" * 100_000, '{"a":' * 5000, '{"text": ' + "9" * 6000 + "}"),
    *('{"text": "' + "a" * 30_000 + '"}', '{"inputs": [' + '"a",' * 200 + '"a"]}', "{" + " " * (1 << 20) + "}"),
    *(f'{{"text": "a", "options": {{"{key}": {value}}}}}' for key in KEYS for value in VALUES),
]
ODD = ["", " ", "\x00", "\u202e", "é" * 300, "😀" * 100, "<mask>" * 50, "\\" * 50, "\r\n\r\n", "﷽" * 50]


def test_requests_that_are_wrong_by_hand(client: TestClient, tally: Callable[[str, int], None]) -> None:
    """Never a fault of the server, and never more than one line."""
    count = 0
    verbs = sorted({*ASKED, "embed", "detect"})
    bodies = [b"\xff\xfe", *(text.encode() for text in HOSTILE), *(json.dumps({"text": text}).encode() for text in ODD)]
    for number, body in enumerate(bodies):
        for verb in [*verbs[number % 3 :: 3], "tag"]:
            found = client.post(f"/api/{verb}", content=body, headers={"content-type": "application/json"})
            assert found.status_code < 500, (verb, body[:80], found.text)
            if found.status_code != 200:
                assert set(found.json()["error"]) == {"message", "fix", "type"}
                assert "\n" not in found.json()["error"]["message"]
                assert len(found.text) < 2000
            count += 1
    for kind in ("text/plain", "multipart/form-data", "multipart/form-data; boundary=x", "application/xml"):
        assert client.post("/api/tag", content=b"--x", headers={"content-type": kind}).status_code in (400, 415, 422)
        count += 1
    assert count >= 200
    tally("malformed requests", count)


@pytest.mark.filterwarnings("ignore:Do not use the `random` module")  # schemathesis does
def test_requests_that_are_made_from_the_schema(
    engines: dict[str, Engine], full: bool, tally: Callable[[str, int], None]
) -> None:
    app = make_app({name: engines[name] for name in ("transformer", "writer", "answer", "fill", "detect")})
    schema = schemathesis.openapi.from_asgi("/openapi.json", app, headers={"Host": "localhost"})
    operations = [found.ok() for found in schema.get_all_operations()]
    modes = (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE)
    counts = dict.fromkeys([operation.label for operation in operations], 0)
    bodies = sum("requestBody" in operation.definition.raw for operation in operations)
    most = -(-5000 // bodies) if full else 2  # of what can be said well, and of what cannot
    for operation in operations:
        for mode in modes:
            with suppress(Unsatisfiable):  # nothing about it could be wrong
                _ask_often(operation, mode, most, counts)
    assert all(counts.values())
    tally("malformed requests", sum(counts.values()))


def _ask_often(operation: Any, mode: Any, most: int, counts: dict[str, int]) -> None:
    @settings(max_examples=most, database=None, derandomize=True, suppress_health_check=[*HealthCheck])
    @given(case=operation.as_strategy(generation_mode=mode))
    def asked(case: Any) -> None:
        found = case.call(headers={"Host": "localhost"})
        assert found.status_code < 500, (case.as_curl_command(), found.text)
        counts[operation.label] += 1

    asked()


def test_choices_times_texts_are_bounded(client: TestClient) -> None:
    options = {"choices": [str(number) for number in range(256)]}
    found = client.post("/api/score", json={"model": "writer", "inputs": ["ba"] * 17, "options": options})
    assert (found.status_code, found.json()["error"]["message"]) == (400, "4,352 choices at once, at most 4,096")
