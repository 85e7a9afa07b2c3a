"""`heed chat`: line by line for programs, and at a terminal, where Ctrl-C ends an answer and not the program."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

import heedful
from commands import heed, standard_input
from heedful.data.text.conversations import read_conversations
from heedful.store import files
from heedful.tasks.chat.options import ChatOptions
from heedful.tasks.chat.talk import GONE, HELP, Talk

GREEDY = ["--temperature", "0", "--tokens", "4"]
LISTED = '[{"role": "system", "content": "ko"}, {"role": "user", "content": "ba <EOQ>"}]'


@pytest.fixture
def run(run_of):
    return run_of("chat")


@pytest.fixture
def talk(run):
    sampling = {"temperature": 0.0}
    return Talk(heedful.load(run), ChatOptions(tokens=4, sampling=sampling))


def test_a_line_is_a_turn_and_a_list_stands_by_itself(run, tmp_path, capsys):
    model = heedful.load(run)
    with standard_input(f"ba\n{LISTED}\nko\n"):
        assert heed("chat", run, *GREEDY, "--json") == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert all(one.keys() == {"role", "content", "tokens"} and len(one["tokens"]) <= 4 for one in found)
    greedy = {"tokens": 4, "temperature": 0.0}
    first = model.chat("ba", **greedy)
    talk = [{"role": "user", "content": "ba"}, first.message, {"role": "user", "content": "ko"}]
    expected = [first, model.chat(json.loads(LISTED), **greedy), model.chat(talk, **greedy)]
    assert found == [one.record() for one in expected]


def test_a_line_without_an_answer_is_told_and_changes_nothing(run, tmp_path, capsys):
    long = "ba " * 40
    with standard_input(f"ba\n\n{long}\n" + '[{"content": "ba"}]\n[{"role": "assistant", "content": "ba"}]\nko\n'):
        assert heed("chat", run, *GREEDY, "--json") == 2
    said = capsys.readouterr()
    found = [json.loads(line) for line in said.out.splitlines()]
    whys = ["an empty turn", "tokens of the last question", "the role None", "nothing to answer"]
    assert all(why in one["error"] for one, why in zip(found[1:5], whys, strict=True))
    assert [one["line"] for one in found[1:5]] == [2, 3, 4, 5]
    with standard_input("ba\nko\n"):
        assert heed("chat", run, *GREEDY, "--json") == 0
    again = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [found[0], found[5]] == again


def test_the_prompt_in_place_of_a_reply(run, tmp_path, capsys):
    with standard_input(f"ba\n{LISTED}\nko\n"):
        assert heed("chat", run, "--render", "--json") == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert found == [{"prompt": "ba <EOQ>"}, {"prompt": "ko\nba <EOQ> <EOQ>"}, {"prompt": "ko <EOQ>"}]
    assert heed("chat", run, "ba", "--system", "Be kind.", "--render") == 0
    assert capsys.readouterr().out == "Be kind.\nba <EOQ>\n"


def test_commands(talk, tmp_path):
    talk.command("/system Be kind.")
    reply = talk.reply("ba")
    assert talk.messages == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "ba"},
        reply.message,
    ]
    assert "2 turns" in talk.command(f"/save {tmp_path / 'talk.jsonl'}")
    assert "is there already" in talk.command(f"/save {tmp_path / 'talk.jsonl'}")
    assert json.loads((tmp_path / "talk.jsonl").read_text()) == {"messages": talk.messages}
    assert reply.content.strip()
    (tmp_path / "valid.jsonl").write_text((tmp_path / "talk.jsonl").read_text())
    (tmp_path / "talk.jsonl").rename(tmp_path / "train.jsonl")
    assert read_conversations(tmp_path).train == [tuple(talk.messages)]
    assert "give a name" in talk.command("/save")
    assert "not saved" in talk.command(f"/save {tmp_path}/no/such/talk.jsonl")
    talk.command("/reset")
    assert talk.messages == [{"role": "system", "content": "Be kind."}]
    assert talk.command("/system") == "the system says: Be kind."
    assert talk.command("/help") == HELP
    assert talk.command("/quit") == GONE
    assert "/help" in talk.command("/what")


def test_of_two_that_are_saved_by_one_name_one_is_refused(talk, tmp_path, monkeypatch):
    both, written = threading.Barrier(2), files.write_output

    def slowly(path, data):
        with suppress(threading.BrokenBarrierError):
            both.wait(1)
        return written(path, data)

    monkeypatch.setattr(files, "write_output", slowly)
    with ThreadPoolExecutor(2) as pool:
        told = [*pool.map(talk.command, [f"/save {tmp_path / 'talk.jsonl'}"] * 2)]
    assert sum("is there already" in line for line in told) == 1


def test_an_answer_that_is_stopped_is_kept_as_far_as_it_came(talk):
    pieces = talk.answer("ba")
    begun = next(pieces)
    pieces.close()
    assert talk.messages == [{"role": "user", "content": "ba"}, {"role": "assistant", "content": begun}]


class Screen:
    """What a program shows at a terminal, read up to where a text ends."""

    def __init__(self, terminal: int) -> None:
        self.terminal, self.rest = terminal, ""

    def shows(self, text: str, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while text not in self.rest:
            if not select.select([self.terminal], [], [], max(0.0, end - time.monotonic()))[0]:
                return False
            self.rest += os.read(self.terminal, 4096).decode()
        return True

    def until(self, text: str) -> str:
        assert self.shows(text, 60), self.rest
        found, _, self.rest = self.rest.partition(text)
        return found + text


def test_at_a_terminal(run, tmp_path):
    """Ctrl-C at an answer that would take long stops it, and the next is asked for."""
    screen, terminal = pty.openpty()
    shown = Screen(screen)
    root = Path(heedful.__file__).parent.parent
    words = [sys.executable, "-m", "heedful", "chat", str(run), "--tokens", "50", "--temperature", "2"]
    environment = {**os.environ, "PYTHONPATH": str(root), "OMP_NUM_THREADS": "1", "TERM": "dumb"}
    process = subprocess.Popen(
        words,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env=environment,
        cwd=tmp_path,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # tests in the background ignore it
    )
    try:
        assert "/help" in shown.until("> ")
        os.write(screen, b"/help\n")
        assert "/reset" in shown.until("leave, as Ctrl-D does")
        shown.until("\n> ")
        os.write(screen, b"ba\n")
        shown.until("\n> ")  # which is there when the answer is complete
        # At the prompt: it stays. A signal in the moment before it reads is told with the next one.
        assert any(process.send_signal(signal.SIGINT) or shown.shows("leaves", 2) for _ in range(20))
        os.write(screen, b"/quit\n")
        shown.until(GONE)
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()
        os.close(screen)
        os.close(terminal)


def test_ctrl_c_stops_an_answer_and_not_the_program(talk, monkeypatch, capsys):
    from heedful.tasks.chat import cli as chat_cli

    lines = iter(["ba", "ko"])

    def line(prompt):
        try:
            return next(lines)
        except StopIteration:
            raise EOFError from None

    plain, stopped = talk.model.chat_stream, []

    def interrupted(*given, **more):
        pieces = plain(*given, **more)
        yield next(pieces)
        if not stopped:
            stopped.append(True)
            raise KeyboardInterrupt
        return (yield from pieces)

    monkeypatch.setattr(talk.model, "chat_stream", interrupted)
    monkeypatch.setattr("builtins.input", line)
    chat_cli._at_a_terminal(talk)
    assert "... stopped" in capsys.readouterr().out
    assert [one["content"] for one in talk.turns if one["role"] == "user"] == ["ba", "ko"]


def test_what_could_steer_a_terminal_is_shown():
    from heedful.tasks.chat.cli import shown

    assert shown("a\x1b[2Jb\tc\nd\u009b") == "a\\x1b[2Jb\tc\nd\\x9b"
