"""Reads parallel text: files in any common layout become `Pairs`, or one line says what is wrong, and where.

Everything is read and checked before the training. `corpus` chooses the pairs that are held out.
"""

import importlib
import re
import stat
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from glob import glob
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from heedful.data.lines import archive_of, files_in, listed, unreadable
from heedful.data.parts import kind_of
from heedful.data.text.columns import SOURCE, TARGET, Columns, Rows, WantedColumns
from heedful.data.text.directions import ARROW, Direction, in_words, said_in
from heedful.data.text.encodings import read_encoded_lines
from heedful.data.text.formats import format_of, refuse_other_formats
from heedful.data.text.formats.saved import read_split, splits_of
from heedful.data.text.headers import SIDES, column_of, meaning
from heedful.data.text.layouts import VALID, Files, Layout, Learnt, beside, chosen, exact_part, language_of, layout_of
from heedful.data.text.object_rows import object_rows
from heedful.data.text.pairs import Origin, Pairs, joined, pairs_of, read_pairs
from heedful.data.text.rows import TABLES, TEXT_TABLES, Row, read_rows, rows_by_direction
from heedful.data.text.table_rows import LOOKED_INTO, columns_by_language
from heedful.errors import InputError, MissingError, counted, pip_install

# What is part of a text as it was read, by what it is called.
LEARNT = {"line breaks": re.compile("[\n\v\f\x1c-\x1e\x85\u2028\u2029]"), '\\" for a quote': re.compile(r'\\"')}
NO_COLUMNS = Columns(0, 1, SOURCE, TARGET, False)


@dataclass(frozen=True)
class Read:
    """The contents of files, before anything is held out."""

    train: Pairs
    valid: Pairs | None
    tests: dict[str, Pairs]
    taken: Columns
    files: list[Path]
    notes: Sequence[str] = ()
    told: Sequence[str] = ()
    directions: Sequence[Direction] = ()  # if there are several
    apart: Sequence[Path] = ()  # the files for validation or tests
    weights: Mapping[Origin, float] = field(default_factory=dict)  # how often an epoch repeats the pairs of an origin
    learnt: Sequence[Learnt] = ()  # the files of training pairs

    def each(self, changed: Callable[[Pairs], Pairs]) -> "Read":
        """Returns a copy with `changed` applied to each of its parts."""
        tests = {name: changed(part) for name, part in self.tests.items()}
        valid = None if self.valid is None else changed(self.valid)
        return replace(self, train=changed(self.train), valid=valid, tests=tests)

    def weighed(self, weight: float, way: Direction | None = None) -> "Read":
        """Returns a copy whose training pairs are repeated `weight` times in an epoch."""
        weights = {Origin(file, way): weight for file in self.train.files if weight != 1}
        return replace(self, weights=weights)


class GivenPath(NamedTuple):
    """A path, and the weight, directions and tag that were given with it; or the directions that its rows name, with
    these rows and their columns."""

    path: str
    weight: float
    ways: list[Direction]
    tag: str
    rows: Mapping[Direction, list[Row]]
    columns: Columns


