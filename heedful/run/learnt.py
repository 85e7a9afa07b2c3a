"""What a run has learnt from: its scores on that say little of what it can do with others."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from heedful.data.parts import part_of
from heedful.errors import StorageError
from heedful.run.resume import plain_recipe
from heedful.store import files


def learnt_from(run: Path | None, paths: Iterable[Path]) -> list[Path]:
    """Those of the files that hold what the run was trained on, or the runs that it began with, by their content,
    whatever they are called now; not what it was validated and tested on, where these had files of their own. None of
    a run that does not say it."""
    said = [one for facts in _facts(run) for one in facts.get("files", ())]
    known = {one["sha256"] for one in said if one.get("learnt", part_of(Path(one["path"])) == "train")}
    return [path for path in paths if known and path.is_file() and _sha256(path) in known]


def has_held_out(run: Path | None, fingerprint: str) -> bool:
    """Whether what has this fingerprint is what the run, or one that it began with, held out of its data."""
    return any(facts.get("held_out") == fingerprint for facts in _facts(run))


def warning(path: Path, run: object) -> str:
    """What is told of scores on a file that the run has learnt from."""
    return f"{path}: {run} has learnt from it: its scores on other data may be much lower"


def _facts(run: Path | None) -> Iterator[dict[str, Any]]:
    """What data.json says of the data and of each that was mixed in; and of those of the runs that it began with, as
    long as they are there."""
    seen = list[Path]()
    while run is not None and run not in seen and (run / "data.json").is_file():
        seen.append(run)
        facts: Any = files.read_json(run / "data.json")
        if isinstance(facts, dict):
            yield facts
            yield from facts.get("mix", ())
        start = plain_recipe(run).get("start_from")
        run = Path(start) if start else None


def scored_whole(path: Path) -> list[Path]:
    """The file that is named, or those of a folder of which none is called a part to validate on or a test."""
    found = [file for file in path.iterdir() if file.is_file()] if path.is_dir() else [path]
    return [] if path.is_dir() and any(part_of(file) != "train" for file in found) else found


def _sha256(path: Path) -> str | None:
    try:
        return files.size_and_sha256(path)[1]
    except StorageError:  # no plain file
        return None
