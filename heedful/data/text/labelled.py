"""Texts with answers for classifiers: a label, several labels, a number, or the right one of several choices."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from math import isfinite
from pathlib import Path
from typing import Literal

from heedful.data.lines import first_few, json_lines, json_type, listed, named_cells, read_lines, sanitise
from heedful.data.parts import Parts, kind_of, part_of, read_parts
from heedful.data.tables import table_cells
from heedful.errors import InputError, counted

AnswerKind = Literal["label", "labels", "score", "choice"]
TABLES = (".tsv", ".csv", ".jsonl", ".txt")  # .txt is read as .tsv
COLUMNS = {  # columns, and their other names
    "text": "sentence review content comment tweet message headline sentence1 sentence_a premise",
    "pair": "sentence2 sentence_b hypothesis",
    "label": "class category sentiment topic intent",
    "score": "rating",
}
ANSWERS = {"label", "score"}  # an example has one of them, or "labels"; with "choices", the label is the right choice
FASTTEXT = "__label__"
LONGEST_NAME = 3  # words in the name of a column
MOST_LABELS, REPEATED = 200, 3  # lines begin with a label if there are at most so many, each repeated so often
MANY = 20  # examples; where most of as many have labels of their own, these are hardly labels
OF_PAIRS = "pairs of texts, heed train translate learns them"
EXAMPLE = 'write {"text": "...", "label": "..."} on each line'


@dataclass(frozen=True)
class Example:
    """One of `label`, `labels`, `score` and `choice` (an index of `choices`) is the answer."""

    text: str
    pair: str = ""  # a second text; with choices, the question
    label: str = ""
    labels: tuple[str, ...] = ()
    score: float = 0.0
    choices: tuple[str, ...] = ()
    choice: int = 0


@dataclass(frozen=True)
class Labelled(Parts[list[Example]]):
    """The data that a classifier is trained and measured on, and the kind of its answers."""

    answer: AnswerKind = field(kw_only=True)


def read_labelled(path: str | Path) -> Labelled:
    """Reads a file, or a folder with files named train*, valid* (val, dev) and test*; any may be gzipped.

    - .jsonl: objects with "text", perhaps a second text "pair", and one of "label", "labels" (a list), "score" (a
      number), or "choices" (a list) with the index or the text of the right one as "label", and perhaps a "question".
    - .tsv, .txt, .csv: columns text, label or text, pair, label, or the label first if only the first column has few
      different values; or others under a header with the names text, pair, label, score, or others such as sentence
      and category. The first lines determine the separator.
    - .txt, .tsv: lines that begin with a label and a space: all with `__label__`, or all with one of few words.

    Without validation data, a tenth of the training examples is held out, by a hash of their text, except those with
    labels that no other example has. Raises InputError or MissingError.
    """
    answers: dict[Path, AnswerKind] = {}
    labels: dict[str, list[str]] = {}  # of each training file
    notes: list[str] = []

    def read(file: Path) -> list[Example]:
        answers[file], examples, layout = _read(file)
        notes.extend([f"{file}: {layout}"] if layout else [])
        if part_of(file) == "train":
            labels[file.name] = sorted({example.label for example in examples})
        first = next(iter(answers))
        if answers[file] != answers[first]:
            what = f"holds a {answers[file]}, and {first.name} a {answers[first]}"
            raise InputError(what, where=str(file), fix=EXAMPLE)
        return examples

    parts = read_parts(path, read, kinds=TABLES, key=lambda one: one.text)
    answer = next(iter(answers.values()))
    if len({*map(tuple, labels.values())}) > 1:
        each = "; ".join(f"{name}: {first_few(own, 6)}" for name, own in labels.items())
        notes.append(f"{path}: the training files have different labels, and all are learnt ({each})")
    notes.extend(parts.notes)
    given = Path(path).is_dir() and any(part_of(file) == "valid" for file in parts.files)
    train, valid = (parts.train, parts.valid) if given else _with_all_labels(parts.train, parts.valid)
    different = len({one.label for one in (*train, *valid)}) if answer == "label" else 0
    if len(train) >= MANY and different > len(train) / 2:
        what = f"{different:,} different labels of {len(train) + len(valid):,} examples"
        if {one.label for one in valid}.isdisjoint(one.label for one in train):
            raise InputError(f"{what}, none of which can be measured", where=str(path), fix=f"if these are {OF_PAIRS}")
        notes.append(f"{path}: {what}: most cannot be learnt; if these are {OF_PAIRS}")
    if back := len(parts.valid) - len(valid):
        notes.append(f"{path}: {back:,} of them are learnt after all: nothing else has their labels")
    return Labelled(train, valid, parts.tests, parts.name, parts.files, tuple(notes), answer=answer)


def _with_all_labels(train: list[Example], held: list[Example]) -> tuple[list[Example], list[Example]]:
    """Moves held-out examples back to the training data if their labels are missing there, unless none would stay held
    out."""
    known = {label for one in train for label in (one.label, *one.labels)}
    back = {one.text for one in held if not known.issuperset((one.label, *one.labels))}
    rest = [one for one in held if one.text not in back]
    return ([*train, *(one for one in held if one.text in back)], rest) if rest else (train, held)


def read_examples(path: str | Path) -> tuple[AnswerKind, list[Example]]:
    """Returns the kind of answer of a file, which is the same for all its examples, and the examples. Raises InputError
    or MissingError."""
    return _read(Path(path))[:2]


def _read(path: Path) -> tuple[AnswerKind, list[Example], str]:
    """Also returns a note on the layout, where it could have been read otherwise."""
    kind = kind_of(path)
    if path.is_file() and kind not in TABLES:
        fix = f"save it as one of {' '.join(TABLES)}"
        raise InputError("not a kind of file that examples are read from", where=str(path), fix=fix)
    lines = read_lines(path)
    rows: Iterable[tuple[str, dict[str, object]]]
    layout = ""
    if kind == ".jsonl":
        rows = _objects(path, lines)
    elif found := None if kind == ".csv" else _beginning_with_labels(path, lines):
        rows, layout = found
    else:
        rows, layout = _table(path, lines)
    answer: AnswerKind | None = None
    examples = []
    for where, row in rows:
        own, example = _example(row, where)
        if answer is not None and own != answer:
            raise InputError(f"holds a {own}, and the lines above a {answer}", where=where, fix=EXAMPLE)
        answer = own
        examples.append(example)
    if answer is None:
        raise InputError("no example", where=str(path), fix=EXAMPLE)
    return answer, examples, layout


def _objects(path: Path, lines: Sequence[str]) -> Iterator[tuple[str, dict[str, object]]]:
    for where, row in json_lines(path, lines):
        if not isinstance(row, dict):
            raise InputError("not an object", where=where, fix=EXAMPLE)
        _refuse_two_of_one([*row], where)
        if "choices" not in row:
            _refuse_two_answers([*row], ANSWERS | {"labels"}, where)
        yield where, dict(zip(_columns([*row]), row.values(), strict=True))


def _columns(names: Sequence[str]) -> list[str]:
    """Returns for each name the column of `COLUMNS` that it stands for, unless another name is that column's own, or
    another answer's; otherwise the name."""
    called = ANSWERS | {*names} if ANSWERS & {*names} else {*names}
    known = {other: column for column, own in COLUMNS.items() if column not in called for other in own.split()}
    return [known.get(name, name) for name in names]


