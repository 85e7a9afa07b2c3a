"""Texts with what is to be said of them: a label, several, a number, or which of some choices is right."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Literal

from heedful.data.lines import csv_cells, json_lines, named_cells, read_lines, tsv_cells
from heedful.data.parts import Parts, kind_of, read_parts
from heedful.errors import InputError

Answer = Literal["label", "labels", "score", "choice"]
TABLES = (".tsv", ".csv", ".jsonl", ".txt")  # txt is read as tsv
COLUMNS = ("text", "pair", "label", "score")
EXAMPLE = 'write {"text": "...", "label": "..."} on each line'


@dataclass(frozen=True)
class Example:
    """One of `label`, `labels`, `score` and `choice` (an index of `choices`) is the answer."""

    text: str
    pair: str = ""  # a second text; of a multiple choice, the question
    label: str = ""
    labels: tuple[str, ...] = ()
    score: float = 0.0
    choices: tuple[str, ...] = ()
    choice: int = 0


@dataclass(frozen=True)
class Labelled(Parts[list[Example]]):
    """What a classifier is trained and measured on, and what it is to answer."""

    answer: Answer = field(kw_only=True)


def read_labelled(path: str | Path) -> Labelled:
    """Reads a file, or a folder with files named train*, valid* (val, dev) and test*; any may be gzipped.

    - .jsonl: objects with "text", perhaps a second text "pair", and one of "label", "labels" (a list), "score" (a
      number), or "choices" (a list) with the index or the text of the right one as "label", and then perhaps a
      "question".
    - .tsv, .txt, .csv: columns text, label or text, pair, label; or others under a header of the names text, pair,
      label, score.

    Without a part to validate on, a tenth of the training examples is held out, chosen by a hash of their text. Raises
    InputError or MissingError.
    """
    answers: dict[Path, Answer] = {}

    def read(file: Path) -> list[Example]:
        answers[file], examples = read_examples(file)
        first = next(iter(answers))
        if answers[file] != answers[first]:
            what = f"holds a {answers[file]}, and {first.name} a {answers[first]}"
            raise InputError(what, where=str(file), fix=EXAMPLE)
        return examples

    parts = read_parts(path, read, kinds=TABLES, key=lambda one: one.text)
    answer = next(iter(answers.values()))
    return Labelled(parts.train, parts.valid, parts.tests, parts.name, parts.files, parts.notes, answer=answer)


def read_examples(path: str | Path) -> tuple[Answer, list[Example]]:
    """What the examples of one file answer, the same for all, and the examples. Raises InputError or MissingError."""
    path = Path(path)
    kind, lines = kind_of(path), read_lines(path)
    if kind not in TABLES:
        raise InputError("not a kind of file that examples are read from", where=str(path), fix="give .tsv or .jsonl")
    rows: Iterator[tuple[str, dict[str, object]]]
    if kind == ".jsonl":
        rows = _objects(path, lines)
    else:
        rows = _table(path, csv_cells(path, lines) if kind == ".csv" else tsv_cells(lines))
    answer: Answer | None = None
    examples = []
    for where, row in rows:
        found, example = _example(row, where)
        if answer is not None and found != answer:
            raise InputError(f"holds a {found}, and the lines above a {answer}", where=where, fix=EXAMPLE)
        answer = found
        examples.append(example)
    if answer is None:
        raise InputError("no example", where=str(path), fix=EXAMPLE)
    return answer, examples


def _objects(path: Path, lines: Sequence[str]) -> Iterator[tuple[str, dict[str, object]]]:
    for where, row in json_lines(path, lines):
        if not isinstance(row, dict):
            raise InputError("not an object", where=where, fix=EXAMPLE)
        yield where, row


def _table(path: Path, rows: Iterator[tuple[int, list[str]]]) -> Iterator[tuple[str, dict[str, object]]]:
    number, first = next((row for row in rows if row[1]), (1, []))
    names = [cell.strip().lower() for cell in first]
    if "text" in names and {"label", "score"} & set(names):
        header = names
    else:
        header = {2: ["text", "label"], 3: ["text", "pair", "label"]}.get(len(first), [])
        if not header:
            what = f"{len(first)} column{'s' if len(first) > 1 else ''}, expected text, label or text, pair, label"
            fix = f"or a first line that names the columns, among them {', '.join(COLUMNS)}"
            raise InputError(what, where=f"{path}:{number}", fix=fix)
        rows = chain([(number, first)], rows)
    for where, row in named_cells(path, rows, header):
        yield where, {name: cell for name, cell in row.items() if name in COLUMNS}


def _example(row: dict[str, object], where: str) -> tuple[Answer, Example]:
    text, pair = _text(row, "text", where), ""
    if row.get("pair") or row.get("question"):
        pair = _text(row, "pair" if row.get("pair") else "question", where)
    if "choices" in row:
        choices = tuple(_texts(row, "choices", where))
        label = choices.index(row["label"]) if row.get("label") in choices else row.get("label")
        if not isinstance(label, int) or not 0 <= label < len(choices):
            what = f"the label {row.get('label')!r} is none of {len(choices)} choices"
            raise InputError(what, where=where, fix="give the text of the right one, or its index from 0")
        return "choice", Example(text, pair, choices=choices, choice=label)
    if "labels" in row:
        return "labels", Example(text, pair, labels=tuple(_texts(row, "labels", where)))
    if "score" in row:
        try:
            return "score", Example(text, pair, score=float(row["score"]))  # type: ignore[arg-type]
        except (TypeError, ValueError):
            raise InputError(f"the score {row['score']!r} is not a number", where=where) from None
    label = row.get("label")
    if not isinstance(label, str | int) or label == "":
        raise InputError('no "label"', where=where, fix=EXAMPLE)
    return "label", Example(text, pair, label=str(label))


def _text(row: dict[str, object], key: str, where: str) -> str:
    value = row.get(key)
    if not isinstance(value, str) or not value.strip():
        raise InputError(f'no "{key}" that is a text', where=where, fix=EXAMPLE)
    return value


def _texts(row: dict[str, object], key: str, where: str) -> list[str]:
    value = row[key]
    if not isinstance(value, list) or not all(isinstance(item, str | int) for item in value):
        raise InputError(f'"{key}" is not a list of texts', where=where, fix=f'write "{key}": ["...", "..."]')
    if key == "choices" and len(value) < 2:
        raise InputError("fewer than two choices", where=where, fix="give two or more")
    return [str(item) for item in value]
