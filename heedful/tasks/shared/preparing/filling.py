"""Shared by all that is prepared: a folder is filled piece by piece, by one process or by several, each of which may be
stopped at any time; the manifest, with the sha256 of every file, is written last, and makes the folder ready."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from heedful.data.large import PACKS
from heedful.data.lines import packed_size
from heedful.data.tokenizer import Tokenizer
from heedful.errors import InputError, MissingError, StorageError, counted
from heedful.run.prepared import AGAIN, LOCK, MANIFEST, WORK, WorkPart
from heedful.run.task import Each
from heedful.run.tokenizers import need_no_other, read_tokenizers
from heedful.store import files
from heedful.store.lock import held_alone, one_after_another, with_others

READERS = 16  # on a cluster, at most
LEAST_SPACE, PER_MINUTE = 1 << 22, 2e8  # bytes on the disk for any data, and of text that are prepared in a minute

Shown = Callable[[str, float], object]  # is told what is done, and how much of it, of 1


def no_news(what: str, share: float) -> None:
    """Shows no progress."""


class BasePreparation(ABC):
    """What is prepared; `refused`: why it cannot be, "" where it can."""

    @property
    @abstractmethod
    def spread(self) -> float:
        """Bytes on the disk for each byte of text, until it is done."""

    @property
    @abstractmethod
    def refused(self) -> str: ...

    @property
    @abstractmethod
    def name(self) -> str:
        """That of the data."""

    @property
    @abstractmethod
    def learnt(self) -> Iterable[Path]:
        """The files that are learnt from."""

    @abstractmethod
    def filling(self, out: Path, shown: Shown) -> "Filling":
        """Fills the folder `out`. Raises InputError or MissingError."""

    @property
    def size(self) -> int:
        """The bytes of the training texts; about, where they are packed."""
        sizes = ((path, packed_size(path)) for path in self.learnt)
        return sum(size if path.is_file() and path.suffix.lower() != ".gz" else PACKS * size for path, size in sizes)

    @property
    def disk(self) -> int:
        """The bytes that preparing takes on the disk, about; at its end a third of them remain."""
        return round(self.spread * self.size) + LEAST_SPACE

    def told(self, out: Path) -> str:
        """What it will take, in a line."""
        minutes = max(1, round(self.size / PER_MINUTE))
        size, disk = self.size / 1e6, self.disk / 1e6
        takes = f"about {counted(minutes, 'minute')} of a processor, and {disk:,.0f} MB of disk until it is done"
        return f"{size:,.0f} MB of text: prepared once, in {out}, which takes {takes}"

    def into(self, out: Path, shown: Shown = no_news, *, part: WorkPart | None = None, each: Each = map) -> list[int]:
        """Fills the folder `out`, or continues to fill it. A `part` does its share, and all that no other has begun of
        what comes before that; the last one finishes the folder. Returns the parts that are missing. `each` may have
        the pieces of the work done by others that see the same files. Raises InputError,
        MissingError or StorageError."""
        if self.refused:
            raise InputError(self.refused, where=self.name, fix="give heed train the texts as they are")
        files.make_folder(out)
        filling = self.filling(out, shown)
        filling.need_room(self.disk)
        with with_others(out / LOCK) if part else held_alone(out / LOCK):
            missing = filling.fill(part, each)
        if not missing:
            with one_after_another(out / LOCK):  # once the other parts have left
                filling.finish()
        return missing


class Filling(ABC):
    """Fills the folder `out`. `inputs` are the files, and whether each is learnt from; `given` is all that the result
    depends on besides their contents."""

    def __init__(self, out: Path, shown: Shown, inputs: Mapping[Path, bool], given: Sequence[Any]) -> None:
        self.out, self.shown = out, shown
        self.manifest, self.begun = out / MANIFEST, out / WORK / "begun.json"
        self.inputs = [
            {"path": str(path), "sha256": files.size_and_sha256(path)[1], "learnt": learnt}
            for path, learnt in inputs.items()
        ]
        depends = [given[0], [file["sha256"] for file in self.inputs], *given[1:]]
        self.key = sha256(json.dumps(depends, sort_keys=True).encode()).hexdigest()

    def need_room(self, disk: int) -> None:
        """Raises InputError or StorageError where the folder cannot be filled."""
        # In this order: the manifest is there before the other goes.
        if not self.begun.is_file() and not self.manifest.is_file():
            need_no_other(self.out)
            files.need_space(self.out, disk, fix="free some, or choose another folder")

    def fill(self, part: WorkPart | None, each: Each) -> list[int]:
        """Does all work but the last, unless it is done; of a part the numbers of those that are missing."""
        return [] if self.manifest.is_file() else self.work(part or WorkPart(1, 1), each)

    @abstractmethod
    def work(self, part: WorkPart, each: Each) -> list[int]:
        """The same, in a folder that is not ready."""

    @abstractmethod
    def last(self) -> Mapping[str, Any]:
        """Writes what is left, and returns what the manifest says of it."""

    def begin(self, facts: Mapping[str, Any]) -> None:
        """Claims the folder, with these facts, unless it has been begun for others."""
        files.make_folder(self.begun.parent)
        with one_after_another(self.begun.with_suffix(".lock")):
            if not self.begun.is_file():
                files.write_json(self.begun, {"key": self.key, **facts})
            self._need_same(files.read_json(self.begun)["key"])

    def done(self, what: str, pieces: Iterable[object], count: int) -> None:
        """Waits for pieces of work, and shows how many of them are done."""
        self.shown(what, 0.0)
        for number, _ in enumerate(pieces, 1):
            self.shown(what, number / count)

    def finish(self) -> None:
        """Writes what is held out, and the manifest, unless that is done; then removes the pieces."""
        if not self.manifest.is_file():
            files.write_json(self.manifest, {"key": self.key, "inputs": self.inputs, **self.last()})
        self._need_same(files.read_json(self.manifest)["key"])
        self._clean()

    def _need_same(self, key: object) -> None:
        if key != self.key:
            what = "holds other data, or the same that were prepared with other options"
            raise InputError(what, where=str(self.out), fix="choose another folder, or remove this one")

    def _clean(self) -> None:
        """Removes the pieces, and what was left by those who were stopped; last the lock, for whoever comes then takes
        another."""
        left = [path for path in files.children(self.out) if path.name.startswith(files.TEMPORARY)]
        for path in sorted(left, key=lambda path: path.name == LOCK):
            files.remove_tree(path)


def need_seen(out: Path) -> None:
    """Raises MissingError where what is prepared in a folder is not there: on another machine."""
    if not (out / WORK).is_dir():
        fix = "all machines must have the same file system, under the same path"
        raise MissingError("what is prepared there is not seen here", where=str(out), fix=fix)


def tokenizers_in(folder: Path) -> tuple[Tokenizer, Tokenizer]:
    """Those of what is prepared. Raises StorageError."""
    tokenizers = read_tokenizers(folder)
    if tokenizers is None:
        raise StorageError("the tokenizer is not there", where=str(folder), fix=AGAIN)
    return tokenizers


def written(folder: Path, contents: Iterable[tuple[str, bytes]]) -> dict[str, Any]:
    """Writes files into a folder, and returns the facts about each."""
    return {name: {"size": len(data), "sha256": files.write_bytes(folder / name, data)} for name, data in contents}


def facts_of(folder: Path, names: Iterable[str]) -> dict[str, Any]:
    """The facts about files that are there."""
    return {name: dict(zip(("size", "sha256"), files.size_and_sha256(folder / name), strict=True)) for name in names}