def read_whole(
    path: str | Path | Sequence[str | Path],
    *,
    source: str | None = None,
    target: str | None = None,
    tag: str = "",
    tests_alone: bool = False,
    most: int | None = None,
    besides: Sequence[str] = (),
) -> Read:
    """Reads the pairs in `path`: a folder, a zip file of one, a file, two files or `hf:NAME[:CONFIG]`; any file may end
    in `.gz`. Several of these, or patterns of their names, are read together: an epoch has a fifth of PATH:0.2, and
    PATH:2 twice. Two files without a weight that do not hold pairs are two sides.

    - A folder with `train.SOURCE` and `train.TARGET`, or with `train.tsv` (`.csv`, `.jsonl`), and beside them
      `valid`, `val` or `dev` (the first that exists) and any number of files whose names begin with `test`. With
      exactly two languages their names may be omitted: the source is then the first in the alphabet. Without a file
      named train, the training text is all pairs of files such as `Europarl.de-en.de` and `Europarl.de-en.en`, or else
      all tables, whose names do not say valid, dev or test.
    - Two files, the source first; or the beginning of two names: `corpus` for `corpus.de` and `corpus.en`.
    - A `.tsv`, `.csv` or `.txt` file with two columns, source first, or with more under a header; its first lines
      determine whether TAB, comma, semicolon or `|` separates them. The first line is a header if it contains both
      names, `source` and `target` (in any case), or languages that they mean; or, if the names are omitted, two
      languages or sides ("English", "de", "src"). Numbers as names, counted from 1, choose columns. Without a header,
      names only say what the two are called. Tatoeba's third column, an attribution, is left out.
    - TMX, XLIFF, PO, Excel workbooks and Parquet, whatever their names; see `heedful.data.text.formats`.
    - A `.jsonl` file of objects, or a `.json` file with a list of objects (perhaps under `data`), with the keys
      `source` and `target`, or with those under `translation`; if the names are omitted, the only two keys that are
      languages or sides. A source may be a list of sentences, which are joined, and a target a list of references.

    PATH#formal sets a tag for its pairs, and `tag` names a column or key of tables that holds one.
    Nothing is held out. With `tests_alone`, a folder needs no training data. `most`: only the first so many pairs of
    each file of training pairs are read; `besides`: what else is read. Raises InputError or MissingError.
    """
    if source and source == target:
        raise InputError(f"source and target are both {source!r}", fix="name two different languages")
    texts = [str(one) for one in ([path] if isinstance(path, str | Path) else path)]
    given = [one for text in texts for one in _given(text)]
    paths = frozenset(map(Path, (*besides, *(each.path for each in given))))
    wanted = WantedColumns(source or None, target or None, most, paths)
    if any(one.ways for one in given):
        _refuse_twice(given)
        return _read_directions(given, wanted, tag, tests_alone)
    if len(texts) == 2 and two_sides([(one.path, one.weight) for one in given]):
        if len(tags := {one.tag for one in given if one.tag}) > 1:
            what, where = f"two tags of the same pairs: {' and '.join(sorted(tags))}", tag_said(texts[0])[0]
            raise InputError(what, where=where, fix="say one behind the first")
        return tagged(_read_sides((Path(given[0].path), Path(given[1].path)), wanted), "".join(tags), tag, {})
    if not given:
        raise InputError("no files", fix="give a folder, a file, or two files of two languages")
    read = [_read(given[0].path, wanted, tests_alone=tests_alone)]
    first = read[0].taken
    alone = bool(source or target) or not (first.header or _languages(first))
    for one in given[1:]:
        read.append(_read(one.path, wanted) if alone else _read_beside(one.path, given[0].path, first, wanted))
    _refuse_twice(given)
    both = zip(given, read, strict=True)
    return _united([tagged(own, one.tag, tag, {}).weighed(one.weight) for one, own in both])


def tagged(read: Read, said: str, column: str, known: dict[str, dict[int, str]]) -> Read:
    """Returns a copy in which each pair has the tag `said`, or else the tag in a column; those of a file are kept in
    `known`."""
    if not said and not column:
        return read

    def with_tags(part: Pairs) -> Pairs:
        for file in part.files:
            if not said and file not in known:
                known[file] = tags_in(Path(file), column)
        tags = [said or known[part.file_of(i)].get(part.lines[i], "") for i in range(len(part))]
        return replace(part, tags=tags)

    return read.each(with_tags)


def tag_said(text: str) -> tuple[str, str]:
    """Separates a path from its tag, which stands before or after the directions: "back.tsv#back:0.5" gives
    "back.tsv:0.5" and "back"."""
    found = re.search(r"#([A-Za-z][\w.-]*)(?=(?::[^:#]+>[^:#]+)?(?::[\d.]+)?$)", text)
    if found is None or Path(text).exists():
        return text, ""
    return text[: found.start()] + text[found.end() :], found[1]


def tags_in(path: Path, column: str) -> dict[int, str]:
    """Returns the values of a column or key of a table, by the numbers of its rows. Raises InputError if it does not
    exist."""
    is_file = path.is_file() or archive_of(path) is not None
    if not is_file or kind_of(path).removeprefix(".") not in TEXT_TABLES:
        fix = f"say what its pairs are: --data '{path}#formal'"
        raise InputError(f"has no column {column!r}: it is no table of text", where=str(path), fix=fix)
    rows, taken = read_rows(path, column, column, named=True)
    if not taken.header and not column.isdigit():
        raise InputError(f"has no column {column!r}: it has no header", where=str(path), fix="give it one")
    return {number: row[0].strip() for number, row in rows}


