"""Examples in a file or a folder, and their split into training, validation and tests."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Generic, TypeVar

from heedful.data.documents import kind_of, part_of
from heedful.errors import InputError, MissingError

E = TypeVar("E")
SHARE, MOST = 10, 2000  # where nothing is given to validate on, one in so many is held out, and no more


@dataclass(frozen=True)
class Parts(Generic[E]):
    """What a model is trained and measured on. `notes` are lines that a person should see."""

    train: list[E]
    valid: list[E]
    tests: dict[str, list[E]]
    name: str
    files: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()


def read_parts(
    path: str | Path, read: Callable[[Path], list[E]], *, kinds: Sequence[str], key: Callable[[E], str]
) -> Parts[E]:
    """Reads a file, or the files of these `kinds` in a folder: named train*, valid* (val, dev) and test*, or as those
    of Universal Dependencies; any may be gzipped.

    Without a part to validate on, a tenth of the training examples is held out, by a hash of their `key`: all of one
    key together. Raises InputError or MissingError.
    """
    path = Path(path)
    found = _files(path, kinds) if path.is_dir() else [path]
    parts: dict[str, list[E]] = {"train": [], "valid": []}
    tests = {}
    for file in found:
        part = part_of(file) if path.is_dir() else "train"
        if part == "test":
            tests[file.name.split(".")[0]] = read(file)
        else:
            parts[part] += read(file)
    train, valid = parts["train"], parts["valid"]
    if not train:
        raise MissingError("no training file", where=str(path), fix=f"add train{kinds[0]}")
    if valid:
        return Parts(train, valid, tests, str(path), tuple(found))
    train, valid = held_out(train, key, path)
    note = f"{path}: {len(valid):,} examples held out for validation"
    return Parts(train, valid, tests, str(path), tuple(found), (note,))


def read_tests(path: str | Path, read: Callable[[Path], list[E]], *, kinds: Sequence[str]) -> dict[str, list[E]]:
    """The examples of a file, or of a folder's test files, by name. Raises InputError or MissingError."""
    path = Path(path)
    if not path.is_dir():
        return {path.name: read(path)}
    tests = {file.name.split(".")[0]: read(file) for file in _files(path, kinds) if part_of(file) == "test"}
    if not tests:
        raise MissingError("no file named test*", where=str(path), fix="give a file")
    return tests


def _files(folder: Path, kinds: Sequence[str]) -> list[Path]:
    return sorted(file for file in folder.iterdir() if file.is_file() and kind_of(file) in kinds)


def held_out(examples: list[E], key: Callable[[E], str], path: Path) -> tuple[list[E], list[E]]:
    """What stays, and what is held out: the smallest hashes, so that each machine chooses the same."""
    keys = sorted({key(one) for one in examples}, key=lambda text: blake2b(text.encode(), digest_size=8).digest())
    if len(keys) < 2:
        what = "one text alone, expected at least two, as some are held out"
        raise InputError(what, where=str(path), fix="give more, or a file to validate on")
    held = set(keys[: min(MOST, max(1, len(keys) // SHARE))])
    return [one for one in examples if key(one) not in held], [one for one in examples if key(one) in held]
