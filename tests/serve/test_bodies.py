"""Bodies of JSON and of forms: what is read, what is refused, and before what it costs anything."""

import codecs
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from heedful.serve import bodies, gate
from heedful.serve.app import make_app, open_routes
from heedful.serve.bodies import MOST_DEPTH, MOST_FIELDS, MOST_NAMED, FormFile, read_form, strict_json
from heedful.serve.gate import Rules
from heedful.serve.refusals import Refused
from serving import hosted, running, translator

MULTIPART = {"content-type": "multipart/form-data; boundary=B"}
FORM = {"content-type": "application/x-www-form-urlencoded"}


@pytest.mark.parametrize(
    "body",
    [
        b"3",
        b'"\\\\ud800"',
        b'"\\ud83d\\ude00 \\\\\\ud83d\\ude00"',
        '{"é": "é\\u00e9", "": [null, true, -1.5e3, "[[[{{{", "\\"[", {"a:": ":"}]}'.encode(),
        b"[" * MOST_DEPTH + b"]" * MOST_DEPTH,
        b'{"a": ' * (MOST_DEPTH - 1) + b'["\\\\"]' + b"}" * (MOST_DEPTH - 1),
        b'[{"a": 1}, {"a": 1}]',
        b'"' + b'\\\\\\"[' * 20_000 + b'"',
    ],
)
def test_json_is_read_as_by_others(body: bytes) -> None:
    assert strict_json(body) == json.loads(body)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "the body is not JSON in UTF-8"),
        (b'"caf\xe9"', "the body is not JSON in UTF-8"),
        (b"[NaN]", "the body is not JSON: NaN is no number"),
        (b"[1e999]", "the body is not JSON: 1e999 is no number"),
        (b"9" * 5000, "the body is not JSON in UTF-8"),
        (b"[" * 9 + b"x", "the body is not JSON in UTF-8"),
        (b'{"a": 1, "b": {"c": 2, "c": 3}}', "the body has the key 'c' twice"),
        (b'{"a": 1, "\\u0061": 2}', "the body has the key 'a' twice"),
        (b'{"' + b"k" * 9000 + b'": 1, "' + b"k" * 9000 + b'": 1}', "the body has the key 'kkk"),
        (b'["\\ud800"]', "the body has half a character"),
        (b'{"\\ude00\\ud83d": 1}', "the body has half a character"),
        (b'"\\\\\\ud800\\ud83d\\ude00"', "the body has half a character"),
        (b"[" * (MOST_DEPTH + 1) + b"]" * (MOST_DEPTH + 1), f"the body is nested deeper than {MOST_DEPTH}"),
        (b'{"a":[' * MOST_DEPTH + b"]}" * MOST_DEPTH, f"the body is nested deeper than {MOST_DEPTH}"),
    ],
)
def test_json_that_could_be_read_in_two_ways_is_refused(body: bytes, message: str) -> None:
    with pytest.raises(Refused) as raised:
        strict_json(body)
    assert raised.value.status == 400
    assert raised.value.message.startswith(message)
    assert len(raised.value.message) < 200


def test_json_of_countless_parts_is_refused_before_it_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies.json, "loads", lambda *given, **how: pytest.fail("it was parsed"))
    many = MOST_NAMED + 1
    for body in (
        b"[" * 1_000_000,
        b'{"a":[' * many + b"]}" * many,
        b"[" + b"[]," * many + b"1]",
        b'{"text": [' + b"{}," * many + b"1]}",
        b"{" + b",".join(b'"%d": 1' % number for number in range(many)) + b"}",
        b'{"a\\"b": "\\\\", "c": [' + b"[]," * many + b"1]}",
    ):
        with pytest.raises(Refused, match="more than 16,384 lists, objects and keys"):
            strict_json(body)


def part(name: str, content: bytes, *, more: str = "") -> bytes:
    return f'--B\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n'.encode() + content + b"\r\n"