def _given(text: str) -> Iterator[GivenPath]:
    """Yields the paths that a text stands for, with what is given beside them. Raises InputError or MissingError."""
    plain, tag = tag_said(text)
    plain, ways = said_in(plain)
    for path, weight in found_as(plain):
        rows, columns = ({}, NO_COLUMNS) if ways else rows_by_direction(Path(path))
        yield GivenPath(path, weight, ways or [*rows], tag, rows, columns)


def _refuse_twice(given: Sequence[GivenPath]) -> None:
    """Raises InputError if a path is given twice in one direction, for example by its name and by a pattern."""
    meant = Counter((Path(one.path), way) for one in given for way in one.ways or [("", "")])
    for (path, _), times in meant.items():
        if times > 1:
            fix = f"name it once, and in no pattern; {path}:2 has each pair twice in an epoch"
            raise InputError("named twice", where=str(path), fix=fix)


def _read_directions(given: Sequence[GivenPath], wanted: WantedColumns, tag: str, tests_alone: bool) -> Read:
    """Reads paths that say their directions. Raises InputError or MissingError."""
    source, target = wanted[:2]
    there = list(dict.fromkeys(way for one in given for way in one.ways))
    directions = [way for way in there if source in (None, way[0]) and target in (None, way[1])]
    asked = " ".join(f"{word} {side}" for word, side in (("from", source), ("to", target)) if side)
    if not directions:
        what = f"no pairs {asked}: they are {in_words(there)}"
        fix = "name one of these, or no languages at all: --source '' --target ''"
        raise InputError(what, where=given[0].path, fix=fix)
    read: list[Read] = []
    several = len(directions) > 1
    known = dict[str, dict[int, str]]()
    for one in given:
        if not one.ways:
            fix = f"say it: --data '{one.path}:en>de'"
            raise InputError("from which language to which? other data say theirs", where=one.path, fix=fix)
        for way in (way for way in one.ways if way in directions):
            asked_for = WantedColumns(*way, given=wanted.given)
            named = _of_rows(one, way) if one.rows else _read(one.path, asked_for, tests_alone=tests_alone)
            own = tagged(named, one.tag, tag, known).weighed(one.weight, way if several else None)
            read.append(of_way(own, directions, way) if several else own)
    whole = _united(read)
    left = in_words(way for way in there if way not in directions)
    told = [*whole.told, *([f"not used, as pairs {asked} are asked for: {left}"] if left else [])]
    tests: dict[str, list[Pairs]] = {}
    for own in read:  # a test set of several directions is one test
        for name, part in own.tests.items():
            tests.setdefault(name, []).append(part)
    whole_tests = {name: joined(parts, name) for name, parts in tests.items()}
    sources, targets = (", ".join(dict.fromkeys(way[side] for way in directions)) for side in (0, 1))
    taken = whole.taken._replace(source=sources, target=targets, turned="")
    return replace(whole, tests=whole_tests, taken=taken, told=told, directions=directions if several else ())


def _of_rows(given: GivenPath, way: Direction) -> Read:
    """Returns the pairs of a direction that rows name."""
    pairs = pairs_of(given.path, given.rows[way])
    taken = given.columns._replace(
        source=way[0], target=way[1], fuzzy=given.columns.fuzzy if way == given.ways[0] else ()
    )
    return Read(pairs, None, {}, taken, [Path(given.path)], told=[_told((given.path,), pairs, taken)])


def _read_beside(path: str, first: str, taken: Columns, wanted: WantedColumns) -> Read:
    """Reads a data set in the languages of the first one. Raises InputError if it has others, with the directions to
    give."""
    try:
        return _read(path, wanted._replace(source=taken.source, target=taken.target))
    except (InputError, MissingError):
        own, ours = _own_languages(path), _languages(taken)
        if own is None or ours is None or {*map(meaning, own)} == {*map(meaning, ours)}:
            raise
    if meaning(own[0]) == meaning(ours[1]) or meaning(own[1]) == meaning(ours[0]):
        own = own[::-1]  # languages in alphabetical order have no direction yet
    what = f"{' and '.join(own)}, but {first} has {' and '.join(ours)}"
    fix = f"of several languages say which: --data '{first}:{ARROW.join(ours)}' --data '{path}:{ARROW.join(own)}'"
    raise InputError(what, where=path, fix=fix)


