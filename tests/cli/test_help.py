"""`heed --help` and `heed --version`."""

import re
import sys

import pytest

import heedful
from heedful import cli


def told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "argv", ["heed", *words])
    with pytest.raises(SystemExit) as left:
        cli.main()
    assert left.value.code == 0
    return capsys.readouterr().out


def test_help_has_every_command_under_a_heading_and_cuts_none_off(monkeypatch, capsys):
    shown = told(monkeypatch, capsys, "--help")
    headings = re.findall(r"^([A-Z][a-z ]+):$", shown, re.MULTILINE)
    assert headings == ["Options", "Train", "Measure", "Use", "Look inside", "Hand on"]
    named = re.findall(r"^  ([a-z]+) {2,}\S", shown[shown.index("Train:") :], re.MULTILINE)
    assert sorted(named) == sorted(command.name for command in cli.COMMANDS)
    assert named[:3] == ["demo", "train", "eval"]
    assert "..." not in shown[shown.index("Train:") :]
    assert max(map(len, shown.splitlines())) <= 80


def test_version(monkeypatch, capsys):
    assert told(monkeypatch, capsys, "--version") == f"heedful {heedful.__version__}\n"
