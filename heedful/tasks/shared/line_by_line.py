"""Reads inputs and prints answers, each as soon as it is known, one for each line of standard input. It imports no
torch.

People paste the answers beside the input file, so a line that has no answer must neither end the work nor shift the
others: its answer is an empty line (several lines where answers have several; with --json a record with the error). A
warning names it at once, and the command ends with their number and exit code 2. Likewise a picture that cannot be read
does not end the work on the others.
"""

import os
import select
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from heedful.errors import InputError, MissingError, TextError
from heedful.tasks.shared.terminal import LineCount, printable, say, tell

Record = Mapping[str, Any]
Answers = Callable[[list[str], int], Iterable[Sequence[Record]]]  # gets texts, and the number of the first, from 0

R = TypeVar("R")
T = TypeVar("T")
GROUP = 512  # lines that are answered together, at most
CHUNK = 65536  # bytes that are read at a time
TOGETHER = 32  # pictures that are answered together


def answer_lines(
    inputs: Sequence[str] | None,
    answers: Answers,
    show: Callable[[Any], str | Iterable[str]],
    *,
    as_json: bool,
    each: int = 1,
) -> None:
    """Prints the answers to the texts of the command line or, without any, to the lines of standard input.

    `answers` gives the records of each text; `show` turns a record into text for people, of `each` lines. A record's
    "warning" is printed to standard error. Raises InputError at the end if a text had no answer, as one that is not
    UTF-8.
    """
    if inputs:
        for text in inputs:
            if os.path.splitext(text)[1] and os.path.isfile(text):
                name = printable(text)
                say(f"warning: {name} is a text here, though there is such a file: < {name} gives its lines")
        for number, records in enumerate(answers(_arguments(inputs), 0), 1):
            _tell(records, show, f"text {number}" if len(inputs) > 1 else "", as_json=as_json)
        return
    answer_groups(
        text_groups(),
        answers,
        show,
        named=lambda number: f"<stdin>:{number + 1}",
        name="<stdin>",
        as_json=as_json,
        each=each,
        progress=LineCount(comes_from_a_file()),
    )


def answer_groups(
    groups: Iterable[list[T] | TextError],
    answers: Callable[[list[T], int], Iterable[Sequence[Record]]],
    show: Callable[[Any], str | Iterable[str]],
    *,
    named: Callable[[int], str],
    name: str,
    as_json: bool,
    each: int = 1,
    progress: LineCount | None = None,
) -> None:
    """The same for inputs of any kind, in groups; an error stands for an input that cannot be read. `named` gives the
    place of an input by its number, from 0; `name` is their common source."""
    progress, refused, number = progress or LineCount(False), 0, 0
    for group in groups:
        inputs: list[Any] = [""] if isinstance(group, TextError) else group
        answered = iter([group]) if isinstance(group, TextError) else _answered(answers, inputs, number)
        for one, found in zip(inputs, answered, strict=True):
            where = named(number)
            number += 1
            progress.clear()
            if isinstance(found, TextError):
                refused += 1
                say(f"warning: {where}: {found.what}; it has no answer")
                tell({"line": number, "input": one, "error": found.what}, [""] * each, as_json=as_json)
            else:
                _tell(found, show, where, as_json=as_json)
        progress.draw(number)
    progress.clear()
    if refused:
        what = f"{refused:,} of {number:,} lines have no answer"
        raise InputError(what, where=name, fix="see the warnings; an empty line stands for each")


def given(inputs: Sequence[str] | None) -> Iterator[list[str]]:
    """The arguments of the command line as one group; without any, the lines of standard input in groups. They are file
    names, and need not be UTF-8."""
    yield from [list(inputs)] if inputs else ([os.fsdecode(line) for line in lines] for lines in byte_groups())


def answers_to_pictures(
    inputs: Sequence[str] | None,
    answers: Callable[[list[str]], Iterable[T]],
    *,
    as_json: bool,
    together: int = TOGETHER,
    noun: str = "picture",
) -> Iterator[tuple[str, T]]:
    """The files of pictures (or of another `noun`) of the command line or of standard input, each with its answer;
    `answers` answers a list of them. One that cannot be read gets a warning at once. Raises InputError at the end if
    there were such; for a single file, its own InputError or MissingError."""
    if inputs and len(inputs) == 1:
        yield from zip(inputs, answers([*inputs]), strict=True)
        return
    refused, number = 0, 0
    for group in given(inputs):
        for files in (group[first : first + together] for first in range(0, len(group), together)):
            for file, found in zip(files, _or_why_not(answers, files), strict=True):
                number += 1
                if isinstance(found, InputError | MissingError):
                    refused += 1
                    say(f"warning: {found}; it has no answer")
                    tell({"input": file, "error": found.what}, [], as_json=as_json)
                else:
                    yield file, found
    if refused:
        what = f"{refused:,} of {number:,} {noun}s have no answer"
        raise InputError(what, fix="see the warnings: copy these again, or take them out")