def _own_languages(path: str) -> Direction | None:
    """Returns the two languages that a data set itself names, or None."""
    try:
        return _languages(_read(path, WantedColumns()).taken)
    except (InputError, MissingError):
        return None


def _languages(taken: Columns) -> Direction | None:
    """Returns the names of the two columns if they are languages, else None."""
    named = meaning(taken.source), meaning(taken.target)
    return None if {None, *SIDES} & {*named} else (taken.source, taken.target)


def of_way(read: Read, directions: Sequence[Direction], way: Direction) -> Read:
    """Returns a copy in which each pair has the number of its direction."""
    number = directions.index(way)

    def marked(part: Pairs) -> Pairs:
        return replace(part, ways=array("h", [number]) * len(part), directions=tuple(directions))

    return replace(read.each(marked), told=[f"{line} ({way[0]} to {way[1]})" for line in read.told])


def paths_of(texts: Sequence[str]) -> list[tuple[Path, float]]:
    """Returns the paths and their weights, without tags and directions. Raises InputError or MissingError."""
    plain = [said_in(tag_said(text)[0])[0] for text in texts]
    return [(Path(path), weight) for one in plain for path, weight in found_as(one)]


def found_as(text: str) -> list[tuple[str, float]]:
    """Returns the paths that a text stands for, with their weights: "a.tmx", "b.tsv:0.2" or "memories/*.tmx:2". Raises
    InputError or MissingError."""
    weight = re.search(r":(\d+(?:[.]\d*)?|[.]\d+)$", text)
    if weight and not Path(text).exists():
        path, share = text[: weight.start()], float(weight[1])
        if share <= 0:
            raise InputError("a weight of 0", where=text, fix="leave it out, or give one above 0")
    else:
        path, share = text, 1.0
    if not any(sign in path for sign in "*?[") or Path(path).exists() or path.startswith("hf:"):
        return [(path, share)]
    found = sorted(glob(path))
    if not found:
        raise MissingError("no file of this pattern", where=path, fix="check it, in quotes: --data 'memories/*.tmx'")
    return [(one, share) for one in found]


def two_sides(weighted: Sequence[tuple[str, float]]) -> bool:
    """Whether two paths are files of one language each: neither has a weight, is a folder, or holds pairs."""
    paths = [Path(path) for path, _ in weighted]
    plain = all(weight == 1 and not path.startswith("hf:") for path, weight in weighted)
    return len(paths) == 2 and plain and not any(path.is_dir() or holds_pairs(path) for path in paths)


def _united(read: Sequence[Read]) -> Read:
    """Joins several data sets into one, so that what is held out is chosen from all of them."""
    if len(read) == 1:
        return read[0]
    parts = [own.train for own in read]
    valid = [own.valid for own in read if own.valid]
    tests: dict[str, Pairs] = {}
    for own in read:
        tests |= {name if name not in tests else f"{name}, {own.train.name}": part for name, part in own.tests.items()}
    names = list(dict.fromkeys(own.train.name for own in read))  # a file may be read in several directions
    name = " + ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    files = [file for own in read for file in own.files]
    notes, told = [note for own in read for note in own.notes], [line for own in read for line in own.told]
    apart, held = [file for own in read for file in own.apart], joined(valid, name) if valid else None
    weights = {origin: weight for own in read for origin, weight in own.weights.items()}
    learnt = [source for each in read for source in each.learnt]
    whole = joined(parts, name)
    return Read(whole, held, tests, read[0].taken, files, notes, told, apart=apart, weights=weights, learnt=learnt)


