"""Training, validation and test data: which files are which part, and what is held out if a part is missing."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from heedful.core.seeds import hashed
from heedful.data.lines import unreadable
from heedful.errors import InputError, MissingError, counted

if TYPE_CHECKING:
    from heedful.data.stored import Prepared  # with numpy

E = TypeVar("E")  # the examples of a part: a list, or an object with pictures
Row = TypeVar("Row")
Notes = tuple[str, ...]  # for the user
SPLITS = re.compile(
    r"(?P<train>train(?:ing|set)?)|(?P<valid>(?:validation|valid|val|dev)(?:set)?)|(?P<test>test(?:ing|set)?)"
)
FEWEST = 16  # examples, the fewest to measure a model on
SHARE, MOST = 10, 2000  # without validation data, one example in SHARE is held out, at most MOST


@dataclass(frozen=True)
class Parts(Generic[E]):
    """The data that a model is trained and measured on. `notes` are lines for the user, `taken` those on how files were
    read."""

    train: E
    valid: E
    tests: Mapping[str, E]
    name: str
    files: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()
    # The files that are not trained on, if this is not known by their names.
    apart: tuple[Path, ...] | None = field(default=None, kw_only=True)
    taken: tuple[str, ...] = field(default=(), kw_only=True)
    # All training examples, of which `train` then has but a sample.
    prepared: "Prepared[Any] | None" = field(default=None, kw_only=True)

    def scored(self) -> Mapping[str, E]:
        """Returns the tests, or the validation data if there are none."""
        return self.tests or {"valid": self.valid}

    def named(self) -> dict[str, E]:
        return {"train": self.train, "valid": self.valid, **self.tests}


@dataclass(frozen=True)
class PictureParts(Parts[E]):
    """Parts of pictures: the channels of all, and the rows and columns of the median training picture."""

    channels: int = field(kw_only=True)
    size: tuple[int, int] = field(kw_only=True)


def spread(count: int, share: float, *, fewest: int = FEWEST) -> list[int]:
    """Returns the indices of this share of `count` examples, evenly spread, at least `fewest` if there are as many."""
    return some_of(count, max(fewest, round(share * count)))


def some_of(count: int, most: int) -> list[int]:
    """Returns the indices of at most `most` of `count` examples, evenly spread: examples are often sorted by language,
    label or source."""
    chosen = min(count, most)
    return [i * count // chosen for i in range(chosen)]


def part_files(path: Path, kinds: Sequence[str]) -> list[Path]:
    """A file, or the files of these `kinds` in a folder. Raises MissingError."""
    return _files(path, kinds) if path.is_dir() else [path]


def read_parts(
    path: str | Path,
    read: Callable[[Path], list[Row]],
    *,
    kinds: Sequence[str],
    key: Callable[[Row], str],
    within: Callable[[Row], str] = lambda row: "",
) -> Parts[list[Row]]:
    """Reads a file, or the files of these `kinds` in a folder: named train*, valid* (val, dev) and test*, or as those
    of Universal Dependencies; any may be gzipped.

    Without validation data, a tenth of the training examples is held out, by a hash of their `key`: all examples with
    one key together; with `within`, a tenth of each group. Raises InputError or MissingError.
    """
    path = Path(path)
    found = part_files(path, kinds)
    train, valid, tests = sorted_in((file.name if path.is_dir() else "train", read(file)) for file in found)
    if not train:
        raise MissingError("no training file", where=str(path), fix=f"add train{kinds[0]}")
    train, valid, notes = held_out(train, valid, key, noun="example", where=path, most=MOST, within=within)
    notes += learnt_too(train, {"valid": valid, **stems(tests)}, key)
    apart = None if path.is_dir() else ()
    return Parts(train, valid, stems(tests), str(path), tuple(found), notes, apart=apart)


def learnt_too(train: Iterable[Row], others: Mapping[str, Collection[Row]], key: Callable[[Row], str]) -> Notes:
    """Returns notes on how many validation and test examples share their `key` with a training example."""
    known = set(map(key, train))
    shared = {name: sum(key(row) in known for row in part) for name, part in others.items()}
    return told_of_shared(shared, {name: len(part) for name, part in others.items()})


def told_of_shared(shared: Mapping[str, int], sizes: Mapping[str, int]) -> Notes:
    """Notes on how many examples of each part are also learnt from."""
    return tuple(
        f"{name}: {count:,} of {sizes[name]:,} share their text with what is learnt from"
        for name, count in shared.items()
        if count
    )


def read_tests(path: str | Path, read: Callable[[Path], list[Row]], *, kinds: Sequence[str]) -> dict[str, list[Row]]:
    """Reads the examples of a file, or of a folder's test files, by name. Raises InputError or MissingError."""
    path = Path(path)
    if not path.is_dir():
        return {path.name: read(path)}
    tests = stems({file.name: read(file) for file in _files(path, kinds) if part_of(file) == "test"})
    if not tests:
        raise MissingError("no file named test*", where=str(path), fix="give a file")
    return tests


def _files(folder: Path, kinds: Sequence[str]) -> list[Path]:
    return [file for file in entries(folder) if file.is_file() and kind_of(file) in kinds]


def entries(folder: Path, *, hidden: tuple[str, ...] = (".",)) -> list[Path]:
    """Lists a folder's entries by name, except those that begin with one of `hidden`. Raises MissingError or
    InputError."""
    try:
        return sorted(entry for entry in folder.iterdir() if not entry.name.startswith(hidden))
    except OSError as error:
        raise unreadable(folder, error) from None


