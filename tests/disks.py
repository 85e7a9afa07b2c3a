"""Failing disks: `files.disk` is replaced by one, so that the N-th operation fails, whoever requests it."""

import errno
import os
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from heedful.errors import StorageError
from heedful.store import files

FAULTS = [(kind, for_good) for kind in ("ENOSPC", "EIO", "EACCES", "short", "torn") for for_good in (False, True)] + [
    ("kill", True)
]


class Killed(BaseException):
    """The process ends here: nothing that follows is executed."""


class Faulty(files.Disk):
    """A disk whose operation number `at` fails, or all from that one on; flushing is left out, because it is slow."""

    def __init__(self, kind: str = "", at: int = 0, *, for_good: bool = False) -> None:
        self.kind, self.at, self.for_good = kind, at, for_good
        self.count = 0

    def _due(self) -> bool:
        self.count += 1
        return self.count == self.at or (self.count > self.at > 0 and (self.for_good or self.kind == "kill"))

    def _step(self) -> None:
        if self._due() and self.kind != "short":
            self._fail()

    def _fail(self) -> None:
        if self.kind == "kill":
            raise Killed
        number = getattr(errno, "EIO" if self.kind == "torn" else self.kind)
        raise OSError(number, os.strerror(number))

    def open(self, path: Path, flags: int, mode: int = 0o666) -> int:
        self._step()
        return super().open(path, flags, mode)

    def write(self, descriptor: int, data: files.Bytes) -> int:
        due = self._due()
        if not due:
            return super().write(descriptor, data)
        if self.kind in ("short", "torn", "kill") and (self.count == self.at or self.kind == "short"):
            super().write(descriptor, data[: max(1, len(data) // 2)])
        if self.kind != "short":
            self._fail()
        return max(1, len(data) // 2)

    def truncate(self, descriptor: int, size: int) -> None:
        self._step()
        super().truncate(descriptor, size)

    def fsync(self, descriptor: int) -> None:
        self._step()

    def close(self, descriptor: int) -> None:
        super().close(descriptor)
        self._step()

    def rename(self, source: Path, target: Path) -> None:
        self._step()
        super().rename(source, target)

    def unlink(self, path: Path) -> None:
        self._step()
        super().unlink(path)

    def mkdir(self, path: Path) -> None:
        self._step()
        super().mkdir(path)

    def rmdir(self, path: Path) -> None:
        self._step()
        super().rmdir(path)


class PowerCut(Faulty):
    """Records what has reached the disk for certain: content by flushing the file, names by flushing the folder.

    No file is ever really removed, so that no inode number is reused.
    """

    def __init__(self, root: Path, grave: Path, at: int) -> None:
        super().__init__("kill", at)
        self.root, self.grave = root, grave
        self.content: dict[int, bytes] = {}
        self.names: dict[int, dict[str, int]] = {}
        for path in [root, *root.rglob("*")]:
            self._flushed(path)

    def _flushed(self, path: Path) -> None:
        inode = path.stat().st_ino
        if path.is_dir():
            self.names[inode] = {child.name: child.lstat().st_ino for child in path.iterdir()}
        else:
            self.content[inode] = path.read_bytes()

    def fsync(self, descriptor: int) -> None:
        self._step()
        self._flushed(Path(os.readlink(f"/proc/self/fd/{descriptor}")))

    def unlink(self, path: Path) -> None:
        self._step()
        os.rename(path, self.grave / f"{self.count}")

    def rmdir(self, path: Path) -> None:
        self._step()
        assert not any(path.iterdir())
        os.rename(path, self.grave / f"{self.count}")

    def remains(self, target: Path, *, names_survive: bool) -> None:
        """Builds in `target` the worst result of a power cut. `names_survive`: renames survive, but unflushed bytes do
        not."""
        places = [self.root, *self.root.rglob("*"), *self.grave.rglob("*")]
        folders = {path.lstat().st_ino: path for path in places if path.is_dir()}

        def build(inode: int, place: Path) -> None:
            if inode not in folders:
                place.write_bytes(self.content.get(inode, b""))
                return
            place.mkdir()
            children = self.names.get(inode, {})
            if names_survive:
                children = {child.name: child.lstat().st_ino for child in folders[inode].iterdir()}
            for name, child in children.items():
                build(child, place / name)

        build(self.root.stat().st_ino, target)


def same(left: dict[str, Tensor], right: dict[str, Tensor]) -> bool:
    return left.keys() == right.keys() and all(
        left[name].dtype == right[name].dtype and torch.equal(left[name], right[name]) for name in left
    )


def damages(folder: Path, older: Path, flips: int) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yields every single-file fault of `folder`: a name that includes the file's, and a function that causes it."""
    chance = random.Random(flips)
    for path in sorted(folder.iterdir()):
        data = path.read_bytes()
        yield f"{path.name} removed", path.unlink
        yield f"{path.name} emptied", partial(path.write_bytes, b"")
        cut = chance.randrange(1, len(data))
        yield f"{path.name} cut", partial(path.write_bytes, data[:cut])
        yield f"{path.name} longer", partial(path.write_bytes, data + b" ")
        stale = (older / path.name).read_bytes()
        yield f"{path.name} swapped", partial(path.write_bytes, stale)
        for _ in range(flips):
            flipped = bytearray(data)
            flipped[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            yield f"{path.name} flipped", partial(path.write_bytes, flipped)


Act = Callable[[Path], object]
Use = Callable[[files.Disk], None]  # puts a disk in the place of the real one


def faulted(act: Act, template: Path, use: Use, *, every: int = 1) -> Iterator[tuple[Path, bool]]:
    """Copies of the folder `template` on which `act` met a fault at one of its file operations, for each kind of fault
    and each `every`-th operation; and whether it was done in spite of it."""
    counting = Faulty()
    use(counting)
    act(shutil.copytree(template, template.with_name("counting")))
    for start, (kind, for_good) in enumerate(FAULTS):
        for at in range(1 + start % every, counting.count + 1, every):
            folder = shutil.copytree(template, template.with_name(f"{kind}-{for_good}-{at}"))
            use(Faulty(kind, at, for_good=for_good))
            done = False
            try:
                act(folder)
                done = True
            except (StorageError, Killed):
                pass
            use(Faulty())
            yield folder, done


def power_cuts(
    act: Act, template: Path, use: Use, *, names_survive: bool, first: int = 1, every: int = 1
) -> Iterator[tuple[int, Path, bool]]:
    """What is left of the folder `template` where the power went at an operation of `act`, until it is done: the number
    of the operation, the folder, and whether it was done."""
    at, done = first - every, False
    while not done:
        at += every
        folder, grave, left = (template.with_name(f"{at}-{part}") for part in ("run", "grave", "left"))
        shutil.copytree(template, folder)
        grave.mkdir()
        trial = PowerCut(folder, grave, at)
        use(trial)
        try:
            act(folder)
            done = True
        except Killed:
            pass
        trial.remains(left, names_survive=names_survive)
        use(Faulty())
        yield at, left, done


def same_folder_whatever_stops(
    make: Callable[[Path], object],
    opens: Callable[[Path], object],
    at: Path,
    use: Use,
    kind: str,
    *,
    for_good: bool = True,
    every: int = 1,
) -> int:
    """Has `make` fill folders below `at`, each stopped at another file operation and then begun again. Fails unless
    what calls itself ready `opens`, and all folders end alike. Returns how often it was stopped."""
    counting = Faulty()
    use(counting)
    make(at / "whole")
    whole, count = _contents(at / "whole"), 0
    for operation in range(1, counting.count + 1, every):
        out = at / f"{operation}"
        use(Faulty(kind, operation, for_good=for_good))
        with suppress(StorageError, Killed):
            make(out)
        use(Faulty())
        if (out / "manifest.json").is_file():
            opens(out)
        make(out)
        assert _contents(out) == whole, operation
        shutil.rmtree(out)
        count += 1
    return count


def _contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}
