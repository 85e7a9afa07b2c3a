"""Which files a run has learnt from: its scores on these say little of what it can do with others."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from heedful.data.parts import part_of
from heedful.errors import StorageError
from heedful.store import files


def learnt_from(run: Path | None, paths: Iterable[Path]) -> list[Path]:
    """Those of the files that hold what the run was trained on, by their content, whatever they are called now; not
    what it was validated and tested on, where these had files of their own. None of a run that does not say it."""
    facts: Any = {}
    if run is not None and (run / "data.json").is_file():
        facts = files.read_json(run / "data.json")
    said = facts.get("files", ()) if isinstance(facts, dict) else ()
    known = {one["sha256"] for one in said if part_of(Path(one["path"])) == "train"}
    return [path for path in paths if known and path.is_file() and _sha256(path) in known]


def scored_whole(path: Path) -> list[Path]:
    """The file that is named, or those of a folder of which none is called a part to validate on or a test."""
    found = [file for file in path.iterdir() if file.is_file()] if path.is_dir() else [path]
    return [] if path.is_dir() and any(part_of(file) != "train" for file in found) else found


def _sha256(path: Path) -> str | None:
    try:
        return files.size_and_sha256(path)[1]
    except StorageError:  # no plain file
        return None
