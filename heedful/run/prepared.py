"""A folder of prepared data, which `heedful.tasks.shared.preparing` makes.

manifest.json                     counts, notes, and the size and sha256 of every other file
tokenizer.json                    or one for each side
0000.ids 0000.lengths 0001.ids    token ids of each pair, source then target, and the tokens of both sides
sample.jsonl                      some of the pairs as texts, which stand in for all
valid.jsonl test-0.jsonl          what is held out, as texts: a source and its references on each line, or a document
learnt.hashes                     as in a run's folder

Running text has two files in place of shards: text.ids has all documents, each behind the token that begins one, which
also ends the last; text.begins says where each begins. So have conversations, without such a token, and text.learnt, a
byte for each id: whether it is learnt.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from heedful.errors import InputError, StorageError
from heedful.store import files

PREPARED = "data"  # the folder of prepared data in that of a run
TEXT_IDS, TEXT_BEGINS, TEXT_LEARNT = "text.ids", "text.begins", "text.learnt"
MANIFEST, SAMPLE, VALID = "manifest.json", "sample.jsonl", "valid.jsonl"
WORK = files.TEMPORARY + "parts"  # the folder of what is being prepared, gone at the end
LOCK = files.TEMPORARY + "lock"  # held by who prepares; no folder is locked, which NFS does not do
FORMAT = 1
AGAIN = "remove the folder, and prepare the data again"


class WorkPart(NamedTuple):
    """A process of `of` that prepare together, counted from 1."""

    number: int
    of: int


def read_part(text: str) -> WorkPart:
    """Reads "2/8". Raises InputError."""
    match = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
    if match is None:
        fix = "--part 2/8 is the second of eight"
        raise InputError("not two numbers with a / between them", where=f"--part {text}", fix=fix)
    part = WorkPart(int(match[1]), int(match[2]))
    if not 1 <= part.number <= part.of:
        of = max(1, part.of)
        raise InputError("no such part", where=f"--part {text}", fix=f"they are --part 1/{of} to --part {of}/{of}")
    return part


def shard_files(number: int) -> tuple[str, str]:
    """The names of the files of a shard: the ids, and the numbers of tokens."""
    return f"{number:04}.ids", f"{number:04}.lengths"


def is_prepared(path: object) -> bool:
    """Whether a path of data is a folder of prepared data."""
    return isinstance(path, str | Path) and (Path(path) / MANIFEST).is_file() and (Path(path) / SAMPLE).is_file()


def prepared_for(path: str | Sequence[str], run: Path | None) -> Path | None:
    """The folder of prepared data: the recipe's `path`, or what was prepared for the run; None if there is none."""
    given = path if isinstance(path, str) else path[0] if len(path) == 1 else ""
    return next((Path(folder) for folder in (given, run and run / PREPARED) if folder and is_prepared(folder)), None)


def read_manifest(folder: Path) -> dict[str, Any]:
    """Raises MissingError or StorageError."""
    manifest = files.read_json(folder / MANIFEST)
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        what = "prepared by another version of heedful, or no prepared data"
        raise StorageError(what, where=str(folder / MANIFEST), fix=AGAIN)
    return manifest


def need_same_inputs(folder: Path) -> None:
    """Raises InputError where a file has changed since it was prepared."""
    for facts in read_manifest(folder)["inputs"]:
        path = Path(facts["path"])
        if path.is_file() and files.size_and_sha256(path)[1] != facts["sha256"]:
            fix = f"bring the old file back, or choose another --out: {folder} has what it was"
            raise InputError("changed since it was prepared", where=str(path), fix=fix)


def begun_in(out: Path) -> bool:
    """Whether a folder is being filled, or filled already."""
    if is_prepared(out) or (out / WORK).is_dir():
        return True
    return out.is_dir() and all(path.name.startswith(files.TEMPORARY) for path in files.children(out))