def _read(given: str, wanted: WantedColumns, *, tests_alone: bool = False) -> Read:
    """Reads one folder, file or data set. Raises InputError or MissingError."""
    if given.startswith("hf:"):
        return _read_hub(given, *wanted.names)
    path, source, target = Path(given), wanted.source, wanted.target
    try:
        is_folder = stat.S_ISDIR(path.stat().st_mode)
    except (OSError, ValueError) as error:
        around = files_in(path.parent) if path.parent.is_dir() and not path.is_symlink() else []
        if languages := beside(path, around):
            names = chosen(path.parent, languages, source, target, stem=path.name)
            left, right = (_side(path, name) for name in names)
            return _of_sides((left, right), Columns(0, 1, *names, False), wanted.most)
        raise unreadable(path, error) from None
    if is_folder and (splits := splits_of(path)):
        return _read_splits(str(path), splits, lambda split: read_split(splits[split], *wanted.names))
    if is_folder and any(file.suffix == ".idx" and file.with_suffix(".bin").is_file() for file in path.iterdir()):
        what = "made by fairseq-preprocess, and holds the numbers of words"
        raise InputError(what, where=str(path), fix="give the texts that it was made of: --data train.en train.de")
    if is_folder or kind_of(path) == ".zip":
        layout = layout_of(path, files_in(path), source, target, tests_alone=tests_alone, given=wanted.given)
        return _read_files(path, layout, wanted)
    if kind_of(path).removeprefix(".") not in TABLES and not holds_pairs(path) and (own := language_of(path)):
        others = [name for name in beside(path.with_suffix(""), files_in(path.parent)) if name != own]
        other = path.with_suffix(f".{others[0]}") if others else "FILE"
        fix = f"give the other side too: --data {path} --data {other}"
        raise InputError("one side of the pairs alone", where=str(path), fix=fix)
    train, taken = _read_table(path, wanted)
    line = _told((path,), train, taken, wanted.most)
    return Read(train, None, {}, taken, [path], told=[line], learnt=[Learnt((path,), taken)])


def holds_pairs(path: Path) -> bool:
    """Whether a file holds both sides, by its name or its contents."""
    kind = kind_of(path).removeprefix(".")
    return kind in {*TABLES, "zip"} - {"txt"} or (path.is_file() and format_of(path) is not None)


def _side(path: Path, name: str) -> Path:
    """Returns PATH.NAME, or PATH.NAME.gz if the former does not exist."""
    plain = path.with_name(f"{path.name}.{name}")
    return plain if plain.exists() else plain.with_name(f"{plain.name}.gz")


def _read_sides(paths: tuple[Path, Path], wanted: WantedColumns) -> Read:
    """Reads two files; the first is the source, unless the languages of their names are asked for the other way
    round."""
    first, second = (language_of(path) or name for path, name in zip(paths, wanted.names, strict=True))
    if wanted.source and wanted.target and [column_of(name, [first, second]) for name in wanted.names] == [1, 0]:
        paths, first, second = paths[::-1], second, first
    return _of_sides(paths, Columns(0, 1, first, second, False, turned=f"--data {paths[1]} {paths[0]}"), wanted.most)


def _of_sides(paths: tuple[Path, Path], taken: Columns, most: int | None) -> Read:
    """Reads two files of lines, the source first. Raises InputError."""
    for path in paths:
        if holds_pairs(path):
            fix = "give two files of plain lines, or --data before each of several files of pairs"
            raise InputError("pairs, expected the lines of one language", where=str(path), fix=fix)
    train = read_pairs(*paths, most)
    line = _told(paths, train, taken, most)
    return Read(train, None, {}, taken, [*paths], told=[line], learnt=[Learnt(paths, taken)])


def _read_files(where: Path, layout: Layout, wanted: WantedColumns) -> Read:
    """Reads the files of a folder, or of a zip file."""
    layout = _turned(layout, wanted)
    read: dict[Files, Pairs] = {}
    told: list[str] = []
    learnt: list[Learnt] = []
    first: Columns | None = None
    for files in (*layout.train, *layout.valid, *layout.tests.values()):
        most = wanted.most if files in layout.train else None
        read[files], taken = _read_one(files, layout.languages, wanted._replace(most=most))
        told.append(_told(files, read[files], taken, most))
        learnt += [Learnt(files, taken)] if files in layout.train else []
        first = first or taken
        if first.header:  # the first table sets the column names of the others
            wanted = wanted._replace(source=wanted.source or first.source, target=wanted.target or first.target)
    assert first is not None
    train = joined([read[files] for files in layout.train], where) if layout.train else Pairs([], [], str(where))
    valid = joined([read[files] for files in layout.valid], where) if layout.valid else None
    tests = {stem: read[files] for stem, files in layout.tests.items()}
    used = [path for files in read for path in files] if where.is_dir() else [where]
    apart = [path for files in (*layout.valid, *layout.tests.values()) for path in files] if where.is_dir() else []
    return Read(train, valid, tests, first, used, layout.notes, told, apart=apart, learnt=learnt)