def _refuse_two_of_one(names: Sequence[str], where: str) -> None:
    """Raises InputError if two names stand for the same column of `COLUMNS`."""
    columns = _columns(names)
    for column in COLUMNS:
        if len(same := [repr(name) for name, own in zip(names, columns, strict=True) if own == column]) > 1:
            what = f"{' and '.join(same)} may be the {column}"
            raise InputError(what, where=where, fix=f"call the one that is meant {column!r}")


def _refuse_two_answers(names: Sequence[str], answers: Collection[str], where: str) -> None:
    """Raises InputError if two names may be the answer: of the names in `answers`, or else of those that stand for
    one."""
    called = [name for name in names if name in answers]
    called = called or [name for name, own in zip(names, _columns(names), strict=True) if own in answers]
    if len(called) > 1:
        what = f"{' and '.join(map(repr, called))} may each be the answer"
        raise InputError(what, where=where, fix="leave all but one of them out, or rename them")


def _header(cells: Sequence[str]) -> list[str]:
    """Returns the columns that the cells name; empty unless they include a text, and a label or score."""
    plain = [cell.strip().lower() for cell in cells]
    names = _columns(plain)
    once = all(names.count(column) < 2 for column in COLUMNS)
    return names if "text" in names and {"label", "score"} & set(names) and once else []


