"""Commands that are left: by Ctrl-C, or because what they write is not read any more."""

import pytest

from commands import heed
from heedful import cli

AGAIN = "interrupted; the same command continues\n"
CALLS = {
    "train": ["--data", "pairs.tsv"],
    "demo": [],
    "distil": ["teacher", "--data", "pairs.tsv", "--out", "run"],
    "loop": ["run", "--prompts", "prompts.txt", "--ranker", "rank.py:rank", "--out", "better"],
    "back-translate": ["run", "texts.txt", "--out", "made.tsv"],
}


def ended_by(error: type[BaseException], monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    """The exit code of a command in whose midst this is raised."""

    def call(**_: object) -> None:
        raise error

    monkeypatch.setattr(cli.heed.commands[words[0]], "callback", call)
    return heed(*words)


@pytest.mark.parametrize("verb", CALLS)
def test_what_continues_says_so(verb, monkeypatch, capsys):
    assert ended_by(KeyboardInterrupt, monkeypatch, verb, *CALLS[verb]) == 130
    assert capsys.readouterr() == ("", AGAIN)


def test_other_commands_end_quietly(monkeypatch, capsys):
    assert ended_by(KeyboardInterrupt, monkeypatch, "info", "run") == 130
    assert capsys.readouterr() == ("", "")