def _turned(layout: Layout, wanted: WantedColumns) -> Layout:
    """Returns a layout whose files are called source and target with the languages that are asked for, and the other
    way round if the texts are in these so."""
    if layout.languages is None or not {*map(meaning, layout.languages)} <= {*SIDES} or None in wanted[:2]:
        return layout
    every = [*layout.train, *layout.valid, *layout.tests.values()]
    first = read_pairs(every[0][0], every[0][1], 100 * LOOKED_INTO)
    rows = [[*row] for row in zip(first.source[:LOOKED_INTO], first.target[:LOOKED_INTO], strict=True)]
    turn = -1 if columns_by_language(rows, *wanted.names) else 1
    train, valid = ([files[::turn] for files in own] for own in (layout.train, layout.valid))
    tests = {name: files[::turn] for name, files in layout.tests.items()}
    return Layout(train, valid, tests, wanted.names, layout.notes)


def _read_one(files: Files, names: tuple[str, str] | None, wanted: WantedColumns) -> tuple[Pairs, Columns]:
    """Reads a table, or two files of the languages `names`."""
    if names is None:
        return _read_table(files[0], wanted)
    return read_pairs(files[0], files[1], wanted.most), Columns(0, 1, *names, False)


def _told(files: Sequence[object], pairs: Pairs, taken: Columns, most: int | None = None) -> str:
    """Describes in a line how a table or two files were read, for the user; `most`: perhaps not all was."""
    lines = f"line by line, {taken.source} and {taken.target}" + (f", {pairs.encoded}" if pairs.encoded else "")
    layout = lines if len(files) == 2 else taken.layout
    if most is not None:
        return f"{' + '.join(map(str, files))}: {layout or 'pairs'}"
    layout += f", {counted(len(taken.fuzzy), 'fuzzy row')} left out" if taken.fuzzy else ""
    told = f"{' + '.join(map(str, files))}: {f'{layout}, ' if layout else ''}{counted(len(pairs), 'pair')}"
    learnt = ""
    for name, signs in LEARNT.items():
        both = zip(pairs.source, pairs.target, strict=True)
        count = sum(signs.search(one) is not None or signs.search(other) is not None for one, other in both)
        learnt += f", {count:,} with {name}" if count else ""
    return f"{told}{learnt}, which the model learns too" if learnt else told


def _read_table(path: Path, wanted: WantedColumns) -> tuple[Pairs, Columns]:
    try:
        rows, taken = read_rows(path, *wanted.names)
        return pairs_of(str(path), islice(rows, wanted.most)), taken
    except InputError:
        if format_of(path) is None and kind_of(path) not in (".json", ".jsonl", ".yaml", ".yml"):
            refuse_other_formats(path, read_encoded_lines(path)[0])  # perhaps it was never meant for a table
        raise


def _read_hub(path: str, source: str, target: str) -> Read:
    try:
        datasets = importlib.import_module("datasets")  # an optional extra, and slow to import
    except ImportError:
        fix = pip_install("datasets")
        raise MissingError("reading this needs the package datasets", where=path, fix=fix) from None
    name, _, config = path.removeprefix("hf:").partition(":")
    try:
        splits = datasets.load_dataset(name, config or None)
    except (OSError, RuntimeError, ValueError) as error:
        what = f"could not be loaded: {' '.join(str(error).split())}"
        fix = "check the name, the configuration and the network"
        raise MissingError(what, where=path, fix=fix) from None

    def rows(split: str) -> tuple[Rows, Columns]:
        items = ((f"{path}:{split}:{number}", row) for number, row in enumerate(splits[split], 1))
        return object_rows(items, source, target)

    return replace(_read_splits(path, {split: f"{path}:{split}" for split in splits}, rows), files=[], told=())


def _read_splits(path: str, splits: Mapping[str, object], rows: Callable[[str], tuple[Rows, Columns]]) -> Read:
    """Reads the splits of a data set; `splits` are their locations. Raises MissingError without a training split."""
    parts: dict[str, Pairs] = {}
    told: list[str] = []
    for split, place in splits.items():
        if exact_part(split):
            found, taken = rows(split)
            parts[split] = pairs_of(str(place), found)
            told.append(_told((place,), parts[split], taken))
    if "train" not in parts:
        what = f"no split 'train'; there are {listed(parts)}"
        raise MissingError(what, where=path, fix="take a data set with a train split")
    train, valid = parts["train"], next((parts[stem] for stem in VALID if stem in parts), None)
    tests = {stem: part for stem, part in parts.items() if stem.startswith("test")}
    return Read(train, valid, tests, taken, [Path(path)], told=told)