def _half_named(where: str, first: Sequence[str], below: Sequence[Sequence[str]]) -> list[str]:
    """Returns the columns of a header in which one name is unknown but follows from the others; empty if the line is an
    example: a cell comes again below, or is longer than a name. Raises InputError if more than one is unknown."""
    plain = [cell.strip().lower() for cell in first]
    names = _columns(plain)
    if {*names} <= COLUMNS.keys():
        _refuse_two_of_one(plain, where)  # it is a header, not an example
    if not 1 < len(first) <= 3 or not below or not COLUMNS.keys() & {*names}:
        return []
    again = (cells[at] == cell for cells in below if len(cells) == len(first) for at, cell in enumerate(first))
    if max(len(name.split()) for name in plain) > LONGEST_NAME or any(again):
        return []
    absent = [column for column, own in (("text", {"text"}), ("label", ANSWERS)) if not own & {*names}]
    unknown = [at for at, name in enumerate(names) if name not in COLUMNS]
    if len(absent) != 1 or len(unknown) != 1:
        what = f"a header that names {listed(plain)}: which is the text, and which the label?"
        raise InputError(what, where=where, fix="call them text and label")
    names[unknown[0]] = absent[0]
    return names


def _table(path: Path, lines: list[str]) -> tuple[Iterator[tuple[str, dict[str, object]]], str]:
    between, rows = table_cells(path, lines, lambda cells: bool(_header(cells)))
    number, first = next((row for row in rows if row[1]), (1, []))
    header, layout = _header(first), ""
    if not header:
        below = [*rows]
        header = _half_named(f"{path}:{number}", first, [cells for _, cells in below])
        rows = iter(below)
    if header:
        plain = [cell.strip() for cell in first]
        _refuse_two_answers([name.lower() for name in plain], ANSWERS, f"{path}:{number}")
        renamed = [f"{own!r} is the {name}" for own, name in zip(plain, header, strict=True) if own.lower() != name]
        layout = f"separated by {between}, {', '.join(renamed)}" if renamed else ""
    else:
        header = {2: ["text", "label"], 3: ["text", "pair", "label"]}.get(len(first), [])
        if not header:
            what = f"{counted(len(first), 'column')}, expected text, label or text, pair, label"
            fix = f"or a first line that names the columns, among them {', '.join(COLUMNS)}"
            raise InputError(what, where=f"{path}:{number}", fix=fix)
        every = [(number, first), *rows]
        first_cells, last_cells = ([cells[at] for _, cells in every if cells] for at in (0, -1))
        if _are_labels(first_cells) and not _are_labels(last_cells):
            header = [header[-1], *header[:-1]]
            layout = f"separated by {between}, the label is the first column"
        rows = iter(every)
    named = named_cells(path, rows, header)
    return ((where, {name: cell for name, cell in row.items() if name in COLUMNS}) for where, row in named), layout


