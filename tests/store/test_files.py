"""The door to the disk: whole files or none, one clear line for each failure, strict reading."""

import errno
import hashlib
import os
from pathlib import Path

import pytest

from heedful.errors import InputError, MissingError, StorageError
from heedful.run.folder import need_empty
from heedful.store import files


class Recorder(files.Disk):
    """Notes the operations, and makes the one called `failing` raise `number` (a write first writes one half)."""

    def __init__(self, failing: str = "", number: int = 0, *, half: bool = False) -> None:
        self.calls: list[str] = []
        self.failing, self.number, self.half = failing, number, half

    def _note(self, name: str) -> None:
        self.calls.append(name)
        if name == self.failing:
            raise OSError(self.number, os.strerror(self.number))

    def open(self, path: Path, flags: int, mode: int = 0o666) -> int:
        self._note("open")
        return super().open(path, flags, mode)

    def write(self, descriptor: int, data: files.Bytes) -> int:
        if self.half or self.failing == "write":
            written = super().write(descriptor, data[: len(data) // 2 or 1])
            self._note("write")
            return written
        self._note("write")
        return super().write(descriptor, data)

    def fsync(self, descriptor: int) -> None:
        self._note("fsync")
        super().fsync(descriptor)

    def rename(self, source: Path, target: Path) -> None:
        self._note("rename")
        super().rename(source, target)


def test_written_bytes_come_back_with_their_sha256_and_nothing_else_stays(tmp_path: Path) -> None:
    path = tmp_path / "a"
    data = os.urandom(100_000)
    assert files.write_bytes(path, data[:7], b"", memoryview(data)[7:]) == hashlib.sha256(data).hexdigest()
    assert path.read_bytes() == data
    assert files.size_and_sha256(path) == (len(data), hashlib.sha256(data).hexdigest())
    files.write_text(path, "zwölf\n")
    assert path.read_text(encoding="utf-8") == "zwölf\n"
    files.write_json(path, {"b": [1, 0.5], "a": "ü"})
    assert path.read_text(encoding="utf-8") == '{\n  "a": "ü",\n  "b": [\n    1,\n    0.5\n  ]\n}\n'
    assert files.read_json(path) == {"a": "ü", "b": [1, 0.5]}
    assert os.listdir(tmp_path) == ["a"]


def test_a_file_is_flushed_before_its_rename_and_the_folder_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder()
    monkeypatch.setattr(files, "disk", recorder)
    files.write_bytes(tmp_path / "a", b"abc")
    assert recorder.calls == ["open", "write", "fsync", "rename", "open", "fsync"]


@pytest.mark.parametrize("failing", ["open", "write", "fsync", "rename"])
@pytest.mark.parametrize(
    ("number", "what", "fix"),
    [
        (errno.ENOSPC, "disk full: No space left on device", "free 3 MB and run the same command again"),
        (errno.EACCES, "Permission denied", "give this user access to {folder}, or choose another folder"),
        (errno.EIO, "Input/output error", "check the disk and run the same command again"),
    ],
)
def test_a_failed_write_leaves_the_old_file_and_says_what_to_do(
    failing: str, number: int, what: str, fix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    files.write_bytes(path, b"old")
    monkeypatch.setattr(files, "disk", Recorder(failing, number))
    with pytest.raises(StorageError) as caught:
        files.write_bytes(path, b"x" * 2_500_000)
    assert caught.value.what == what
    assert "\n" not in str(caught.value)
    if failing == "rename" and number == errno.ENOSPC:
        fix = "free 1 MB and run the same command again"  # the bytes are down, only the name is missing
    assert caught.value.fix == fix.format(folder=tmp_path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


def test_short_writes_are_carried_on_and_a_disk_that_takes_nothing_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "disk", Recorder(half=True))
    files.write_bytes(tmp_path / "a", b"0123456789" * 99)
    assert (tmp_path / "a").read_bytes() == b"0123456789" * 99
    monkeypatch.setattr(files.disk, "write", lambda descriptor, data: 0)
    with pytest.raises(StorageError, match="takes no more bytes"):
        files.write_bytes(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"0123456789" * 99


def test_a_folder_that_cannot_be_flushed_is_an_error_except_where_the_file_system_has_no_such_thing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "disk", Recorder("fsync", errno.EINVAL))
    files.fsync_folder(tmp_path)
    monkeypatch.setattr(files, "disk", Recorder("fsync", errno.EIO))
    with pytest.raises(StorageError):
        files.fsync_folder(tmp_path)


def test_lines_are_added_and_a_torn_one_is_left_out_then_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    files.append_line(path, '{"step": 1}')
    files.append_line(path, "ü" * 5000)
    assert files.read_whole_lines(path) == ['{"step": 1}', "ü" * 5000]
    for torn in (b"x", b"y" * 4096, b"z" * 9999, "ü".encode()[:1]):
        with path.open("ab") as file:
            file.write(torn)
        assert files.read_whole_lines(path) == ['{"step": 1}', "ü" * 5000]
    files.append_line(path, "")
    assert files.read_whole_lines(path) == ['{"step": 1}', "ü" * 5000, ""]
    path.write_bytes(b"never a line end")
    files.append_line(path, "first")
    assert files.read_whole_lines(path) == ["first"]
    with pytest.raises(ValueError, match="one line"):
        files.append_line(path, "a\nb")
    path.write_bytes(b"fine\n\xff\n")
    with pytest.raises(StorageError, match=r"metrics.jsonl:2: not UTF-8"):
        files.read_whole_lines(path)


@pytest.mark.parametrize("failing", ["open", "write"])
def test_a_line_that_fails_is_not_there_at_all(failing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "metrics.jsonl"
    files.append_line(path, "one")
    with monkeypatch.context() as patch:
        patch.setattr(files, "disk", Recorder(failing, errno.ENOSPC))
        with pytest.raises(StorageError, match="disk full"):
            files.append_line(path, "two")
    assert path.read_bytes() == b"one\n"


def test_folders_are_made_renamed_and_removed_without_following_links(tmp_path: Path) -> None:
    files.make_folder(tmp_path / "a/b/c")
    files.make_folder(tmp_path / "a/b/c")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/kept").write_text("kept")
    (tmp_path / "a/b/link").symlink_to(tmp_path / "outside")
    (tmp_path / "a/b/dangling").symlink_to("nowhere")
    files.rename_folder(tmp_path / "a", tmp_path / "z")
    files.remove_tree(tmp_path / "z")
    files.remove_tree(tmp_path / "z")
    assert sorted(os.listdir(tmp_path)) == ["outside"]
    assert (tmp_path / "outside/kept").read_text() == "kept"
    with pytest.raises(StorageError, match="is a file, not a folder"):
        files.make_folder(tmp_path / "outside/kept")
    with pytest.raises(StorageError):
        files.make_folder(tmp_path / "outside/kept/below")


def test_only_plain_files_of_the_expected_length_are_read(tmp_path: Path) -> None:
    with pytest.raises(MissingError):
        files.read_bytes(tmp_path / "none", limit=9)
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "."):
        with pytest.raises(StorageError, match="not a plain file"):
            files.read_bytes(tmp_path / name, limit=9)
        with pytest.raises(StorageError, match="not a plain file"):
            files.size_and_sha256(tmp_path / name)
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(StorageError, match="symbolic links"):
        files.read_bytes(tmp_path / "loop", limit=9)
    (tmp_path / "ten").write_bytes(b"0123456789")
    assert files.read_bytes(tmp_path / "ten", limit=10) == b"0123456789"
    assert files.read_bytes(tmp_path / "ten", limit=1 << 60) == b"0123456789"  # what is there is read, not the limit
    with pytest.raises(StorageError, match="more than"):
        files.read_bytes(tmp_path / "ten", limit=9)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (b"", "Expecting value"),
        (b"{", "property name"),
        (b"{} {}", "Extra data"),
        (b'{"a": {"b": 1, "c": 2, "b": 1}}', "'b' appears twice"),
        (b"[NaN]", "NaN is not a finite number"),
        (b"[-Infinity]", "-Infinity is not a finite number"),
        (b"[1e999]", "1e999 is not a finite number"),
        (b"[" + b"9" * 5000 + b"]", "digits"),
        (b'"\\ud800"', "surrogates not allowed"),
        (b'{"\\udfff\\ud800": 1}', "surrogates not allowed"),
        (b'"\xff"', "can't decode"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b"\x80\x04\x95\x00", "can't decode"),
    ],
)
def test_json_that_is_not_strict_is_refused_in_one_line(text: bytes, what: str) -> None:
    with pytest.raises(StorageError) as caught:
        files.parse_json(text, where="task.json")
    assert str(caught.value).startswith("task.json: not valid JSON: ")
    assert what in str(caught.value)
    assert "\n" not in str(caught.value)


def test_json_that_is_strict_is_read(tmp_path: Path) -> None:
    value: dict[str, object] = {"emoji": "😀", "null": None, "list": [1, -0.5, 1e300, True], "": {}}
    assert files.parse_json(files.json_bytes(value, where="a"), where="a") == value
    assert files.parse_json(b'"\\ud83d\\ude00"', where="a") == "😀"
    (tmp_path / "a.json").write_bytes(b" " * 100)
    with pytest.raises(StorageError, match="more than"):
        files.read_json(tmp_path / "a.json", limit=99)


@pytest.mark.parametrize("value", [float("nan"), [float("inf")], {"a": "\ud800"}])
def test_what_json_cannot_hold_is_not_written(value: object, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be written as JSON"):
        files.write_json(tmp_path / "a.json", value)
    assert os.listdir(tmp_path) == []


def test_a_pipe_and_a_device_are_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As root `--out /dev/null` would put a file in its place for all."""
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr(files, "DEVICES", tmp_path / "dev")
    (tmp_path / "dev").mkdir()
    (tmp_path / "out.txt").write_text("before")
    (tmp_path / "dev" / "stdout").symlink_to(tmp_path / "out.txt")
    for path in (tmp_path / "pipe", tmp_path / "dev" / "stdout"):
        with pytest.raises(StorageError, match="is a device or a pipe"):
            files.write_bytes(path, b"after")
    assert (tmp_path / "pipe").is_fifo()
    assert (tmp_path / "dev" / "stdout").is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dev", "out.txt", "pipe"]


def test_a_folder_that_cannot_be_written_into_is_told_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = [lambda: files.need_output(tmp_path / "a.png"), lambda: need_empty(tmp_path / "new" / "run")]
    for call in calls:
        call()
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path)
    for call in calls:
        with pytest.raises(StorageError, match="cannot be written into") as caught:
            call()
        assert caught.value.where == str(tmp_path)


@pytest.mark.parametrize(
    ("name", "what"),
    [("a\0b", "a NUL in a name"), ("\udce9", "a name that is not UTF-8"), ("x" * 256, "a name of 256 bytes")],
)
def test_a_name_that_no_file_can_have_is_told_in_one_line(name: str, what: str, tmp_path: Path) -> None:
    for call in (
        lambda: files.need_output(tmp_path / name),
        lambda: files.need_output(tmp_path / "none" / name, makes_folder=True),
        lambda: files.need_access(tmp_path / "none" / name),
        lambda: need_empty(tmp_path / name),
        *([] if "x" in name else [lambda: files.need_folder(tmp_path / name)]),
        *([] if "x" in name else [lambda: files.read_bytes(tmp_path / name, limit=9)]),
    ):
        with pytest.raises((InputError, StorageError), match=what) as caught:
            call()
        assert str(caught.value).isprintable()


def test_what_is_replaced_keeps_its_mode_also_while_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes: list[int] = []

    class Watching(files.Disk):
        def write(self, descriptor: int, data: files.Bytes) -> int:
            modes.append(os.fstat(descriptor).st_mode & 0o777)
            return super().write(descriptor, data)

    monkeypatch.setattr(files, "disk", Watching())
    path = tmp_path / "a"
    path.write_text("before")
    for mode in (0o600, 0o640, 0o755):
        path.chmod(mode)
        files.write_bytes(path, b"after")
        assert path.stat().st_mode & 0o777 == mode
    assert modes == [0o600, 0o640, 0o755]


def test_a_link_is_followed_to_an_output_and_replaced_in_a_run(tmp_path: Path) -> None:
    for write in (files.write_output, files.write_bytes):
        (tmp_path / "outside").write_text("before")
        (tmp_path / "link").symlink_to("outside")
        write(tmp_path / "link", b"after")
        followed = write is files.write_output
        assert (tmp_path / "link").is_symlink() == followed
        assert (tmp_path / "outside").read_bytes() == (b"after" if followed else b"before")
        (tmp_path / "link").unlink()
