"""`heed serve`: what it serves, what it says, what it refuses, and how it ends."""

import json
import re
import shutil
import signal
import socket
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from commands import heed
from heedful.cli.serving import checked_key, listen, named, run_until_ended
from heedful.errors import InputError, MissingError
from serving import serving
from waiting import PATIENCE


def children(process: int) -> list[int]:
    """The processes of its session that are still there."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == process and fields[0] != "Z":
            found.append(int(path.parent.name))
    return found


def test_it_answers_as_its_line_says(runs: dict[str, Path], tmp_path: Path) -> None:
    """All runs of a folder; a key from the environment."""
    for name in ("tag", "transformer"):
        shutil.copytree(runs[name], tmp_path / "runs" / name)
    (tmp_path / "runs" / "begun").mkdir()
    with serving(cwd=tmp_path, HEED_API_KEY="k") as (said, process):
        by_name = {each["name"]: each for each in said["models"]}
        assert by_name == {
            "tag": {"name": "tag", "task": "tag", "engine": "own"},
            "transformer": {"name": "transformer", "task": "translate", "engine": "ctranslate2"},
        }
        with httpx.Client(base_url=said["url"], headers={"Authorization": "Bearer k"}) as client:
            assert client.get("/ready").json()["models"] == ["tag", "transformer"]
            answer = client.post("/api/translate", json={"text": "ba de"}).json()
            assert answer["answers"][0]["source"] == "ba de"
            assert httpx.post(said["url"] + "/api/tag", json={"text": "ba"}).status_code == 401
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
        assert "Traceback" not in process.stderr.read()


def test_streams_in_flight_are_drained_and_nothing_is_left(runs: dict[str, Path], full: bool, tally: Any) -> None:
    for _ in range(20 if full else 1):
        with serving(runs["writer"]) as (said, process):
            ends: list[str] = []
            begun = threading.Barrier(11, timeout=PATIENCE)

            def stream(number: int, url: str, ends: list[str], begun: threading.Barrier) -> None:
                options = {"tokens": 200, "sampling": {"seed": number}}
                asked = {"text": "ba", "options": options, "stream": True}
                with httpx.stream("POST", f"{url}/api/generate", json=asked, timeout=PATIENCE) as answer:
                    lines = answer.iter_lines()
                    next(lines)
                    begun.wait()
                    ends.append([line for line in lines if line][-1])

            clients = [threading.Thread(target=stream, args=(number, said["url"], ends, begun)) for number in range(10)]
            for one in clients:
                one.start()
            begun.wait()
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0
            for one in clients:
                one.join(PATIENCE)
            assert ends == ["data: [DONE]"] * 10
            assert children(process.pid) == []
        tally("shutdown with streams in flight", 1)


def test_a_line_of_its_log_says_when(runs: dict[str, Path]) -> None:
    with serving(runs["tag"]) as (said, process):
        with socket.create_connection(("127.0.0.1", int(said["url"].rpartition(":")[2]))) as one:
            one.sendall(b"no request\r\n\r\n")
            assert one.recv(12) == b"HTTP/1.1 400"
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
        (line,) = [line for line in process.stderr if "Invalid HTTP request" in line]
    assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} WARNING ", line)


def test_what_would_be_open_to_whom(runs: dict[str, Path], monkeypatch, capsys) -> None:
    monkeypatch.delenv("HEED_API_KEY", raising=False)
    assert heed("serve", runs["tag"], "--port", "0", "--check", "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["reached_by"], facts["key"]) == ("this machine", False)
    assert {"POST /api/tag", "GET /health", "GET /metrics"} <= {*facts["routes"]}
    named = ("--name", "a.example", "--name", "b.example", "--api-key", "k")
    assert heed("serve", runs["tag"], "--check", *named) == 0
    told = capsys.readouterr().out
    assert "reached by this machine" in told
    assert "names    127.0.0.1, ::1, a.example, b.example, localhost\n" in told
    more = ("--host", "0.0.0.0", "--api-key", "k")
    assert heed("serve", runs["tag"], "--port", "0", "--check", *more) == 0
    told = capsys.readouterr().out
    assert "reached by other machines" in told
    assert "needed for all but GET /health" in told


def test_what_cannot_be_served_says_why(runs: dict[str, Path], tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.delenv("HEED_API_KEY", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    for words, code, said in (
        (("--host", "0.0.0.0", runs["tag"]), 2, "open to other machines"),
        (("--api-key", "", runs["tag"]), 2, "an empty key"),
        ((), 3, "no run to serve"),
        ((tmp_path / "nowhere",), 3, "no such folder"),
        ((tmp_path / "empty",), 3, "no model has been saved"),
        ((runs["tag"], "--engine", "fast"), 2, "unknown key 'fast'"),
        ((runs["tag"], "--engine", "ctranslate2"), 2, "serves translators"),
    ):
        assert heed("serve", *words, "--port", "0") == code, words
        told = capsys.readouterr().err
        assert said in told
        assert told.startswith("error: ")
        assert "Traceback" not in told


def test_one_of_two_that_start_at_once_on_a_port_says_that_it_is_taken() -> None:
    """Each could take the address, as neither answered yet."""

    class Answers:
        def run(self, sockets: list[socket.socket]) -> None:
            raise AssertionError("it has no port to answer at")

    with listen("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with listen("127.0.0.1", port) as second:
            first.listen()
            with pytest.raises(InputError, match=rf"^cannot listen at 127\.0\.0\.1:{port} "):
                run_until_ended(Answers(), second)


def test_a_port_that_is_taken(runs: dict[str, Path], capsys) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert heed("serve", runs["tag"], "--port", taken.getsockname()[1]) == 2
    told = capsys.readouterr().err
    assert "cannot listen at 127.0.0.1" in told
    assert "--port 0" in told


def test_a_host_that_is_not_here(runs: dict[str, Path], capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another port would not help."""

    def unknown(*asked: object, **how: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert heed("serve", runs["tag"], "--port", "0", "--host", "nowhere.example", "--api-key", "k") == 2
    told = capsys.readouterr().err
    assert "cannot listen at nowhere.example" in told
    assert "--host 127.0.0.1" in told
    assert "--port" not in told


def test_names_are_those_of_folders_and_each_is_once(tmp_path: Path, capsys) -> None:
    for place in ("a/x", "b/x", "b/y"):
        (tmp_path / place).mkdir(parents=True)
    (tmp_path / "best").symlink_to("b/y")
    assert named([tmp_path / "b/x", tmp_path / "b/y"]).keys() == {"x", "y"}
    assert capsys.readouterr().err == ""
    assert named([tmp_path / "b/x", tmp_path / "b/y", tmp_path / "b/x", tmp_path / "best"]).keys() == {"x", "y"}
    assert capsys.readouterr().err == (
        f"note: {tmp_path}/b/x is served already, as x\nnote: {tmp_path}/best is served already, as y\n"
    )
    with pytest.raises(InputError, match="two runs are called 'x'"):
        named([tmp_path / "a/x", tmp_path / "b/x"])
    with pytest.raises(MissingError):
        named([tmp_path / "c"])


def test_keys_that_a_header_cannot_hold() -> None:
    assert checked_key(None) is None
    assert checked_key("a-b_1") == "a-b_1"
    for key in ("", " a", "é", "a\nb"):
        with pytest.raises(InputError, match="an empty key"):
            checked_key(key)
