"""Reading parallel text: files in any common layout become a `Corpus`, or one line says what is wrong where.

Everything is read and checked before anything is trained. Texts are left as they stand in the file: only line
ends (LF or CRLF), a UTF-8 byte order mark, and pairs with an empty side go.
"""

import importlib
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from heedful.data.lines import (
    csv_cells,
    json_line,
    json_type,
    listed,
    names_in,
    read_lines,
    sanitise,
    tsv_cells,
    unreadable,
)
from heedful.data.parts import Parts, hold_out
from heedful.errors import InputError, MissingError

HELD_SHARE, HELD_MOST = 0.02, 2000  # of the pairs, for validation and again for test
VALID = ("valid", "val", "dev", "validation")
TABLES = ("tsv", "csv", "jsonl", "txt")  # txt is read as tsv


@dataclass(frozen=True)
class Pairs:
    """Sentence i of `source` translates to sentence i of `target`; `dropped` pairs had an empty side. `others` are the
    further references of each, where any has some."""

    source: list[str]
    target: list[str]
    name: str
    dropped: int = 0
    others: tuple[tuple[str, ...], ...] = ()

    def __len__(self) -> int:
        return len(self.source)

    @property
    def references(self) -> list[list[str]]:
        """All that each source may be translated to."""
        others = self.others or ((),) * len(self)
        return [[target, *more] for target, more in zip(self.target, others, strict=True)]

    def apart(self) -> "Pairs":
        """A pair for each reference."""
        pairs = [(source, one) for source, own in zip(self.source, self.references, strict=True) for one in own]
        return Pairs([source for source, _ in pairs], [target for _, target in pairs], self.name)

    def rows(self, indices: Iterable[int]) -> "Pairs":
        """The chosen pairs, in the given order."""
        chosen = list(indices)
        others = tuple(self.others[i] for i in chosen) if self.others else ()
        return Pairs([self.source[i] for i in chosen], [self.target[i] for i in chosen], self.name, others=others)


@dataclass(frozen=True)
class Corpus(Parts[Pairs]):
    """What a translator is trained and measured on, and its two languages."""

    source: str = field(kw_only=True)
    target: str = field(kw_only=True)


def read_parallel(
    path: str | Path, *, source: str | None = None, target: str | None = None, columns: tuple[int, int] | None = None
) -> Corpus:
    """Read the pairs in `path`, a folder, a file or `hf:NAME[:CONFIG]`; any file may end in `.gz`.

    - A folder with `train.SOURCE` and `train.TARGET`, or with `train.tsv` (`.csv`, `.jsonl`), and beside them
      `valid`, `val` or `dev` (the first there is) and any number of files whose names begin with `test`. With
      exactly two languages their names may be left out: the source is then the first in the alphabet.
    - A `.tsv` or `.csv` file with two columns, source first, or with more under a header: the first line is a
      header when it holds both names, `source` and `target` (case aside). `columns` names the two by number
      instead, counted from 1, and then no line is a header.
    - A `.jsonl` file of objects with the keys `source` and `target`, or with those under `translation`. A source may be
      a list of sentences, which are one text, and a target one of several references.

    Where there is no validation text, about 2 % of the training pairs (at least 1, at most 2000) are held
    out, and as many for a test if there is none either. A hash of the lower-cased source decides: all
    translations of one sentence stay on one side, and every machine chooses the same.
    Raises InputError or MissingError.
    """
    if source is not None and source == target:
        raise InputError(f"source and target are both {source!r}", fix="name two different languages")
    if columns and (min(columns) < 1 or columns[0] == columns[1]):
        raise InputError(f"columns {columns}, expected two different numbers from 1", fix="give 1 and 2")
    if str(path).startswith("hf:"):
        return _read_hub(str(path), source or "source", target or "target")
    path = Path(path)
    try:
        if stat.S_ISDIR(path.stat().st_mode):
            return _read_folder(path, source, target, columns)
    except OSError as error:
        raise unreadable(path, error) from None
    source, target = source or "source", target or "target"
    return _corpus({"train": _read_table(path, source, target, columns)}, source, target, [path])


def read_pairs(source_file: str | Path, target_file: str | Path) -> Pairs:
    """Two files whose lines i translate each other. Raises InputError where one of them ends early."""
    source, target = read_lines(source_file), read_lines(target_file)
    if len(source) != len(target):
        (n, short), (m, long) = sorted([(len(source), str(source_file)), (len(target), str(target_file))])
        raise InputError(
            f"the last line, but {long} has {m:,} lines, expected as many",
            where=f"{short}:{n}",
            fix="line i of both files must be the same sentence; where one is missing, leave its line empty",
        )
    return _pairs(str(source_file), zip(source, target, strict=True))


def _pairs(name: str, rows: Iterable[tuple[str, ...]]) -> Pairs:
    """Keep the rows, a source and its references, with text on both sides, and count the others."""
    read = list(rows)
    kept = [row for row in read if row[0].strip() and row[1].strip()]
    if not kept:
        raise InputError("every pair has an empty side", where=name, fix="give text on both sides")
    others = tuple(row[2:] for row in kept)
    dropped = len(read) - len(kept)
    return Pairs([row[0] for row in kept], [row[1] for row in kept], name, dropped, others if any(others) else ())


