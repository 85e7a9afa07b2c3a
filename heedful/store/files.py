"""The one door to the disk: every file that the project writes is written by these functions.

They stand on `Disk`, ten primitive operations, and look it up at each call. A test puts another `Disk` in
the place of `files.disk`, and so makes the N-th operation fail, whoever asked for it.

Three promises. A file at its final name is always whole: the bytes go to a temporary file beside it, which is
flushed to the disk and then renamed. It keeps the mode and the owner of the file that it replaces. And an `OSError`
becomes a `StorageError` of one line that says what to do. Temporary names begin with TEMPORARY; what a crash leaves
under such a name is garbage.

A file or folder that the user names is checked before the work that it is for (`need_output`, `need_access`), and a
file is then written by `write_output`.
"""

import difflib
import errno
import hashlib
import json
import math
import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from heedful.errors import InputError, MissingError, StorageError
from heedful.store.memory import memory_limit
from heedful.store.refusals import PICKLES

TEMPORARY = ".tmp-"
DEVICES = Path("/dev")  # nothing there is ever replaced by a file
CHUNK = 1 << 24
SHORT = 140  # bytes of a name that every file system can hold
SURROGATES = "[\ud800-\udfff]"  # what Python reads bytes of a name as that are not UTF-8
JSON_LIMIT = 1 << 25  # 32 MiB of hostile JSON already parse into 0.8 GB of Python objects

Bytes = bytes | memoryview


class Disk:
    """The operations that change what is on disk, one system call each."""

    def open(self, path: Path, flags: int, mode: int = 0o666) -> int:
        return os.open(path, flags | os.O_CLOEXEC, mode)

    def inherit(self, descriptor: int, replaced: os.stat_result) -> None:
        """Gives a file the owner, the group (each where this user may) and the mode of another."""
        for user, group in ((-1, replaced.st_gid), (replaced.st_uid, -1)):
            with suppress(PermissionError):
                os.fchown(descriptor, user, group)
        os.fchmod(descriptor, stat.S_IMODE(replaced.st_mode))

    def write(self, descriptor: int, data: Bytes) -> int:
        return os.write(descriptor, data)

    def truncate(self, descriptor: int, size: int) -> None:
        os.ftruncate(descriptor, size)

    def fsync(self, descriptor: int) -> None:
        os.fsync(descriptor)

    def close(self, descriptor: int) -> None:
        os.close(descriptor)

    def rename(self, source: Path, target: Path) -> None:
        os.rename(source, target)

    def unlink(self, path: Path) -> None:
        os.unlink(path)

    def mkdir(self, path: Path) -> None:
        os.mkdir(path)

    def rmdir(self, path: Path) -> None:
        os.rmdir(path)


disk = Disk()


