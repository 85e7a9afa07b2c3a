"""Which data a run was trained on: its scores on these say little about other data."""

from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from heedful.data.parts import part_of
from heedful.errors import StorageError
from heedful.run.recipe import plain_recipe
from heedful.store import files

LEARNT = "learnt.hashes"  # in a run's folder: sorted fingerprints of the examples that it was trained on
BYTES, MOST = 8, 1 << 20  # of a fingerprint, and the number of fingerprints
TOLD = "has learnt from"


def learnt_from(run: Path | None, paths: Iterable[Path]) -> list[Path]:
    """The files that the run, or the runs that it began with, were trained on. Compares contents, so a file may have
    been renamed. Files that were only validated or tested on do not count. Empty where the run does not record it."""
    said = [one for facts in _facts(run) for one in facts.get("files", ())]
    known = {one["sha256"] for one in said if one.get("learnt", part_of(Path(one["path"])) == "train")}
    return [path for path in paths if known and path.is_file() and _sha256(path) in known]


def has_held_out(run: Path | None, fingerprint: str) -> bool:
    """Whether the run, or one that it began with, held out the data with this fingerprint."""
    return any(facts.get("held_out") == fingerprint for facts in _facts(run))


def write_learnt(run: Path, examples: Iterable[str]) -> None:
    """Saves the fingerprints of the examples, but no text. Raises StorageError."""
    files.write_bytes(run / LEARNT, fingerprints_of(examples))


def fingerprints_of(examples: Iterable[str]) -> bytes:
    """The sorted fingerprints of the examples; of very many examples the smallest ones."""
    return b"".join(sorted({*map(_fingerprint, examples)})[:MOST])


def together(some: bytes, others: bytes) -> bytes:
    """The fingerprints of more examples, from those of two parts of them."""
    both = np.union1d(*(np.frombuffer(part, ">u8") for part in (some, others)))
    return both[:MOST].astype(">u8").tobytes()


def known_among(fingerprints: bytes, examples: Iterable[str]) -> int:
    """How many of the examples have one of these fingerprints."""
    known = np.frombuffer(fingerprints, ">u8")
    asked = np.frombuffer(b"".join(map(_fingerprint, examples)), ">u8")
    return int(np.isin(asked, known).sum())


def known_examples(run: Path | None, examples: Iterable[str]) -> tuple[int, int]:
    """How many of the examples the run, or the runs that it began with, were trained on; and for how many that is
    known."""
    kept = [path for one in _runs(run) if (path := one / LEARNT).is_file()]
    asked = [*map(_fingerprint, examples)] if kept else []
    learnt, told = set[bytes](), set[bytes]()
    for path in kept:
        data = files.read_bytes(path, limit=MOST * BYTES)
        known = {data[i : i + BYTES] for i in range(0, len(data), BYTES)}
        learnt |= known
        told.update(asked if len(known) < MOST else (one for one in asked if one <= data[-BYTES:]))
    return sum(one in learnt for one in asked), sum(one in told for one in asked)


def _fingerprint(example: str) -> bytes:
    return sha256(example.encode(errors="surrogatepass")).digest()[:BYTES]


def warning(path: Path, run: object) -> str:
    """The warning about scores on a file that the run was trained on."""
    return f"{path}: {run} {TOLD} it: its scores on other data may be much lower"


def _facts(run: Path | None) -> Iterator[dict[str, Any]]:
    """The facts of data.json, and those of each data set that was mixed in; then those of the runs that it began
    with."""
    for one in _runs(run):
        facts: Any = files.read_json(one / "data.json")
        if isinstance(facts, dict):
            yield facts
            yield from facts.get("mix", ())


def _runs(run: Path | None) -> Iterator[Path]:
    """The run, and those that it began with, as far as they still exist."""
    seen = list[Path]()
    while run is not None and run not in seen and (run / "data.json").is_file():
        seen.append(run)
        yield run
        start = plain_recipe(run).get("start_from")
        run = Path(start) if start else None


def scored_whole(path: Path) -> list[Path]:
    """The file, or the files of a folder in which none is named as a validation or test part."""
    found = [file for file in path.iterdir() if file.is_file()] if path.is_dir() else [path]
    return [] if path.is_dir() and any(part_of(file) != "train" for file in found) else found


def _sha256(path: Path) -> str | None:
    try:
        return files.size_and_sha256(path)[1]
    except StorageError:  # not a regular file
        return None