def _or_why_not(
    answers: Callable[[list[str]], Iterable[T]], files: list[str]
) -> Iterator[T | InputError | MissingError]:
    """The answer to each picture, or its error: where one of several fails, each is answered by itself."""
    try:
        found = list(answers(files))
    except (InputError, MissingError) as error:
        if len(files) == 1:
            yield error
            return
        for file in files:
            yield from _or_why_not(answers, [file])
    else:
        yield from found


def in_two(text: str, inputs: Sequence[str] | None) -> tuple[str, str]:
    """The two columns of a line of standard input, separated by a TAB; a text of the command line has only one."""
    first, _, second = (text, "", "") if inputs else text.partition("\t")
    return first, second


def one_each(records: Iterable[R]) -> Iterator[Sequence[R]]:
    """The form of `Answers`, for texts that have one record each."""
    return ([record] for record in records)


def comes_from_a_file() -> bool:
    """Whether standard input is a regular file."""
    return stat.S_ISREG(os.fstat(_descriptor()).st_mode)


def _descriptor() -> int:
    """The descriptor of standard input; where that was closed, of its replacement: 0 may be another open file."""
    return 0 if sys.__stdin__ is not None else sys.stdin.fileno()


def text_groups() -> Iterator[list[str] | TextError]:
    """The lines of standard input, in groups of those that are available, at most GROUP: a program that writes a line
    and waits gets its answer. An error stands for a line that is not UTF-8. Raises InputError for UTF-16."""
    from heedful.data.lines import decoded_line

    number = 0
    for lines in byte_groups():
        texts = []
        for line in lines:
            number += 1
            try:
                texts.append(decoded_line(line, "<stdin>", number))
            except TextError as error:
                if texts:
                    yield texts
                yield error
                texts = []
        if texts:
            yield texts


def byte_groups() -> Iterator[list[bytes]]:
    """The same as bytes, without the line ends."""
    lines: list[bytes] = []
    begun: list[bytes] = []  # the parts of an incomplete line
    while data := os.read(_descriptor(), CHUNK):
        begun.append(data)
        if b"\n" in data:
            *ended, rest = b"".join(begun).split(b"\n")
            lines, begun = [*lines, *ended], [rest]
        while len(lines) >= GROUP or (lines and not _more_is_there()):
            yield [line.removesuffix(b"\r") for line in lines[:GROUP]]
            lines = lines[GROUP:]
    lines += filter(None, [b"".join(begun)])
    for first in range(0, len(lines), GROUP):
        yield [line.removesuffix(b"\r") for line in lines[first : first + GROUP]]


def _more_is_there() -> bool:
    return sys.platform != "win32" and bool(select.select([_descriptor()], [], [], 0)[0])


def _arguments(inputs: Sequence[str]) -> list[str]:
    """Raises InputError for arguments that are not UTF-8, which Python represents by surrogates."""
    from heedful.data.lines import decoded_line

    return [decoded_line(os.fsencode(text), f"text {number}", None) for number, text in enumerate(inputs, 1)]


def _answered(
    answers: Callable[[list[T], int], Iterable[Sequence[Record]]], texts: list[T], first: int
) -> Iterator[Sequence[Record] | TextError]:
    """The records of each text, or its error: where one of several fails, they are answered in halves."""
    try:
        found = list(answers(texts, first))
    except TextError as error:
        if len(texts) == 1:
            yield error
            return
        half = len(texts) // 2
        yield from _answered(answers, texts[:half], first)
        yield from _answered(answers, texts[half:], first + half)
    else:
        yield from found


def _tell(records: Sequence[Record], show: Callable[[Any], str | Iterable[str]], where: str, *, as_json: bool) -> None:
    for record in records:
        if "warning" in record:
            say(": ".join(filter(None, ["warning", where, record["warning"]])))
        tell(record, show(record), as_json=as_json)
