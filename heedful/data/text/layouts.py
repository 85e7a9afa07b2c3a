"""Finds which files of a folder, or of a zip file, hold which part of the pairs: each part is a table, or two files."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from heedful.data.lines import listed, names_in, read_beginning
from heedful.data.text.columns import SOURCE, TARGET, Columns, Rows
from heedful.data.text.headers import SIDES, column_of, filled, meaning
from heedful.data.text.pairs import side_rows
from heedful.data.text.rows import TABLES, read_rows
from heedful.errors import InputError, MissingError

VALID = ("valid", "val", "dev", "validation")
# Files beside the data that are not data, by the beginnings of their names.
PAPERS = re.compile(r"(readme|licen[cs]e|copying|notice|citation|changelog|dataset_infos?)(?![a-z])", re.IGNORECASE)
PICTURES = ("png", "jpg", "jpeg", "gif", "svg", "webp")
# The part that a name says, if no file is named train: newstest2013, newsdev2016, corpus.valid, dialogsum.test.
PART = re.compile(r"(?:^|[^a-z]|news)(?:(?P<valid>validation|valid|val|dev)|(?P<test>test|tst|devtest))(?![a-z])")

Files = tuple[Path, ...]  # a table, or a source file and a target file
Groups = dict[str, dict[str, Path]]  # files by the parts of their names before and after the last dot
LOOKED_AT = 1 << 12  # bytes of a .txt file, in which a table has a TAB
MOST_NAMED = 3  # files that are left out


class Learnt(NamedTuple):
    """A file of training pairs, or two files of sides, and what is read there."""

    files: Files
    taken: Columns

    def rows(self) -> Rows:
        """Yields the rows, one after the other. Raises InputError or MissingError."""
        if len(self.files) == 2:
            return side_rows(*self.files)
        return read_rows(self.files[0], self.taken.source, self.taken.target)[0]


@dataclass(frozen=True)
class Layout:
    """The files of each part, and the two languages if the parts have two files."""

    train: list[Files]
    valid: list[Files]
    tests: dict[str, Files]
    languages: tuple[str, str] | None
    notes: tuple[str, ...]


def layout_of(
    where: Path,
    files: Sequence[Path],
    source: str | None,
    target: str | None,
    *,
    tests_alone: bool = False,
    given: Collection[Path] = (),
) -> Layout:
    """Chooses the files to read of `files`, those of a folder or a zip file. Some must be training files, unless
    `tests_alone`.

    With a file named train (`train.en`, `train.csv`), the parts are train, the first of `VALID`, and all files whose
    names begin with test. Without one, the names say which files are for validation or tests, and all others are for
    training: two files per language pair with the same stem, or else all tables. What else may be data is told, but for
    what is `given` too. Raises InputError or MissingError.
    """
    groups = _groups(files)
    exact = "train" in groups
    parts = {stem: part for stem in groups if (part := exact_part(stem) if exact else _part(stem))}
    learnt = [stem for stem, part in parts.items() if part == "train"]
    learnt = learnt or (list(parts) if tests_alone else [])
    there = sorted({name for stem in learnt for name in _language_names(groups[stem], stem, exact=exact)})
    tables = any(set(groups[stem]) & set(TABLES) for stem in learnt)
    notes: list[str] = []
    names: tuple[str, str] | None = None
    found: dict[str, Files]
    if tables and (not there or (exact and not {source, target} <= set(there))):
        kinds = {stem: next((kind for kind in TABLES if kind in groups[stem]), None) for stem in parts}
        found = {stem: (groups[stem][kind],) for stem, kind in kinds.items() if kind}
    else:
        names = chosen(where, there, source, target, stem="train" if exact else "*", holds=files)
        found = {stem: both for stem in parts if (both := _both(where, stem, groups[stem], parts[stem], names, notes))}
    if not any(parts[stem] == "train" or tests_alone for stem in found):
        raise _nothing(where, files)
    _refuse_hidden(where, files, found.values())
    train, valid = ([own for stem, own in found.items() if parts[stem] == part] for part in ("train", "valid"))
    taken = next((stem for stem in VALID if stem in found), None)
    known = {path for stem in found if names for path in _sides_of(groups[stem])}  # in further languages
    known |= {path for stem in parts if names and stem not in found for path in map(groups[stem].get, names) if path}
    if exact:
        called = f"what is called {', '.join(VALID[:-1])} or {VALID[-1]}, the first of them alone"
        others = (stem for stem in groups if stem != taken and stem.rpartition(".")[0] not in groups)
        unread = [stem for stem in others if _part(stem) == "valid"]
        known |= {path for stem in unread for path in groups[stem].values()}
        notes += [f"{where / stem}.*: left out, validation data is {called}" for stem in unread]
    tests = {stem: own for stem, own in found.items() if parts[stem] == "test"}
    layout = Layout(train, [found[taken]] if exact and taken else valid, tests, names, tuple(notes))
    used = [path for each in (*layout.train, *layout.valid, *tests.values()) for path in each]
    return replace(layout, notes=(*notes, *_left_out(where, files, used, {*known, *given})))


def chosen(
    where: Path, found: list[str], source: str | None, target: str | None, *, stem: str, holds: Sequence[Path] = ()
) -> tuple[str, str]:
    """Returns the two languages: those given, or those that are left if `found` leaves no choice. Files that are called
    source and target may be in any. Raises InputError or MissingError."""
    if not found:
        raise _nothing(where, holds)
    there = f"the training files there are {', '.join(f'{stem}.{name}' for name in found)}"
    sides = []
    for name, side in ((source, SOURCE), (target, TARGET)):
        at = None if name is None else column_of(name, found)
        at = column_of(side, found) if name is not None and at is None and is_language(name) else at
        if name is not None and at is None:
            raise MissingError(f"no {stem}.{name}; {there}", where=str(where), fix="name two of these")
        sides.append(None if at is None else found[at])
    both = filled(sides, found)
    if both is None:
        raise InputError(f"which two languages? {there}", where=str(where), fix="--source NAME --target NAME")
    return both


def language_of(path: Path) -> str | None:
    """Returns the language in the name of a file, such as `corpus.en`, `en.txt` or `train.en.txt.gz`, or None."""
    words = _plain(path.name).split(".")
    return next((word for word in reversed(words) if word.lower() not in TABLES and is_language(word)), None)


def languages_of_files(source: str, target: str) -> tuple[str, str]:
    """Returns the languages in the names of two files; "" for a name without one."""
    return language_of(Path(source)) or "", language_of(Path(target)) or ""


def is_language(name: str) -> bool:
    return (meaning(name) or "source") not in SIDES


def beside(path: Path, files: Iterable[Path]) -> list[str]:
    """Returns the languages L for which there is a file PATH.L, where `path` is a name without its last part."""
    begin = f"{path.name}."
    ends = [_plain(file.name).removeprefix(begin) for file in files if file.name.startswith(begin)]
    return sorted({end for end in ends if is_language(end)})


def _plain(name: str) -> str:
    """Returns the name of a file without .gz."""
    return re.sub(r"[.]gz$", "", name, flags=re.IGNORECASE)


def _groups(files: Sequence[Path]) -> Groups:
    """Returns the files by their names. A second table of a name is under that name with its suffix."""
    cut = dict[Path, tuple[str, str]]()
    for path in sorted(files, key=lambda path: path.name):  # "train.en" comes before "train.en.gz", and is preferred
        stem, _, suffix = _plain(path.name).rpartition(".")
        if stem and not PAPERS.match(path.name):
            cut[path] = stem, suffix.lower() if suffix.lower() in TABLES else suffix
    for path, (stem, language) in _sides_in_txt(cut).items():
        cut[path] = stem, language
    kinds = dict[str, set[str]]()
    for stem, suffix in cut.values():
        kinds.setdefault(stem, set()).update({suffix} & {*TABLES})
    groups: Groups = {}
    for path, (stem, suffix) in cut.items():
        second = suffix in TABLES and suffix != min(kinds[stem], key=TABLES.index)
        groups.setdefault(f"{stem}.{suffix}" if second else stem, {}).setdefault(suffix, path)
    return groups


def _sides_in_txt(cut: Mapping[Path, tuple[str, str]]) -> dict[Path, tuple[str, str]]:
    """Returns the names and languages of files such as `corpus.en.txt` and `corpus.fr.txt`, or `en.txt` and `fr.txt`,
    which are no tables."""
    sides = dict[Path, tuple[str, str]]()
    languages = dict[str, set[str]]()
    for path, (stem, suffix) in cut.items():
        name, _, language = stem.rpartition(".") if suffix == "txt" else (stem, "", suffix)
        if language not in TABLES and is_language(language):
            languages.setdefault(name, set()).add(language)
            if suffix == "txt":
                sides[path] = name, language
    several = {path: both for path, both in sides.items() if len(languages[both[0]]) > 1}
    tables = {name for path, (name, _) in several.items() if b"\t" in read_beginning(path, LOOKED_AT)}
    return {path: both for path, both in several.items() if both[0] not in tables}


def _sides_of(group: Mapping[str, Path]) -> list[Path]:
    return [path for suffix, path in group.items() if suffix not in TABLES and is_language(suffix)]


def _left_out(where: Path, files: Sequence[Path], used: Sequence[Path], known: Iterable[Path]) -> list[str]:
    """Returns a note about the files and folders that may hold data too, and are not `used`; those that are `known`
    need none."""
    rest = [path for path in files if path not in {*used, *known} and not PAPERS.match(path.name)]
    rest = [path for path in rest if path.suffix.lower().removeprefix(".") not in PICTURES]
    rest = [path for path in rest if not path.is_dir() or any(not name.startswith(".") for name in names_in(path))]
    if not rest:
        return []
    rest.sort(key=lambda path: not _may_hold_pairs(path))
    names = ", ".join(map(str, rest[:MOST_NAMED]))
    names += f" and {len(rest) - MOST_NAMED:,} more" if len(rest) > MOST_NAMED else ""
    fix = f"; --data {where} --data {rest[0]} reads that too" if _may_hold_pairs(rest[0]) else ""
    fix = fix if where.is_dir() else "; unpack the zip file, and name its files, to read others"
    return [f"{names}: left out, as the data are {' and '.join(map(str, used[:2]))}{', ...' * (len(used) > 2)}{fix}"]


def _may_hold_pairs(path: Path) -> bool:
    return path.is_dir() or _plain(path.name).rpartition(".")[2].lower() in (*TABLES, "zip")


def _refuse_hidden(where: Path, files: Sequence[Path], found: Iterable[Files]) -> None:
    """Raises InputError if a file would not be read because another folder of the zip file has one of the same name."""
    used = {path.name: path for own in found for path in own}
    for path in files:
        if path != (other := used.get(path.name, path)):
            what = f"two files of one name: {other.relative_to(where)} and {path.relative_to(where)}"
            raise InputError(what, where=str(where), fix="unpack it, and give the folders or files that are meant")


def exact_part(stem: str) -> str | None:
    if stem == "train":
        return stem
    return "valid" if stem in VALID else "test" if stem.startswith("test") else None


def _part(stem: str) -> str:
    found = PART.search(stem.lower())
    return (found.lastgroup if found else None) or "train"


def _language_names(group: dict[str, Path], stem: str, *, exact: bool) -> list[str]:
    """Returns the suffixes that are languages: for files named train, all that are not tables; for others, at least
    two."""
    if exact:
        return [suffix for suffix in group if suffix not in TABLES]
    said = re.search(r"[.]([A-Za-z_]+)-([A-Za-z_]+)$", stem)  # as in OPUS: Europarl.de-en.de
    if said and {*said.groups()} <= set(group):
        return [*said.groups()]
    found = [suffix for suffix in group if suffix not in TABLES and is_language(suffix)]
    return found if len(found) > 1 else []


def _both(
    where: Path, stem: str, group: Mapping[str, Path], part: str, names: tuple[str, str], notes: list[str]
) -> Files | None:
    left, right = map(group.get, names)
    if left and right:
        return left, right
    one = left or right
    if one and part == "valid":
        absent = f"{stem}.{names[0] if left is None else names[1]}"
        raise MissingError(f"no {absent} beside {one}", where=str(where), fix="add it")
    if one:
        notes.append(f"{one}: left out, it is there in one of the two languages only")
    return None


def _nothing(where: Path, files: Sequence[Path]) -> MissingError:
    what = f"no training file; it holds {listed(sorted(path.name for path in files))}"
    fix = "a folder needs train.SOURCE and train.TARGET, or train.tsv, train.csv or train.jsonl"
    if within := [path for path in files if where.is_dir() and _may_hold_pairs(path)]:
        fix = f"name what is in it: --data {within[0]}"
    return MissingError(what, where=str(where), fix=fix)