def _are_labels(words: Collection[str]) -> bool:
    """Whether few different words are repeated often enough to be labels."""
    return 2 <= len({*words}) <= min(MOST_LABELS, len(words) // REPEATED)


def _beginning_with_labels(path: Path, lines: list[str]) -> tuple[list[tuple[str, dict[str, object]]], str] | None:
    """Returns the rows of lines that begin with a label, as in TREC and fastText, and a note; None if the lines need
    not be such."""
    numbered = [(f"{path}:{number}", line.split()) for number, line in enumerate(lines, 1) if line.strip()]
    labels = {words[0] for _, words in numbered}
    if all(label.startswith(FASTTEXT) for label in labels):
        return _fasttext(numbered)
    few = _are_labels([words[0] for _, words in numbered])
    if not few or any("\t" in line for line in lines) or any(len(words) < 2 for _, words in numbered):
        return None
    rows: list[tuple[str, dict[str, object]]] = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            label, text = line.split(maxsplit=1)
            rows.append((f"{path}:{number}", {"label": label, "text": text}))
    return rows, f"each line is read as a label and a text: {len(labels)} labels ({first_few(sorted(labels), 6)})"


def _fasttext(numbered: list[tuple[str, list[str]]]) -> tuple[list[tuple[str, dict[str, object]]], str]:
    single = all(len(words) < 2 or not words[1].startswith(FASTTEXT) for _, words in numbered)
    rows: list[tuple[str, dict[str, object]]] = []
    for where, words in numbered:
        marks = [word.removeprefix(FASTTEXT) for word in takewhile(lambda word: word.startswith(FASTTEXT), words)]
        answer: dict[str, object] = {"label": marks[0]} if single else {"labels": marks}
        rows.append((where, answer | {"text": " ".join(words[len(marks) :])}))
    return rows, f"each line is read as {FASTTEXT}LABEL and a text"


def _example(row: dict[str, object], where: str) -> tuple[AnswerKind, Example]:
    text, pair = _text(row, "text", where), ""
    if row.get("pair") or row.get("question"):
        pair = _text(row, "pair" if row.get("pair") else "question", where)
    if "choices" in row:
        choices = tuple(_texts(row, "choices", where))
        label = choices.index(row["label"]) if row.get("label") in choices else row.get("label")
        if not isinstance(label, int) or isinstance(label, bool) or not 0 <= label < len(choices):
            what = f"the label {row.get('label')!r} is none of {len(choices)} choices"
            raise InputError(what, where=where, fix="give the text of the right one, or its index from 0")
        return "choice", Example(text, pair, choices=choices, choice=label)
    if "labels" in row:
        return "labels", Example(text, pair, labels=tuple(dict.fromkeys(_texts(row, "labels", where))))
    if "score" in row:
        return "score", Example(text, pair, score=_number(row["score"], where))
    label = row.get("label")
    if label is not None and not isinstance(label, str | int):
        fix = 'write a text or a whole number, in a list called "labels" where there are several; of numbers a "score"'
        raise InputError(f"the label {str(label)[:40]} is {json_type(label)}", where=where, fix=fix)
    if label is None or not str(label).strip():
        raise InputError('no "label"', where=where, fix=EXAMPLE)
    return "label", Example(text, pair, label=_plain(label).strip())


def _number(value: object, where: str) -> float:
    try:
        found = float(value) if isinstance(value, str | float) or type(value) is int else float("nan")
    except ValueError:
        found = float("nan")
    if not isfinite(found):
        raise InputError(f"the score {value!r} is not a number", where=where, fix="give one, such as 3.5")
    return found


def _text(row: dict[str, object], key: str, where: str) -> str:
    value = row.get(key)
    if not isinstance(value, str) or not value.strip():
        raise InputError(f'no "{key}" that is a text', where=where, fix=EXAMPLE)
    return sanitise(value)


def _texts(row: dict[str, object], key: str, where: str) -> list[str]:
    value = row[key]
    if not isinstance(value, list) or not all(isinstance(item, str | int) for item in value):
        raise InputError(f'"{key}" is not a list of texts', where=where, fix=f'write "{key}": ["...", "..."]')
    if key == "choices" and len(value) < 2:
        raise InputError("fewer than two choices", where=where, fix="give two or more")
    return [*map(_plain, value)]


def _plain(value: str | int) -> str:
    """Converts a label to text; true and false as in JSON."""
    return sanitise(str(value).lower() if isinstance(value, bool) else str(value))