@contextmanager
def storage_errors(path: Path, size: int = 0) -> Iterator[None]:
    """Turn an `OSError` in the block into a `StorageError` about `path`, which was to take `size` bytes."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            megabytes = max(1, math.ceil(size / 1e6))
            what = f"disk full: {reason}"
            fix = f"free {megabytes} MB and run the same command again"
        elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            what, fix = reason, f"give this user access to {path.parent}, or choose another folder"
        elif error.errno in (errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.ELOOP):
            what, fix = reason, "choose another name"
        else:
            what, fix = reason, "check the disk and run the same command again"
        raise StorageError(what, where=str(path), fix=fix) from error


def write_new(path: Path, *chunks: Bytes, needed: int = 0, replaced: os.stat_result | None = None) -> str:
    """Write `chunks` one after the other to `path` in place and flush them to the disk; returns their sha256.

    Only for a file that is not read before it is renamed; anywhere else, `write_bytes`. `needed` is how many
    bytes a full disk should be asked for, where this file is but one of many. `replaced`: the file that it will
    replace, whose mode and owner it gets.
    """
    digest = hashlib.sha256()
    total, flags = sum(len(chunk) for chunk in chunks), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    mode = 0o666 if replaced is None else 0o600
    with storage_errors(path, max(needed, total)), _opened(path, flags, mode) as descriptor:
        if replaced is not None:
            disk.inherit(descriptor, replaced)
        for chunk in chunks:
            for start in range(0, len(chunk), CHUNK):
                piece = memoryview(chunk)[start : start + CHUNK]
                digest.update(piece)
                _write_all(descriptor, piece)
        disk.fsync(descriptor)
    return digest.hexdigest()


def write_bytes(path: Path, *chunks: Bytes) -> str:
    """Replace `path`, which may be a link, by `chunks`, durably and in one instant; returns their sha256. Raises
    StorageError."""
    _refuse_devices(path)
    temporary = temporary_name(path, f"{os.getpid()}-")
    try:
        digest = write_new(temporary, *chunks, replaced=_file_at(path))
        with storage_errors(path):
            disk.rename(temporary, path)
        fsync_folder(path.parent)
    except BaseException:
        with suppress(OSError):
            disk.unlink(temporary)
        raise
    return digest


def write_output(path: Path, *chunks: Bytes) -> str:
    """`write_bytes` for a file that the user has named: where that is a link, the file behind it is replaced."""
    _refuse_devices(path)
    return write_bytes(Path(os.path.realpath(path)) if path.is_symlink() else path, *chunks)


def write_text(path: Path, text: str) -> str:
    """Replace `path` by `text` in UTF-8, as `write_bytes` does."""
    return write_bytes(path, text.encode())


def write_json(path: Path, value: object) -> str:
    """Replace `path` by `value` as JSON (keys sorted, indented), as `write_bytes` does."""
    return write_bytes(path, json_bytes(value, where=path))


def append_line(path: Path, line: str) -> None:
    """Add one line to `path` in one write; a torn line that a crash left at the end is cut off first.

    Not flushed to the disk: a power cut may take the last lines, a killed process loses none. One writer at a
    time.
    """
    if "\n" in line:
        raise ValueError(f"one line at a time: {line!r}")
    data = line.encode() + b"\n"
    with storage_errors(path, len(data)), _opened(path, os.O_RDWR | os.O_CREAT | os.O_APPEND) as descriptor:
        size = whole = os.fstat(descriptor).st_size
        while whole and os.pread(descriptor, 1, whole - 1) != b"\n":
            start = max(0, whole - 4096)
            whole = start + os.pread(descriptor, whole - start, start).rfind(b"\n") + 1
        if whole < size:
            disk.truncate(descriptor, whole)
        try:
            _write_all(descriptor, data)
        except OSError:
            with suppress(OSError):
                disk.truncate(descriptor, whole)
            raise


def append_bytes(path: Path, *chunks: Bytes) -> None:
    """Add the chunks to `path` and flush it to the disk. What a crash leaves half added, the caller cuts off."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
    with storage_errors(path, sum(map(len, chunks))), _opened(path, flags) as descriptor:
        for chunk in chunks:
            _write_all(descriptor, chunk)
        disk.fsync(descriptor)


def append_file(path: Path, other: Path) -> None:
    """Add the content of another file to `path`, piece by piece, as `append_bytes` does."""
    with storage_errors(other), other.open("rb") as file:
        while chunk := file.read(CHUNK):
            append_bytes(path, chunk)


def cut_off(path: Path, size: int) -> None:
    """Cut `path` down to so many bytes. Raises StorageError where it has fewer."""
    with storage_errors(path), _opened(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW) as descriptor:
        if (there := os.fstat(descriptor).st_size) < size:
            raise StorageError(f"{there:,} of {size:,} bytes are there", where=str(path), fix="remove the folder")
        disk.truncate(descriptor, size)


def need_space(folder: Path, size: int, *, fix: str) -> None:
    """Raises StorageError where so many bytes are not free on the disk of a folder."""
    with storage_errors(folder):
        free = shutil.disk_usage(folder).free
    if free < size:
        what = f"{size / 1e6:,.0f} MB will be needed here, {free / 1e6:,.0f} MB are free"
        raise StorageError(what, where=str(folder), fix=fix)


def make_folder(path: Path) -> None:
    """Make `path` and the folders above it, durably; one that is there already is fine."""
    if path.is_dir():
        return
    make_folder(path.parent)
    with storage_errors(path), suppress(FileExistsError):
        disk.mkdir(path)
    if not path.is_dir():
        raise StorageError("is a file, not a folder", where=str(path), fix="move it away or choose another folder")
    fsync_folder(path.parent)


def inherit_folder(path: Path, replaced: Path) -> None:
    """Give a folder the owner and the mode of the one that it will replace."""
    with storage_errors(path), _opened(path, os.O_RDONLY | os.O_DIRECTORY) as descriptor:
        disk.inherit(descriptor, replaced.stat())


def rename_folder(source: Path, target: Path) -> None:
    """Rename `source` to `target` beside it, durably; `target` must not be there."""
    with storage_errors(target):
        disk.rename(source, target)
    fsync_folder(target.parent)


def remove_tree(path: Path) -> None:
    """Remove the folder or file `path`, if it is there, and all in it; links are removed, not followed."""
    with storage_errors(path):
        if not os.path.lexists(path):
            return
        if path.is_symlink() or not path.is_dir():
            disk.unlink(path)
            return
        for child in path.iterdir():
            remove_tree(child)
        disk.rmdir(path)