def test_forms_are_read_as_they_were_sent() -> None:
    """As httpx makes them; and both kinds alike."""
    fields = {"q": ["é & =+%", ""], "target": "ﬁ\r\n\0", "ключ": "😀" * 9}
    told = [("q", "é & =+%"), ("q", ""), ("target", "ﬁ\r\n\0"), ("ключ", "😀" * 9)]
    for request in (
        httpx.Request("POST", "http://localhost", data=fields),
        httpx.Request("POST", "http://localhost", data=fields, files={"q": (None, "last")}),
    ):
        found = read_form(request.headers, request.read())
        assert found == told + [("q", "last")] * (len(found) > len(told))
    content = b"\r\n--b\xff\r\n\r\n--" + bytes(range(256))
    sent = httpx.Request("POST", "http://localhost", files={"file": ("é 1.png", content, "image/png")})
    assert read_form(sent.headers, sent.read()) == [("file", FormFile("é 1.png", content))]
    raw = "q=caf\u00e9&p=caf%C3%A9+%2B&empty&=x"
    assert read_form(FORM, raw.encode()) == [("q", "café"), ("p", "café +"), ("empty", ""), ("", "x")]
    named = part("file", b"1", more="; filename*=UTF-8''%e2%82%ac.png")
    assert read_form(MULTIPART, b"before\r\n" + named + b"--B--\r\nafter") == [("file", FormFile("€.png", b"1"))]
    assert read_form({"content-type": "text/plain"}, b"q=1") == []


@pytest.mark.parametrize(
    ("headers", "body", "message"),
    [
        (FORM, b"q=caf%E9", "the form is not in UTF-8"),
        (FORM, b"q=caf\xe9", "the form is not in UTF-8"),
        (FORM, b"caf%E9=q", "the form is not in UTF-8"),
        (FORM, b"q=%ED%A0%80", "the form is not in UTF-8"),
        (FORM, b"&" * 1_000_000, f"a form of more than {MOST_FIELDS:,} fields"),
        (MULTIPART, part("q", b"caf\xe9") + b"--B--", "the form is not in UTF-8"),
        (MULTIPART, b'--B\r\nContent-Disposition: form-data; name="\xe9"\r\n\r\n\r\n--B--',
         "the form is not in UTF-8"),
        (MULTIPART, part("q", b"a"), "the form has no end"),
        (MULTIPART, part("q", b"a") + b"--B", "the form has no end"),
        (MULTIPART, b"", "the form has no end"),
        (MULTIPART, b"\r\n--Bx" * 1_000_000, f"a form of more than {MOST_FIELDS:,} fields"),
        (MULTIPART, part("q", b"a") * (MOST_FIELDS + 1) + b"--B--", f"a form of more than {MOST_FIELDS:,} fields"),
        (MULTIPART, part("q", b"a" * (1 << 20) + b"a") + b"--B--", "q: more than 1,048,576 bytes"),
        (MULTIPART, b"--B\r\na\r\n--B--", "the form has a field without an empty line"),
        (MULTIPART, b"--B\r\n\r\na\r\n--B--", "the form has a field without a name"),
        (MULTIPART, b"--B\r\nContent-Disposition: form-data\r\n\r\na\r\n--B--", "the form has a field without a name"),
        (MULTIPART, part("q", b"a", more="\r\nX: " + "a" * 9000) + b"--B--", "the form has headers of more than"),
        (MULTIPART, part("q", b"YQ==", more="\r\nContent-Transfer-Encoding: base64") + b"--B--",
         "the form has a field that is encoded"),
        (MULTIPART, part("q", b"a", more=';"' * 3000) + b"--B--", "the form has headers of more than"),
        (MULTIPART, part("q", b"a", more="\r\na:b" * 1000) + b"--B--", "the form has headers of more than"),
        ({"content-type": "multipart/form-data; boundary=B" + ';"' * 3000}, b"", "the form has headers of more than"),
        ({"content-type": "multipart/form-data"}, part("q", b"a") + b"--B--", "the form has no boundary"),
        ({"content-type": "multipart/form-data; boundary="}, b"--\r\n", "the form has no boundary"),
        ({"content-type": "multipart/form-data; boundary=" + "a" * 71}, b"", "the form has no boundary"),
        ({"content-type": "multipart/form-data; boundary=\u20ac"}, b"", "the form is not in UTF-8"),
        *(({"content-type": f"multipart/form-data; boundary*={value}"}, part("q", b"a") + b"--B--",
           "the boundary of the form names an encoding")
          for value in ("utf-8''%E2%82%AC", "utf-8''B", "idna''B", "a%00''B", "undefined''B", "unicode_escape''%5cN")),
        *((MULTIPART, part("file", b"1", more=f"; filename*={charset}''abc") + b"--B--", "a file's name in")
          for charset in ("idna", "latin-1", "a%00", "")),
        (MULTIPART, part("file", b"1", more="; filename*=raw_unicode_escape''a\\ud800.png") + b"--B--",
         "a file's name in 'raw_unicode_escape'"),
        (MULTIPART, part("file", b"1", more="; filename*=UTF-8''a%ED%A0%80") + b"--B--", "the form is not in UTF-8"),
        (MULTIPART, part("file", b"1", more="; filename*=UTF-8''\u20ac") + b"--B--", "the form is not in UTF-8"),
        (MULTIPART, part("file", b"1", more="; filename*=a; filename*0=b") + b"--B--",
         "content-disposition: a parameter comes twice"),
    ],
)  # fmt: skip
def test_a_form_that_could_be_read_in_two_ways_is_refused(headers: dict[str, str], body: bytes, message: str) -> None:
    with pytest.raises(Refused) as raised:
        read_form(headers, body)
    assert raised.value.message.startswith(message)


