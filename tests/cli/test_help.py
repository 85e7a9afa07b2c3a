"""`heed --help` and `heed --version`."""

import json
import re

import pytest

import heedful
from commands import heed
from heedful import cli
from heedful.models.counts import PARAMETERS
from heedful.tasks import trained


def told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    monkeypatch.setenv("COLUMNS", "80")
    assert heed(*words) == 0
    return capsys.readouterr().out


def test_help_has_every_command_under_a_heading_and_cuts_none_off(monkeypatch, capsys):
    shown = told(monkeypatch, capsys, "--help")
    headings = re.findall(r"^([A-Z][a-z ]+):$", shown, re.MULTILINE)
    assert headings == ["Options", "Train", "Measure", "Use", "Learn from people", "Look inside", "Serve", "Hand on"]
    named = re.findall(r"^  ([a-z-]+) {2,}\S", shown[shown.index("Train:") :], re.MULTILINE)
    assert sorted(named) == sorted(command.name for command in cli.COMMANDS)
    assert named[:7] == ["demo", "train", "data", "plan", "back-translate", "distil", "prune"]
    assert "..." not in shown[shown.index("Train:") :]
    assert max(map(len, shown.splitlines())) <= 80


def test_version(monkeypatch, capsys):
    assert told(monkeypatch, capsys, "--version") == f"heedful {heedful.__version__}\n"


@pytest.mark.parametrize("command", sorted(command.name for command in cli.COMMANDS))
def test_each_example_stands_on_a_line_of_its_own(monkeypatch, capsys, command):
    assert heed(command, "--help") == 0
    assert not re.search(r"\S +Example:", capsys.readouterr().out)


def test_presets_are_told_by_task_with_their_sizes(monkeypatch, capsys):
    monkeypatch.setattr("heedful.models.make_model", lambda *words: pytest.fail("no model is made"))
    by_task = json.loads(told(monkeypatch, capsys, "info", "--json"))
    assert by_task.keys() == trained().keys()
    assert {name: size for own in by_task.values() for name, size in own.items()} == PARAMETERS
    shown = told(monkeypatch, capsys, "info")
    listed = re.findall(r"^  (\S+) +([0-9,]+) parameters$", shown, re.MULTILINE)
    assert {name: int(size.replace(",", "")) for name, size in listed} == PARAMETERS
    assert len(listed) == len(PARAMETERS)
    headed = re.findall(r"^([a-z-]+(?:, [a-z-]+)*):", shown, re.MULTILINE)
    assert sorted(task for tasks in headed for task in tasks.split(", ")) == sorted(by_task)
    assert max(map(len, shown.splitlines())) <= 80
