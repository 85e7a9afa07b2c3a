"""Ctrl-C in the midst of writing: what is there is whole, and nothing is beside it."""

import os
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from heedful.errors import InputError
from heedful.run.folder import filled_then_renamed
from heedful.store import files

OPERATIONS = [name for name in vars(files.Disk) if not name.startswith("_")]


class CtrlC(files.Disk):
    """It comes when operation number `at` has been carried out."""

    def __init__(self, at: int) -> None:
        self.at, self.done = at, 0
        for name in OPERATIONS:
            setattr(self, name, partial(self._carry_out, getattr(self, name)))

    def _carry_out(self, operation: Callable[..., Any], *arguments: Any) -> Any:
        result = operation(*arguments)
        self.done += 1
        if self.done == self.at:
            raise KeyboardInterrupt
        return result


def at_every_operation(call: Callable[[], object], look: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls it again and again, each time with Ctrl-C one operation later, until it is not reached; and looks."""
    for at in count(1):
        monkeypatch.setattr(files, "disk", CtrlC(at))
        try:
            call()
            break
        except KeyboardInterrupt:
            monkeypatch.setattr(files, "disk", files.Disk())
            look()
    assert at > 3


def test_a_file_is_the_old_or_the_new_one(tmp_path, monkeypatch):
    def look() -> None:
        assert os.listdir(tmp_path) == ["a"]
        assert (tmp_path / "a").read_bytes() in (b"old", b"new")

    (tmp_path / "a").write_bytes(b"old")
    at_every_operation(lambda: files.write_bytes(tmp_path / "a", b"new"), look, monkeypatch)


def test_a_folder_is_there_whole_or_not_at_all(tmp_path, monkeypatch):
    out = tmp_path / "out"

    def fill() -> None:
        with filled_then_renamed(out) as growing:
            for name in ("a", "b"):
                files.write_bytes(growing / name, b"new")

    def look() -> None:
        assert {path.relative_to(tmp_path) for path in tmp_path.rglob("*")} in (set(), WHOLE)
        files.remove_tree(out)

    at_every_operation(fill, look, monkeypatch)


def test_two_commands_do_not_fill_one_folder(tmp_path):
    out = tmp_path / "out"
    with filled_then_renamed(out) as growing:
        files.write_bytes(growing / "a", b"first")
        with pytest.raises(InputError, match="another command is writing here"), filled_then_renamed(out):
            pass
        files.write_bytes(growing / "b", b"first")
    assert {path.relative_to(tmp_path) for path in tmp_path.rglob("*")} == WHOLE


@pytest.mark.parametrize("out", ["", ".", "none/.."])
def test_the_current_folder_is_not_replaced(out, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="is the current folder"), filled_then_renamed(Path(out)):
        pass
    assert os.listdir(tmp_path) == []


def test_a_folder_is_named_by_a_way_up_or_by_a_link(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to("empty")
    for out in (Path("out/none/.."), Path("link")):
        with filled_then_renamed(out) as growing:
            files.write_bytes(growing / "a", b"new")
        assert (out.resolve() / "a").read_bytes() == b"new"
    assert {path.name for path in tmp_path.iterdir()} == {"empty", "link", "out"}


def test_what_a_killed_command_has_left_is_removed_by_the_next(tmp_path):
    (tmp_path / ".tmp-out" / "deep").mkdir(parents=True)
    with filled_then_renamed(tmp_path / "out") as growing:
        assert os.listdir(growing) == []


WHOLE = {Path("out"), Path("out/a"), Path("out/b")}
