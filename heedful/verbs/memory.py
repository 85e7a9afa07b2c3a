"""Writes data in memory into files for the readers of `--data`: so all data are reported, split and checked in the same
way, and a training can be continued."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from os.path import isfile  # unlike Path's, False for what is too long for a name
from pathlib import Path
from typing import Any, TypeGuard

from heedful.data.parts import Parts
from heedful.data.tables import FILE_COLUMNS
from heedful.errors import InputError
from heedful.run.tokenizers import need_no_other
from heedful.store import files
from heedful.store.checkpoint import steps_of

# A text; a pair of texts, or a text and its label; a sentence's words and their labels; or an object as a line of a
# .jsonl file has it, with the keys that docs/inputs.md tells.
Row = str | tuple[str, str] | tuple[Sequence[str], Sequence[str]] | Mapping[str, Any]
Rows = Sequence[Row] | Mapping[str, Sequence[Row]]  # training data; or by part: "train", and perhaps "valid" and "test"
Table = Iterable[Any]  # what `plain` turns into rows
# Paths, or what is in memory.
Data = str | Path | Sequence[str | Path] | Rows | Table | Mapping[str, Table] | Parts[Any]
PARTS = ("train", "valid", "test")
# The methods that make rows of a table: of polars; of `datasets`, and of columns; of pandas.
TABLES = {"to_dicts": {}, "to_list": {}, "to_dict": {"orient": "records"}}
LONGEST_NAME = 255  # characters of a file name
WORDS = ("words", "tokens")  # keys of a sentence with tags, in objects
PAIR, LABELLED = ("source", "target"), ("text", "label")


def plain(data: object) -> object:
    """The same data, with tables and columns of pandas, polars and `datasets`, dicts of columns, and other iterables
    turned into lists of rows. Raises InputError."""
    if isinstance(data, Mapping):
        made = {name: plain(rows) for name, rows in data.items()}
        return _rows_of(made) if _are_columns(made) else made
    if data is None or (isinstance(data, str | Path | Sequence | Parts) and not isinstance(data, bytes)):
        return data
    for name, words in TABLES.items():
        if callable(method := getattr(data, name, None)):
            return method(**words)
    if isinstance(data, Iterable) and not isinstance(data, bytes):
        return [*data]
    what = f"expected paths, rows or parts, found {str(data)[:60]!r}"
    raise InputError(what, where="data", fix="docs/python.md tells what may be in memory")


def _are_columns(data: Mapping[Any, object]) -> TypeGuard[Mapping[str, Sequence[object]]]:
    """Whether the dict has columns: lists with other names than parts, and not all of pairs or objects."""
    lists = [column for column in data.values() if isinstance(column, list | tuple)]
    if len(lists) < len(data) or any(str(name).partition("_")[0] in PARTS for name in data):
        return False
    return not all(isinstance(column[0], tuple | Mapping) for column in lists if column)


def _rows_of(columns: Mapping[str, Sequence[object]]) -> list[dict[str, object]]:
    """The rows of columns. Raises InputError for columns of different lengths."""
    lengths = {name: len(column) for name, column in columns.items()}
    if len({*lengths.values()}) > 1:
        what = f"columns of different lengths: {', '.join(f'{name} {length:,}' for name, length in lengths.items())}"
        raise InputError(what, where="data", fix=f"give a value for each row; parts are named {', '.join(PARTS)}")
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def in_memory(data: object) -> TypeGuard[Rows]:
    """Whether these are rows, and not paths."""
    if isinstance(data, Mapping):
        return True
    return isinstance(data, list | tuple) and any(not isinstance(row, str | Path) for row in data)


def path_and_corpus(
    data: object, out: Path, sides: tuple[str | None, str | None], *, pairs: bool
) -> tuple[str | list[str] | None, Parts[Any] | None]:
    """The value for `data.path`, or the data that are used as they are. Rows are written into the folder `out`.data,
    with the languages as the keys of pairs; rows that the run in `out` was trained on must stay the same. Raises
    InputError."""
    data = plain(data)
    if data is None or isinstance(data, Parts):
        return None, data
    if isinstance(data, str | Path):
        return path_in(data, "train"), None
    if not in_memory(data):
        paths = [str(path) for path in data] if isinstance(data, Sequence) else []
        if not pairs:
            raise no_single_path(paths, "train")
        return paths, None
    source, target = sides
    names = (source or PAIR[0], target or PAIR[1]) if pairs else LABELLED
    if not (out / "recipe.yaml").is_file():
        need_no_other(out)
    folder = Path(f"{files.with_proper_name(out)}.data")
    return str(write_rows(data, folder, names, learnt_by=out if steps_of(out) else None)), None


def path_in(data: str | Path, part: str) -> str:
    """The path as a string. Raises InputError for a text."""
    name = str(data)
    if "\n" in name or max(map(len, name.split("/"))) > LONGEST_NAME:
        what = f"a text of {len(name):,} characters, {name[:30]!r} ..., where a path is expected"
        fix = f'give texts that are in memory as the part that they are: {{"{part}": [text]}}'
        raise InputError(what, where="data", fix=fix)
    return name


def no_single_path(paths: Sequence[str], part: str) -> InputError:
    """The error for a list of strings where one path is expected."""
    if not paths:
        return InputError("no rows", where="data", fix="give at least one")
    what = f"a list of {len(paths):,} strings, which would be paths, and one is read"
    fix = f'give one path, alone; texts that are in memory as the part that they are: {{"{part}": [...]}}'
    return InputError(what, where="data", fix=fix)


def write_rows(
    data: Sequence[object] | Mapping[str, Sequence[object]],
    folder: Path,
    names: tuple[str, str],
    *,
    only: str = "train",
    learnt_by: Path | None = None,
) -> Path:
    """Writes each part into a file of the folder, and returns the folder. `names` are the keys of a pair; rows without
    parts become the part `only`. Raises InputError for unknown kinds of rows, where the folder holds anything else, and
    where it holds other rows that the run `learnt_by` was trained on."""
    parts = data if isinstance(data, Mapping) else {only: data}
    if not parts:
        raise InputError("no rows", where="data", fix="give at least one")
    written: dict[Path, bytes] = {}
    for part, rows in parts.items():
        if part.partition("_")[0] not in PARTS:
            raise InputError(f"no part is called {part!r}", where="data", fix=f"name them {', '.join(PARTS)}")
        if isinstance(rows, str | Path):
            fix = "give a list of them; the path of a file or a folder stands alone, in place of the parts"
            raise InputError(f"{str(rows)[:60]!r} where rows are expected", where=f"data: {part}", fix=fix)
        if not rows:
            raise InputError("no rows", where=f"data: {part}", fix="give at least one")
        tagged = _is_tagged(rows[0])
        lines = _tagged(part, rows) if tagged else _objects(part, rows, names)
        text = "".join(f"{line}\n" for line in lines)
        try:
            written[folder / f"{part}{'.tsv' if tagged else '.jsonl'}"] = text.encode()
        except UnicodeEncodeError as error:
            what = f"{text[error.start]!r} is half a character"
            raise InputError(what, where=f"data: {part} {text.count(chr(10), 0, error.start) + 1}") from None
    for path in files.children(folder):
        if path not in written and not path.name.startswith(files.TEMPORARY):
            raise InputError(
                "other data, which would be read too", where=str(path), fix="remove it, or rename the folder"
            )
    files.make_folder(folder)
    for path, content in written.items():
        if learnt_by is not None and path.is_file() and path.read_bytes() != content:
            what = "the training data is not the data that this run was begun with"
            raise InputError(what, where=str(learnt_by), fix=f"choose another out, or give what is in {folder}")
    for path, content in written.items():
        files.write_bytes(path, content)
    return folder


def _is_tagged(row: object) -> TypeGuard[tuple[Sequence[str], Sequence[str]]]:
    """Whether the row is words with their labels."""
    return (
        isinstance(row, tuple)
        and len(row) == 2
        and all(isinstance(side, Sized) and not isinstance(side, str) for side in row)
    )


def _tagged(part: str, rows: Sequence[object]) -> Iterator[str]:
    """Lines with a word and its label, and an empty line after each sentence."""
    for number, row in enumerate(rows):
        if not _is_tagged(row) or len(row[0]) != len(row[1]):
            raise _refused(part, number, row, "expected as many labels as words")
        yield from (f"{word}\t{label}" for word, label in zip(*row, strict=True))
        yield ""


def _objects(part: str, rows: Sequence[object], names: tuple[str, str]) -> Iterator[str]:
    for number, row in enumerate(rows):
        if isinstance(row, str):
            made: Mapping[str, Any] = {"text": row}
        elif isinstance(row, tuple) and len(row) == 2 and all(isinstance(side, str) for side in row):
            made = dict(zip(names, row, strict=True))
        elif isinstance(row, Mapping):
            if any(isinstance(row.get(name), Sized) and not isinstance(row[name], str) for name in WORDS):
                raise _refused(part, number, row, "expected a sentence's words and their labels as a tuple")
            made = {key: _placed(value) if key in FILE_COLUMNS else value for key, value in row.items()}
        else:
            raise _refused(part, number, row, "expected a text, a pair of texts or an object")
        try:
            yield json.dumps(made, ensure_ascii=False, allow_nan=False, default=_numbers)
        except (TypeError, ValueError) as error:
            raise _refused(part, number, row, str(error)) from None


def _placed(value: Any) -> Any:
    """The absolute path, if the value is a file: relative names in a table count from the table's folder."""
    if isinstance(value, Path) or (isinstance(value, str) and isfile(value)):
        return str(Path(value).absolute())
    return value


def _numbers(value: Any) -> object:
    """Numbers and arrays of numpy and torch as plain numbers and lists. Raises TypeError for anything else."""
    if not callable(listed := getattr(value, "tolist", None)):
        raise TypeError(f"{type(value).__name__} is not JSON serializable")
    return listed()


def _refused(part: str, number: int, row: object, what: str) -> InputError:
    fix = "two texts are a tuple, and so are a sentence's words and their labels; of two lists: zip(sources, targets)"
    return InputError(f"{what}, found {str(row)[:60]!r}", where=f"data: {part} {number + 1}", fix=fix)
