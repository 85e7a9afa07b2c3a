"""Folders that `datasets.save_to_disk` of Hugging Face writes: a split of Arrow files, or a folder for each split."""

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

from heedful.data.lines import json_line, read_bytes
from heedful.data.text.columns import Columns, Rows
from heedful.data.text.formats.parquet import damaged, records
from heedful.data.text.object_rows import object_rows
from heedful.errors import InputError, MissingError, pip_install

STATE, SPLITS = "state.json", "dataset_dict.json"


def splits_of(folder: Path) -> dict[str, Path]:
    """Returns the folders of the splits by their names; empty for other folders. Raises InputError."""
    if (folder / STATE).is_file():
        return {"train": folder}
    if not (folder / SPLITS).is_file():
        return {}
    return {str(name): folder / str(name) for name in _listed(folder / SPLITS, "splits")}


def _listed(path: Path, key: str) -> list[object]:
    """Returns the list under a key of a JSON object in a file. Raises InputError or MissingError."""
    found = json_line(read_bytes(path).decode(errors="replace"), where=str(path))
    listed = found.get(key) if isinstance(found, dict) else None
    if not isinstance(listed, list):
        raise InputError(f"no list {key!r}", where=str(path), fix="save the data set again")
    return listed


def read_split(folder: Path, source: str, target: str) -> tuple[Rows, Columns]:
    """Reads the rows of two columns, or of two keys under "translation". Raises InputError or MissingError."""
    if find_spec("pyarrow") is None:
        fix = pip_install("datasets")
        raise MissingError("reading Arrow needs the package pyarrow", where=str(folder), fix=fix)
    rows = _rows([folder / Path(_name(each)).name for each in _listed(folder / STATE, "_data_files")])
    first = next(rows, None)
    if first is None:
        raise InputError("no rows", where=str(folder), fix="give a data set of pairs")
    items = ((f"{folder}: row {number}", row) for number, row in enumerate(chain([first], rows), 1))
    return object_rows(items, source, target, described="a saved data set, columns")


def _rows(paths: Sequence[Path]) -> Iterator[dict[str, Any]]:
    import pyarrow

    fix = "save the data set again"
    for path in paths:
        try:
            with pyarrow.memory_map(str(path)) as held:
                yield from records(pyarrow.ipc.open_stream(held), path, fix)
        except (pyarrow.ArrowException, OSError) as error:
            raise damaged(path, error, fix) from None


def _name(entry: object) -> str:
    return str(entry.get("filename") if isinstance(entry, dict) else entry)
