"""Tables of utterances: files of sound, and what is said in each."""

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
    text: str


Utterances = Parts[list[Utterance]]


def _enough(names: Sequence[str]) -> bool:
    return bool({*SOUND_COLUMNS} & {*names} and {*SAID_COLUMNS} & {*names})


COLUMNS = PictureColumns(
    _enough, "audio (or file, path) and text (or sentence, transcription)", "audio,text", '{"audio": ..., "text": ...}'
)


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


def _table(path: Path) -> list[Utterance]:
    return [*_rows(path)]


def _rows(path: Path) -> Iterator[Utterance]:
    find = Finder(path.parent, noun="sound")
    for where, row in picture_rows(path, read_lines(path), COLUMNS):
        sound, text = (next((row[key] for key in keys if row.get(key)), "") for keys in (SOUND_COLUMNS, SAID_COLUMNS))
        for what, value in (("sound", sound), ("text", text)):
            if not isinstance(value, str) or not value.strip():
                raise InputError(f"no {what}", where=where, fix="write audio,text on each line")
        yield Utterance(find(str(sound), where=where).path, " ".join(str(text).split()))