def kind_of(file: Path) -> str:
    """Returns the suffix of a file in lower case, without .gz: for "TRAIN.JSONL.gz" it is ".jsonl"."""
    return Path(file.name.lower().removesuffix(".gz")).suffix


def part_of(file: Path) -> str:
    """The part of a file, "train", "valid" or "test", by the first word of its name, or the first word after a dot:
    "test_2016" and "sst2.test" are tests, "testament" is not. In Universal Dependencies it is the word after "-ud-"."""
    return named_part(file.name) or "train"


def named_part(name: str) -> str | None:
    """Returns the part as `part_of`, but None if the name does not say it."""
    words = (re.split(r"[^a-z]", piece)[0] for piece in name.lower().rpartition("-ud-")[2].split("."))
    found = next(filter(None, map(SPLITS.fullmatch, words)), None)
    return found.lastgroup if found else None


def part_within(name: str) -> str | None:
    """Returns the part as `named_part`, or else by any word: "instances_val2017" is validation data, "seg_test" a
    test."""
    return named_part(name) or next(filter(None, map(named_part, re.split(r"[^a-z]+", name.lower()))), None)


def is_part(name: str) -> bool:
    """Whether a folder is named like a part."""
    return named_part(name) is not None or name.lower().startswith("train")


def are_parts(names: Collection[str]) -> bool:
    """Whether all folders are named like parts: by their first words, or by any word if some are for training and some
    are not."""
    within = set(map(part_within, names))
    return bool(names) and (all(map(is_part, names)) or (len(within) > 1 and "train" in within and None not in within))


def sorted_pictures(rows: Iterable[tuple[str, list[Row]]]) -> tuple[list[Row], list[Row], dict[str, list[Row]]]:
    """As `sorted_in`, but any word of a name may say the part."""
    return sorted_in(rows, lambda name: part_within(name) or "train")


def tests_in(rows: Mapping[str, E]) -> Mapping[str, E]:
    """Returns the parts with the word test in their names, or all if there is none."""
    return {name: own for name, own in rows.items() if part_within(name) == "test"} or rows


def sorted_in(
    rows: Iterable[tuple[str, list[Row]]], part: Callable[[str], str] = lambda name: part_of(Path(name))
) -> tuple[list[Row], list[Row], dict[str, list[Row]]]:
    """Returns the training rows, the validation rows, and the tests by name, from (name, rows) pairs whose names say
    the part."""
    parts: dict[str, list[Row]] = {"train": [], "valid": []}
    tests = {}
    for name, own in rows:
        if part(name) == "test":
            tests[name] = own
        else:
            parts[part(name)] += own
    return parts["train"], parts["valid"], tests


def scored_by_name(tests: Mapping[str, E], path: str | Path) -> dict[str, E]:
    """Returns the parts to score by name: the whole of a file, or of a folder without parts, gets the name of the
    path."""
    path = Path(path).resolve()
    whole = [*tests] == ["train"] or (path.is_file() and [*tests] == [path.stem])
    return {path.name if whole else name: part for name, part in tests.items()}


def stems(parts: Mapping[str, E]) -> dict[str, E]:
    """Renames the parts from file names to names without suffixes, unless several would then be the same."""
    short = Counter(name.split(".")[0] for name in parts)
    return {name if short[stem := name.split(".")[0]] > 1 else stem: part for name, part in parts.items()}


def hold_out(weights: Mapping[str, int], room: int, *, parts: int = 1) -> list[Collection[str]]:
    """Chooses the keys of each of `parts` parts: in the order of their hashes, as many as fit into `room` by their
    `weights`, and at least one. The choice is the same on every machine, and changes little when data are added."""
    rest, chosen = sorted(weights, key=hashed), list[Collection[str]]()
    for _ in range(parts):
        held, left = set[str](), room
        for key in rest:
            if weights[key] <= left:
                held.add(key)
                left -= weights[key]
            if not left:
                break
        chosen.append(held or {min(rest, key=weights.__getitem__)})
        rest = [key for key in rest if key not in chosen[-1]]
    return chosen


def held_out(
    rows: list[Row],
    valid: list[Row],
    key: Callable[[Row], str],
    *,
    noun: str,
    where: Path,
    most: int | None = None,
    within: Callable[[Row], str] = lambda row: "",
) -> tuple[list[Row], list[Row], tuple[str, ...]]:
    """Returns the training rows, the validation rows, and notes. If `valid` is empty, it is held out of the rows: a
    tenth of the keys, at least one and at most `most`, all rows of one key together; with `within`, a tenth of each
    group. Raises InputError if nothing can be held out."""
    if valid:
        return rows, valid, ()
    groups: dict[str, dict[str, int]] = {}
    for row in rows:
        groups.setdefault(within(row), {})[key(row)] = 1
    held: set[tuple[str, str]] = set()
    for group, keys in groups.items():
        if len(keys) > 1:
            room = min(most or len(keys), max(1, len(keys) // SHARE))
            held |= {(group, name) for name in hold_out(keys, room)[0]}
    if not held:
        raise nothing_to_hold_out(f"one {noun} {'of each label' if len(groups) > 1 else 'alone'}", where)
    kept = [row for row in rows if (within(row), key(row)) not in held]
    out = [row for row in rows if (within(row), key(row)) in held]
    return kept, out, (told_of_held(where, len(out), noun),)


def told_of_held(where: object, count: int, noun: str) -> str:
    """A note on so many examples that are held out."""
    return f"{where}: {counted(count, noun)} held out for validation"


def nothing_to_hold_out(what: str, where: object) -> InputError:
    fix = "give more, or a part to validate on"
    return InputError(f"{what}, expected more, as some are held out", where=str(where), fix=fix)
