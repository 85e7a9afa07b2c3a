"""Tables of sound: files, and what is said in each, or a label."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from heedful.data.images.captions import TEXT_COLUMNS
from heedful.data.images.tables import Finder, PictureColumns, picture_rows
from heedful.data.lines import read_lines
from heedful.data.parts import Parts, read_parts, read_tests
from heedful.errors import InputError

KINDS = (".tsv", ".csv", ".jsonl")
SOUND_COLUMNS = ("audio", "sound", "wav", "file", "path", "file_name", "filename", "audio_filepath")
SAID_COLUMNS = ("transcription", "transcript", *TEXT_COLUMNS)


class Utterance(NamedTuple):
    file: Path
    text: str  # what is said, or the label of the sound


Utterances = Parts[list[Utterance]]


def _columns(named: Sequence[str], expected: str, line: str) -> PictureColumns:
    def enough(names: Sequence[str]) -> bool:
        return bool({*SOUND_COLUMNS} & {*names} and {*named} & {*names})

    sound, text = line.split(",")
    return PictureColumns(enough, expected, line, f'{{"{sound}": ..., "{text}": ...}}')


COLUMNS = _columns(SAID_COLUMNS, "audio (or file, path) and text (or sentence, transcription)", "audio,text")
LABEL_COLUMNS = ("label", "category", "class")
LABELLED = _columns(LABEL_COLUMNS, "audio (or file, path) and label (or category, class)", "audio,label")


def read_utterances(path: str | Path) -> Utterances:
    """Reads tables of sound and text, an utterance a line: .csv or .tsv whose first line names the columns "audio" (or
    "file", "path" ...) and "text" (or "sentence", "transcription" ...), or .jsonl with these keys; or a folder with
    such files, named train*, valid* and test*. Names of files are relative to the table, or searched in the folders
    beside it.

    Without validation data, a tenth of the texts is held out. Raises InputError or MissingError.
    """
    return read_parts(path, _table, kinds=KINDS, key=lambda row: row.text)


def read_test_utterances(path: str | Path) -> dict[str, list[Utterance]]:
    """Reads the utterances of a file, or of a folder's test files, by name. Raises InputError or MissingError."""
    return read_tests(path, _table, kinds=KINDS)


def read_labelled_sounds(path: str | Path) -> Utterances:
    """The same of tables with a label of each sound in the column "label", "category" or "class". Without validation
    data, a tenth of the sounds of each label is held out."""
    return read_parts(path, _labelled, kinds=KINDS, key=_name, within=lambda row: row.text)


def read_test_sounds(path: str | Path) -> dict[str, list[Utterance]]:
    """As `read_test_utterances`, of labelled sounds."""
    return read_tests(path, _labelled, kinds=KINDS)


def _name(row: Utterance) -> str:
    """Of its file, with that of the folder: the same wherever the data are."""
    return "/".join(row.file.parts[-2:])


def _table(path: Path) -> list[Utterance]:
    return [*_rows(path, COLUMNS, SAID_COLUMNS)]


def _labelled(path: Path) -> list[Utterance]:
    return [*_rows(path, LABELLED, LABEL_COLUMNS)]


def _rows(path: Path, columns: PictureColumns, named: Sequence[str]) -> Iterator[Utterance]:
    find = Finder(path.parent, noun="sound")
    _, name = columns.line.split(",")
    for where, row in picture_rows(path, read_lines(path), columns):
        sound, text = (next((row[key] for key in keys if row.get(key)), "") for keys in (SOUND_COLUMNS, named))
        for what, value in (("sound", sound), (name, text)):
            if not isinstance(value, str) or not value.strip():
                raise InputError(f"no {what}", where=where, fix=f"write {columns.line} on each line")
        yield Utterance(find(str(sound), where=where).path, " ".join(str(text).split()))
