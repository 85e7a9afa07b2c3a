"""Running text to learn to go on with: documents, and their split into training, validation and tests."""

import re
from dataclasses import dataclass
from pathlib import Path

from heedful.data.text import json_line, read_lines
from heedful.errors import InputError, MissingError

SPLITS = re.compile(r"(?P<train>train)|(?P<valid>validation|valid|val|dev)|(?P<test>test)")
SHARE = 10  # where nothing is given to validate on, one part in so many is held out


@dataclass(frozen=True)
class Documents:
    """Texts of a language model. `notes` are lines that a person should see."""

    train: list[str]
    valid: list[str]
    tests: dict[str, list[str]]
    name: str
    files: tuple[Path, ...]
    notes: tuple[str, ...]


def read_documents(path: str | Path) -> Documents:
    """A .txt file is one document, a .jsonl file one a line (its "text"); either may be .gz; a folder holds several.

    In a folder, files named train*, valid* (val, dev) and test* are the parts. Without a part to validate on, the last
    tenth is held out: of the documents, or of the text where there is but one. Raises InputError or MissingError.
    """
    path = Path(path)
    if not path.is_dir():
        documents = _read(path)
        train, valid = _held_out(documents)
        note = f"{path}: the last tenth is held out for validation"
        return Documents(train, valid, {}, str(path), (path,), (note,))
    files = sorted(file for file in path.iterdir() if file.is_file() and kind_of(file) in (".txt", ".jsonl"))
    if not files:
        raise MissingError("no .txt and no .jsonl file", where=str(path), fix="give a folder with text in it")
    parts: dict[str, list[str]] = {"train": [], "valid": []}
    tests: dict[str, list[str]] = {}
    for file in files:
        part = part_of(file)
        if part == "test":
            tests[file.name.split(".")[0]] = _read(file)
        else:
            parts[part] += _read(file)
    if not parts["train"]:
        raise InputError("no text to train on", where=str(path), fix="add train.txt")
    notes: tuple[str, ...] = ()
    if not parts["valid"]:
        parts["train"], parts["valid"] = _held_out(parts["train"])
        notes = (f"{path}: the last tenth is held out for validation",)
    return Documents(parts["train"], parts["valid"], tests, str(path), tuple(files), notes)


def read_text(path: str | Path) -> list[str]:
    """The documents of one file, or of a folder's test files, or of all of it where none is so called."""
    path = Path(path)
    if not path.is_dir():
        return _read(path)
    found = read_documents(path)
    return [text for texts in found.tests.values() for text in texts] or [*found.train, *found.valid]


def kind_of(file: Path) -> str:
    """The suffix of what a file holds: that of "train.jsonl.gz" is ".jsonl"."""
    return Path(file.name.removesuffix(".gz")).suffix


def part_of(file: Path) -> str:
    """ "train", "valid" or "test", by the first word of its name: "test_2016" is a test, and "testament" is not. In
    Universal Dependencies it is the word after "-ud-"."""
    return named_part(file.name) or "train"


def named_part(name: str) -> str | None:
    """What `part_of` says, or None of a name that does not say it."""
    found = SPLITS.fullmatch(re.split(r"[^a-z]", name.lower().rpartition("-ud-")[2])[0])
    return found.lastgroup if found else None


def _read(path: Path) -> list[str]:
    lines = read_lines(path)
    if kind_of(path) != ".jsonl":
        return ["\n".join(lines) + "\n"]
    return [_text_of(line, f"{path}:{number}") for number, line in enumerate(lines, 1) if line.strip()]


def _text_of(line: str, where: str) -> str:
    row = json_line(line, where=where)
    if not isinstance(row, dict) or not isinstance(row.get("text"), str):
        raise InputError('no "text" that is a string', where=where, fix='write {"text": "..."} on each line')
    return row["text"]


def _held_out(documents: list[str]) -> tuple[list[str], list[str]]:
    if len(documents) >= 2 * SHARE:
        kept = len(documents) - len(documents) // SHARE
        return documents[:kept], documents[kept:]
    whole = "\n".join(documents)
    cut = len(whole) - max(1, len(whole) // SHARE)
    if cut < 1:
        raise InputError("too little text to hold any out", fix="give more text")
    return [whole[:cut]], [whole[cut:]]