def fsync_folder(path: Path) -> None:
    """Flush the names in folder `path` to the disk, without which a power cut may undo a rename."""
    with storage_errors(path), _opened(path, os.O_RDONLY | os.O_DIRECTORY) as descriptor:
        try:
            disk.fsync(descriptor)
        except OSError as error:
            if error.errno != errno.EINVAL:  # some network file systems cannot flush a folder
                raise


def fsync_file(path: Path) -> None:
    """Flush to the disk what another library wrote to `path`."""
    with storage_errors(path), _opened(path, os.O_RDONLY | os.O_NOFOLLOW) as descriptor:
        disk.fsync(descriptor)


def with_proper_name(path: Path) -> Path:
    """`path`, and the whole of it where it is "." or has a "..", which may lead out of a folder that is not there."""
    return path if path.name and ".." not in path.parts else path.resolve()


def is_folder(path: Path) -> bool:
    """Whether `path` is a folder. Raises OSError where that cannot be told, such as for a name that is too long, for
    which `Path.is_dir` of Python 3.14 returns False."""
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def need_folder(path: Path, *, fix: str = "") -> None:
    """Raises MissingError where there is no such folder, naming the nearest one beside it; InputError for a name that
    none can have."""
    _refuse_name(path)
    if not is_folder(path):
        beside: list[str] = []
        with suppress(OSError):
            beside = [own.name for own in path.parent.iterdir() if own.is_dir()]
        near = difflib.get_close_matches(path.name, beside, n=1, cutoff=0.75)
        fix = fix or (f"did you mean {path.parent / near[0]}?" if near else "check the path")
        if path.suffix in PICKLES and path.is_file():
            fix = "train on the same texts (docs/migration.md), or give the folder of a model of the Hub to heed import"
            raise MissingError("a pickle, and no run: heedful does not open it", where=str(path), fix=fix)
        raise MissingError("a file, and no folder" if path.is_file() else "no such folder", where=str(path), fix=fix)


def need_output(file: Path, *, makes_folder: bool = False) -> None:
    """Checks a file that the user has named, and that will be written later, after the work. Raises MissingError where
    its folder is not there, and will not be made then; InputError or StorageError where no such file can be written."""
    _refuse_name(file)
    _refuse_devices(file)
    if not makes_folder:
        need_folder(file.parent, fix="make it first, or change --out")
    need_access(Path(os.path.realpath(file)).parent)
    _refuse_long(file.parent, file.name)
    if os.path.isdir(file):
        raise StorageError("is a folder", where=str(file), fix="name a file")
    if os.path.exists(file) and not os.access(file, os.W_OK):
        raise StorageError("is there already, and write-protected", where=str(file), fix="choose another name")


def need_access(folder: Path) -> None:
    """Checks a folder that is there or will be made, and that will be written into. Raises InputError or
    StorageError."""
    _refuse_name(folder)
    there = next(path for path in (folder, *folder.absolute().parents) if os.path.lexists(path))
    if not os.path.isdir(there):
        raise StorageError("is not a folder", where=str(there), fix="choose another one")
    _refuse_long(there, *folder.parts)
    if not os.access(there, os.W_OK):
        fix = "give this user access to it, or choose another folder"
        raise StorageError("cannot be written into", where=str(there), fix=fix)


def temporary_name(path: Path, mark: str = "") -> Path:
    """The name beside `path` of what is to be renamed to it, as short as names must be."""
    name = f"{TEMPORARY}{mark}{path.name}"
    if len(os.fsencode(name)) > SHORT:
        name = f"{TEMPORARY}{mark}{hashlib.sha256(os.fsencode(path.name)).hexdigest()[:16]}"
    return path.with_name(name)


def _refuse_name(path: Path) -> None:
    """Raises InputError for a name that no file can have, or that cannot be told to others."""
    for wrong, what in (("\0", "a NUL in a name"), (SURROGATES, "a name that is not UTF-8")):
        if re.search(wrong, str(path)):
            shown = str(path).encode("ascii", "backslashreplace").decode()
            raise InputError(what, where=shown.replace("\0", "\\0"), fix="choose another name")


def _refuse_long(folder: Path, *names: str) -> None:
    """Raises StorageError for names that are too long for the disk on which the folder is, or will be made."""
    there = next(path for path in (folder, *folder.absolute().parents) if os.path.isdir(path))
    longest = os.pathconf(there, "PC_NAME_MAX")
    for name in names:
        if (size := len(os.fsencode(name))) > longest:
            what = f"a name of {size} bytes, at most {longest} can be written here"
            raise StorageError(what, where=name, fix="choose a shorter one")


def _refuse_devices(path: Path) -> None:
    if path.absolute().parent == DEVICES or (
        os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)
    ):
        raise StorageError("is a device or a pipe, and no file", where=str(path), fix="name a file")