def _read_folder(folder: Path, source: str | None, target: str | None, columns: tuple[int, int] | None) -> Corpus:
    files: dict[tuple[str, str], Path] = {}
    for name in sorted(os.listdir(folder)):  # "train.en" comes before "train.en.gz", and is taken first
        stem, _, suffix = name.removesuffix(".gz").rpartition(".")
        files.setdefault((stem, suffix), folder / name)
    stems = sorted({stem for stem, _ in files if stem in VALID or stem.startswith("test")})
    trains = sorted(suffix for stem, suffix in files if stem == "train")
    languages = [suffix for suffix in trains if suffix not in TABLES]
    if set(trains) & set(TABLES) and not {source, target} <= set(languages):
        names = (source or "source", target or "target")
        kinds = {stem: [kind for kind in TABLES if (stem, kind) in files] for stem in ["train", *stems]}
        tables = {stem: files[stem, there[0]] for stem, there in kinds.items() if there}
        parts = {stem: _read_table(path, *names, columns) for stem, path in tables.items()}
        used, notes = list(tables.values()), []
    else:
        names = _languages(folder, languages, source, target)
        sides = {stem: [files.get((stem, name)) for name in names] for stem in ["train", *stems]}
        for stem, (left, right) in sides.items():
            if (left is None) != (right is None) and stem in VALID:
                absent = f"{stem}.{names[0] if left is None else names[1]}"
                raise MissingError(f"no {absent} beside {left or right}", where=str(folder), fix="add it")
        both = {stem: (left, right) for stem, (left, right) in sides.items() if left and right}
        parts = {stem: read_pairs(*paths) for stem, paths in both.items()}
        used = [path for paths in both.values() for path in paths]
        notes = [
            f"{left or right}: left out, it is there in one of the two languages only"
            for left, right in sides.values()
            if (left is None) != (right is None)
        ]
    return _corpus(parts, *names, used, notes)


def _languages(folder: Path, found: list[str], source: str | None, target: str | None) -> tuple[str, str]:
    """The two languages: as given, or inferred where `found` leaves no choice."""
    if not found:
        what = f"no training file; it holds {listed(names_in(folder))}"
        fix = "a folder needs train.SOURCE and train.TARGET, or train.tsv, train.csv or train.jsonl"
        raise MissingError(what, where=str(folder), fix=fix)
    there = f"the training files there are train.{', train.'.join(found)}"
    for name in (source, target):
        if name is not None and name not in found:
            raise MissingError(f"no train.{name}; {there}", where=str(folder), fix="name two of these")
    if source is None or target is None:
        others = [name for name in found if name not in (source, target)]
        if len(found) != 2:
            raise InputError(f"which two languages? {there}", where=str(folder), fix="name source and target")
        return source or others[0], target or others[-1]
    return source, target


def _read_table(path: Path, source: str, target: str, columns: tuple[int, int] | None) -> Pairs:
    kind = path.name.removesuffix(".gz").rpartition(".")[2].lower()
    if kind not in TABLES:
        fix = "give .tsv, .csv or .jsonl (with .gz if packed), or a folder with train.SOURCE and train.TARGET"
        raise InputError("not a kind of file that pairs are read from", where=str(path), fix=fix)
    lines = read_lines(path)
    if kind == "jsonl":
        return _pairs(str(path), _json_rows(path, lines, source, target))
    cells = csv_cells(path, lines) if kind == "csv" else tsv_cells(lines)
    between = "comma" if kind == "csv" else "TAB"
    return _pairs(str(path), _column_rows(path, cells, source, target, columns, f"source {between} target"))


def _column_rows(
    path: Path,
    rows: Iterator[tuple[int, list[str]]],
    source: str,
    target: str,
    columns: tuple[int, int] | None,
    layout: str,
) -> Iterator[tuple[str, str]]:
    """The two columns of each row; a blank row is a pair of empty sides."""
    number, first = next((row for row in rows if row[1]), (1, []))
    names = [cell.strip().lower() for cell in first]
    known = [] if columns else [name for name in (source, target) if name.lower() in names]
    if len(known) == 1:
        absent = target if known == [source] else source
        what = f"no column {absent!r} in the header; there are {listed(names)}"
        raise InputError(what, where=f"{path}:{number}", fix="name two of these, or columns by number")
    if known:
        left, right, least, most = *map(names.index, (source.lower(), target.lower())), len(names), len(names)
        expected, fix = f"{most} as in the header", f"each line needs all of {listed(names)}"
    else:
        rows = chain([(number, first)], rows)
        left, right = (columns[0] - 1, columns[1] - 1) if columns else (0, 1)
        least, most = max(left, right) + 1, sys.maxsize if columns else 2
        expected = f"at least {least}" if columns else f"2 ({layout})"
        fix = f"give two columns, or a first line that names them, two of them {source} and {target}"
    for number, cells in rows:
        if cells and not least <= len(cells) <= most:
            what = f"{len(cells)} column{'s' if len(cells) > 1 else ''}, expected {expected}"
            raise InputError(what, where=f"{path}:{number}", fix=fix)
        yield (cells[left], cells[right]) if cells else ("", "")


