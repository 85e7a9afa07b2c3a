"""Text for language models: documents, and their split into training, validation and test data."""

from pathlib import Path

from heedful.data.lines import json_items, json_lines, read_lines, sanitise
from heedful.data.parts import Notes, Parts, entries, kind_of, learnt_too, sorted_in, stems
from heedful.errors import InputError, MissingError, are, counted

MARKED_UP = (".csv", ".tsv", ".html", ".htm", ".xml")  # files with more than running text
# Without validation data, the last of SHARE parts is held out, of much text at most so many characters.
SHARE, HELD_MOST = 10, 1 << 21
TENTH = "the last tenth"


Documents = Parts[list[str]]  # for a language model


def read_documents(path: str | Path, *, most: int | None = HELD_MOST) -> Documents:
    """Reads a .txt file as one document, a .jsonl file as one a line (its "text"), a .json file as a list of such
    objects; each may be .gz; a folder may hold several .txt and .jsonl files.

    In a folder, files named train*, valid* (val, dev) and test* are the parts. Without validation data, the last tenth
    of the documents is held out, or of the text if there are fewer than 20; of much text the last `most` characters
    (None: a tenth). Raises InputError or MissingError.
    """
    path = Path(path)
    if not path.is_dir():
        documents = _read(path)
        train, valid, note = _held_out(documents, most, path)
        notes: Notes = (note, *learnt_too(train, {"valid": valid}, str))
        if kind_of(path) in MARKED_UP:
            words = 'for its words alone give .jsonl, {"text": "..."} on each line'
            notes = (f"{path}: learnt as it stands, with all that separates or marks its words; {words}", *notes)
        return Documents(train, valid, {}, str(path), (path,), notes)
    files = _files(path)
    train, valid, tests = sorted_in((file.name, _read(file)) for file in files)
    if not train:
        raise InputError("no text to train on", where=str(path), fix="add train.txt")
    notes = ()
    if not valid:
        train, valid, note = _held_out(train, most, path)
        notes = (note,)
    notes += learnt_too(train, {"valid": valid, **tests}, str)
    return Documents(train, valid, stems(tests), str(path), tuple(files), notes)


def read_text(path: str | Path) -> list[str]:
    """Reads the documents of a file, or of a folder's test files; if it has none, its validation files, or else all.
    Raises InputError or MissingError."""
    path = Path(path)
    if not path.is_dir():
        return _read(path)
    train, valid, tests = sorted_in((file.name, _read(file)) for file in _files(path))
    return [text for texts in tests.values() for text in texts] or valid or train


def _files(folder: Path) -> list[Path]:
    files = [file for file in entries(folder) if file.is_file() and kind_of(file) in (".txt", ".jsonl")]
    if not files:
        raise MissingError("no .txt and no .jsonl file", where=str(folder), fix="give a folder with text in it")
    return files


def _read(path: Path) -> list[str]:
    kind = kind_of(path)
    lines = [] if kind == ".json" else read_lines(path)
    if kind not in (".json", ".jsonl"):
        return ["\n".join(lines) + "\n"]
    rows = json_items(path) if kind == ".json" else json_lines(path, lines)
    documents = [_text_of(row, where) for where, row in rows]
    if not any(map(str.strip, documents)):
        raise InputError("no document with a word", where=str(path), fix='write {"text": "..."} on each line')
    return documents


def _text_of(row: object, where: str) -> str:
    if not isinstance(row, dict) or not isinstance(row.get("text"), str):
        raise InputError('no "text" that is a string', where=where, fix='write {"text": "..."} on each line')
    return sanitise(row["text"])


def _held_out(documents: list[str], most: int | None, path: Path) -> tuple[list[str], list[str], str]:
    """What is left, what is held out, and a note on it."""
    what, verb = TENTH, "is"
    if len(documents) >= 2 * SHARE:
        kept = first = len(documents) - len(documents) // SHARE
        size = sum(map(len, documents[kept:]))
        while most is not None and size > most and kept < len(documents) - 1:
            size -= len(documents[kept])
            kept += 1
        if kept > first:
            what, verb = f"the last {counted(len(documents) - kept, 'document')}", are(len(documents) - kept)
        return documents[:kept], documents[kept:], f"{path}: {what} {verb} held out for validation"
    whole = "\n".join(documents)
    held = max(1, len(whole) // SHARE)
    if most is not None and held > most:
        held, what, verb = most, f"the last {most:,} characters", "are"
    if held >= len(whole):
        raise InputError("too little text to hold any out", fix="give more text")
    return [whole[:-held]], [whole[-held:]], f"{path}: {what} {verb} held out for validation"