def _file_at(path: Path) -> os.stat_result | None:
    """The plain file at `path`, no link, where there is one."""
    with storage_errors(path), suppress(FileNotFoundError):
        found = path.lstat()
        return found if stat.S_ISREG(found.st_mode) else None
    return None


def read_bytes(path: Path, *, limit: int) -> bytes:
    """The content of the plain file `path`, of at most `limit` bytes. Raises MissingError or StorageError."""
    with _plain_file(path) as descriptor:
        size = os.fstat(descriptor).st_size
        if size > limit:
            raise StorageError(
                f"{size / 1e6:.0f} MB, more than the {limit / 1e6:.0f} MB that can be read here",
                where=str(path),
                fix="check that it is the right file",
            )
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(size)


def size_and_sha256(path: Path) -> tuple[int, str]:
    """The length in bytes and the sha256 of the plain file `path`, read piece by piece."""
    with _plain_file(path) as descriptor, open(descriptor, "rb", closefd=False) as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return os.fstat(descriptor).st_size, digest


def read_json(path: Path, *, limit: int = JSON_LIMIT) -> Any:
    """The JSON value in `path`. Raises MissingError or StorageError."""
    return parse_json(read_bytes(path, limit=limit), where=path)


def read_whole_lines(path: Path) -> list[str]:
    """The whole lines of `path`, a torn last one left out. Raises MissingError, StorageError."""
    data = read_bytes(path, limit=memory_limit())
    whole = data[: data.rfind(b"\n") + 1]
    try:
        return whole.decode().split("\n")[:-1]
    except UnicodeDecodeError as error:
        line = f"{path}:{whole[: error.start].count(10) + 1}"
        raise StorageError("not UTF-8: the file is damaged", where=line, fix="remove this line") from error


def read_json_lines(path: Path) -> list[Any]:
    """The values of the complete lines of `path`; empty if there is no such file. Raises StorageError."""
    lines = read_whole_lines(path) if path.is_file() else []
    return [parse_json(line.encode(), where=path) for line in lines]


def json_bytes(value: object, *, where: Path | str) -> bytes:
    """`value` as JSON text, keys sorted and indented. Raises StorageError for NaN and infinity."""
    try:
        text = json.dumps(value, allow_nan=False, sort_keys=True, indent=2, ensure_ascii=False) + "\n"
        return text.encode()
    except ValueError as error:
        raise StorageError(
            f"cannot be written as JSON: {error}", where=str(where), fix="leave this value out"
        ) from error


def parse_json(data: bytes, *, where: Path | str) -> Any:
    """The value of the JSON text `data`, strictly: no doubled key, no NaN or infinity, no lone surrogate."""
    try:
        value = json.loads(data.decode(), object_pairs_hook=_unique, parse_constant=_finite, parse_float=_finite)
        if b"\\u" in data:
            json.dumps(value, ensure_ascii=False).encode()  # raises for a lone surrogate
    except (ValueError, RecursionError) as error:
        what = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise StorageError(
            f"not valid JSON: {what}", where=str(where), fix="get the file again from its source"
        ) from error
    return value


def refuse_other_than_files(path: Path) -> None:
    """Raises MissingError or StorageError where `path` is not a readable regular file."""
    with _plain_file(path):
        pass


@contextmanager
def _plain_file(path: Path) -> Iterator[int]:
    if "\0" in str(path):
        _refuse_name(path)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # opening a pipe must not wait
    except FileNotFoundError as error:
        _refuse_name(path)
        raise MissingError("no such file", where=str(path), fix="check the path") from error
    except OSError as error:
        raise StorageError(error.strerror or str(error), where=str(path), fix="make the file readable") from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise StorageError("not a plain file", where=str(path), fix="put the file itself in its place")
        with storage_errors(path):
            yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _opened(path: Path, flags: int, mode: int = 0o666) -> Iterator[int]:
    descriptor = disk.open(path, flags, mode)
    try:
        yield descriptor
    finally:
        disk.close(descriptor)


def _write_all(descriptor: int, data: Bytes) -> None:
    rest = memoryview(data)
    while rest:
        written = disk.write(descriptor, rest)
        if written == 0:
            raise OSError(errno.EIO, "the disk takes no more bytes")
        rest = rest[written:]


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for name, item in pairs:
        if name in value:
            raise ValueError(f"the key {name[:80]!r} appears twice")
        value[name] = item
    return value


def _finite(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise ValueError(f"{text[:80]} is not a finite number")
    return value


def children(folder: Path) -> list[Path]:
    """The content of a folder, sorted by name; empty if there is no such folder. Raises StorageError."""
    with storage_errors(folder):
        return sorted(folder.iterdir()) if folder.is_dir() else []