def _json_rows(path: Path, lines: list[str], source: str, target: str) -> Iterator[tuple[str, ...]]:
    for number, line in enumerate(lines, 1):
        where = f"{path}:{number}"
        yield _sides(json_line(line, where=where), where, source, target) if line.strip() else ("", "")


def _sides(row: object, where: str, source: str, target: str) -> tuple[str, ...]:
    """The source and its references, of which an empty one stands for none, in a JSON object, which may hold them under
    "translation" as Hugging Face's data sets do."""
    if isinstance(row, dict) and isinstance(row.get("translation"), dict):
        row = row["translation"]
    if not isinstance(row, dict):
        fix = f'one object a line: {{"{source}": "...", "{target}": "..."}}'
        raise InputError(f"{json_type(row)}, expected an object", where=where, fix=fix)
    for name in (source, target):
        if name not in row:
            what = f"no key {name!r}; there are {listed(row)}"
            raise InputError(what, where=where, fix="name two of these as source and target")
    references = [text for text in _texts(row, target, where) if text.strip()] or [""]
    return sanitise(" ".join(_texts(row, source, where))), *map(sanitise, references)


def _texts(row: dict[str, object], name: str, where: str) -> list[str]:
    value = row[name]
    texts = value if isinstance(value, list) else [value]
    if not all(isinstance(text, str) for text in texts):
        what = f"{name!r} is {json_type(value)}, expected text"
        raise InputError(what, where=where, fix="write it in quotes")
    return [str(text) for text in texts]


def _read_hub(path: str, source: str, target: str) -> Corpus:
    try:
        datasets = importlib.import_module("datasets")  # an optional extra, and slow to import
    except ImportError:
        fix = "pip install 'heedful[datasets]'"
        raise MissingError("reading this needs the package datasets", where=path, fix=fix) from None
    name, _, config = path.removeprefix("hf:").partition(":")
    try:
        splits = datasets.load_dataset(name, config or None)
    except (OSError, RuntimeError, ValueError) as error:
        what = f"could not be loaded: {' '.join(str(error).split())}"
        fix = "check the name, the configuration and the network"
        raise MissingError(what, where=path, fix=fix) from None
    parts = {
        split: _pairs(
            f"{path}:{split}",
            (_sides(row, f"{path}:{split}:{number}", source, target) for number, row in enumerate(rows, 1)),
        )
        for split, rows in splits.items()
        if split == "train" or split in VALID or split.startswith("test")
    }
    if "train" not in parts:
        what = f"no split 'train'; there are {listed(splits)}"
        raise MissingError(what, where=path, fix="take a data set with a train split")
    return _corpus(parts, source, target, [])


def _corpus(parts: dict[str, Pairs], source: str, target: str, files: list[Path], notes: Iterable[str] = ()) -> Corpus:
    """Hold out what is not among the parts, and note what a person should know."""
    train, valid = parts["train"], next((parts[stem] for stem in VALID if stem in parts), None)
    tests = {stem: part for stem, part in parts.items() if stem.startswith("test")}
    lines = list(notes)
    for part in parts.values():
        if part.dropped:
            whole = part.dropped + len(part)
            lines.append(f"{part.name}: {part.dropped:,} of {whole:,} pairs dropped, a side is empty")
    if valid is None:
        valid, *test, train = _hold_out(train, 1 if tests else 2)
        lines.append(f"{train.name}: {len(valid):,} pairs held out for validation")
        if test:
            tests = {"test": test[0]}
            lines.append(f"{train.name}: {len(test[0]):,} pairs held out for a test")
    known = set(map(_key, train.source))
    for part in (valid, *tests.values()):
        if seen := sum(_key(text) in known for text in part.source):
            lines.append(f"{part.name}: {seen:,} of {len(part):,} sources are in the training text too")
    return Corpus(train, valid, tests, train.name, tuple(files), tuple(lines), source=source, target=target)


def _key(text: str) -> str:
    return text.strip().lower()


def _hold_out(pairs: Pairs, count: int) -> list[Pairs]:
    """`count` parts and the rest, all pairs of one source together."""
    groups: dict[str, list[int]] = {}
    for i, text in enumerate(pairs.source):
        groups.setdefault(_key(text), []).append(i)
    if len(groups) <= count:
        what = f"{len(groups)} different source sentence{'s' if len(groups) > 1 else ''}, expected at least"
        fix = "give more pairs, or a validation file of their own"
        raise InputError(f"{what} {count + 1}, as some are held out", where=pairs.name, fix=fix)
    room = min(HELD_MOST, max(1, round(HELD_SHARE * len(pairs))))
    held = hold_out({key: len(rows) for key, rows in groups.items()}, room, parts=count)
    rest = [key for key in groups if not any(key in own for own in held)]
    return [pairs.rows(sorted(i for key in keys for i in groups[key])) for keys in (*held, rest)]