@pytest.mark.parametrize("charset", ["idna", "punycode", "utf-16", "unicode_escape", "latin-1", "undefined"])
def test_no_codec_is_chosen_by_who_asks(monkeypatch: pytest.MonkeyPatch, charset: str) -> None:
    """Some take time that grows with the square of a text."""
    headers = {"content-type": f"multipart/form-data; boundary=B; charset={charset}"}
    monkeypatch.setattr(codecs, "lookup", lambda name: pytest.fail(f"{name} was looked up"))
    assert read_form(headers, part("q", "xn--é".encode()) + b"--B--") == [("q", "xn--é")]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, list[str]]]:
    """The address of a server, and the paths that are asked by POST."""
    folder: Path = tmp_path_factory.mktemp("runs")
    app = make_app(hosted(translator(folder / "en-de", "en", "de")), rules=Rules(key="right"))
    with running(app) as address:
        yield address, [path for method, path in open_routes(app) if method == "POST"]


def test_every_route_refuses_a_body_that_is_not_utf8(served: tuple[str, list[str]]) -> None:
    """Of those that read one: a text in Latin-1 would be another text."""
    address, paths = served
    key = {"Authorization": "Bearer right"}
    read = dict[str, int]()
    for path in paths:
        for headers, content in (
            (FORM, b"q=caf%E9&text=caf%E9&source=en&target=de&target_lang=de&type=caf%E9"),
            (MULTIPART, part("q", b"caf\xe9") + part("text", b"caf\xe9") + b"--B--"),
            ({"content-type": "application/json"}, b'{"q": "caf\xe9", "text": "caf\xe9"}'),
        ):
            found = httpx.post(address + path, content=content, headers=headers | key)
            if "UTF-8" in found.text:
                read[path] = read.get(path, 0) + 1
                assert found.status_code == 400
            else:
                assert found.status_code in (400, 404, 405, 415) or path in ("/v2/usage",), (path, found.text)
    assert {path for path, count in read.items() if count == 3} >= {"/translate", "/v2/translate", "/v2/glossaries"}
    assert all(read[path] for path in paths)  # each refuses such JSON


def test_a_key_in_a_form_is_found_or_the_form_is_refused(served: tuple[str, list[str]]) -> None:
    address, _ = served
    asked: dict[str, Any] = {"q": "ba", "source": "en", "target": "de", "api_key": "right"}
    assert httpx.post(f"{address}/translate", data=asked).status_code == 200
    assert httpx.post(f"{address}/translate", files={key: (None, value) for key, value in asked.items()}).is_success
    told = httpx.post(f"{address}/translate", content=b"q=caf%E9&api_key=right", headers=FORM)
    assert (told.status_code, told.json()) == (400, {"error": "the form is not in UTF-8: send it in UTF-8"})
    twice = httpx.post(f"{address}/v2/languages", data={"type": ["source", "target"], "auth_key": "right"})
    assert twice.status_code == 400


def test_who_has_no_key_may_not_send_files_to_be_looked_through(
    served: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    address, _ = served
    large = part("file", b"a" * (1 << 20), more='; filename="a"') + part("api_key", b"right") + b"--B--"
    monkeypatch.setattr(gate, "read_form", lambda *given: pytest.fail("it was looked through"))
    assert httpx.post(f"{address}/translate", content=large, headers=MULTIPART).status_code == 413
