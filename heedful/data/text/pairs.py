"""Reading parallel text: files in any common layout become a `Corpus`, or one line says what is wrong where.

Everything is read and checked before anything is trained. Texts are left as they stand in the file: only line
ends (LF or CRLF), a UTF-8 byte order mark, and pairs with an empty side go.
"""

import importlib
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from heedful.data.lines import listed, names_in, read_lines, unreadable
from heedful.data.parts import Parts, hold_out
from heedful.data.text.rows import SOURCE, TABLES, TARGET, Columns, read_rows, sides_of
from heedful.errors import InputError, MissingError

HELD_SHARE, HELD_MOST = 0.02, 2000  # of the pairs, for validation and again for test
VALID = ("valid", "val", "dev", "validation")


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
    other_way: str = field(default="", kw_only=True)  # the options that ask for the other direction


def read_parallel(
    path: str | Path, *, source: str | None = None, target: str | None = None, columns: tuple[int, int] | None = None
) -> Corpus:
    """Read the pairs in `path`, a folder, a file or `hf:NAME[:CONFIG]`; any file may end in `.gz`.

    - A folder with `train.SOURCE` and `train.TARGET`, or with `train.tsv` (`.csv`, `.jsonl`), and beside them
      `valid`, `val` or `dev` (the first there is) and any number of files whose names begin with `test`. With
      exactly two languages their names may be left out: the source is then the first in the alphabet.
    - A `.tsv` or `.csv` file with two columns, source first, or with more under a header. The first line is one when it
      holds both names, `source` and `target` (case aside), or languages that they mean; or, where they are left out,
      two languages or sides ("English", "de", "src"). Numbers as names, counted from 1, choose columns. `columns` does
      too, and then no line is a header. Without a header, names are only what the two are called. Tatoeba's third
      column, an attribution, is left out.
    - A `.jsonl` file of objects with the keys `source` and `target`, or with those under `translation`; where they are
      left out, the only two keys that are languages. A source may be a list of sentences, which are one text, and a
      target one of several references.

    Where there is no validation text, about 2 % of the training pairs (at least 1, at most 2000) are held
    out, and as many for a test if there is none either. A hash of the lower-cased source decides: all
    translations of one sentence stay on one side, and every machine chooses the same.
    Raises InputError or MissingError.
    """
    source, target = source or None, target or None
    if source is not None and source == target:
        raise InputError(f"source and target are both {source!r}", fix="name two different languages")
    if columns and (min(columns) < 1 or columns[0] == columns[1]):
        raise InputError(f"columns {columns}, expected two different numbers from 1", fix="give 1 and 2")
    if str(path).startswith("hf:"):
        return _read_hub(str(path), source or SOURCE, target or TARGET)
    path = Path(path)
    try:
        if stat.S_ISDIR(path.stat().st_mode):
            return _read_folder(path, source, target, columns)
    except OSError as error:
        raise unreadable(path, error) from None
    train, taken = _read_table(path, source, target, columns)
    return _corpus({"train": train}, taken, [path])


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
        kinds = {stem: [kind for kind in TABLES if (stem, kind) in files] for stem in ["train", *stems]}
        tables = {stem: files[stem, there[0]] for stem, there in kinds.items() if there}
        read = {stem: _read_table(path, source, target, columns) for stem, path in tables.items()}
        if "train" not in read:
            raise MissingError(
                f"no training file; it holds {listed(names_in(folder))}", where=str(folder), fix="add it"
            )
        parts, taken = {stem: pairs for stem, (pairs, _) in read.items()}, read["train"][1]
        used, notes = list(tables.values()), []
    else:
        names = _languages(folder, languages, source, target)
        taken = Columns(0, 1, *names, False, f"--source {names[1]} --target {names[0]}")
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
    return _corpus(parts, taken, used, notes)


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


def _read_table(
    path: Path, source: str | None, target: str | None, columns: tuple[int, int] | None
) -> tuple[Pairs, Columns]:
    rows, taken = read_rows(path, source or SOURCE, target or TARGET, columns)
    return _pairs(str(path), rows), taken


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
            (sides_of(row, f"{path}:{split}:{number}", source, target) for number, row in enumerate(rows, 1)),
        )
        for split, rows in splits.items()
        if split == "train" or split in VALID or split.startswith("test")
    }
    if "train" not in parts:
        what = f"no split 'train'; there are {listed(splits)}"
        raise MissingError(what, where=path, fix="take a data set with a train split")
    return _corpus(parts, Columns(0, 1, source, target, True, f"--source {target} --target {source}"), [])


def _corpus(parts: dict[str, Pairs], taken: Columns, files: list[Path], notes: Iterable[str] = ()) -> Corpus:
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
    direction = {"source": taken.source, "target": taken.target, "other_way": taken.other_way}
    return Corpus(train, valid, tests, train.name, tuple(files), tuple(lines), **direction)


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
