"""Text for language models: documents, and their split into training, validation and test data."""

from collections.abc import Sequence
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
        documents = documents_in(path)
        train, valid, note = _held_out(documents, most, path)
        notes: Notes = (*marked_up(path), note, *learnt_too(train, {"valid": valid}, str))
        return Documents(train, valid, {}, str(path), (path,), notes)
    files = document_files(path)
    train, valid, tests = sorted_in((file.name, documents_in(file)) for file in files)
    if not train:
        raise InputError("no text to train on", where=str(path), fix="add train.txt")
    notes = ()
    if not valid:
        train, valid, note = _held_out(train, most, path)
        notes = (note,)
    notes += learnt_too(train, {"valid": valid, **stems(tests)}, str)
    return Documents(train, valid, stems(tests), str(path), tuple(files), notes)


def read_text(path: str | Path) -> list[str]:
    """Reads the documents of a file, or of a folder's test files; if it has none, its validation files, or else all.
    Raises InputError or MissingError."""
    path = Path(path)
    if not path.is_dir():
        return documents_in(path)
    train, valid, tests = sorted_in((file.name, documents_in(file)) for file in document_files(path))
    return [text for texts in tests.values() for text in texts] or valid or train


def document_files(folder: Path) -> list[Path]:
    """The files of a folder that have documents. Raises MissingError."""
    files = [file for file in entries(folder) if file.is_file() and kind_of(file) in (".txt", ".jsonl")]
    if not files:
        raise MissingError("no .txt and no .jsonl file", where=str(folder), fix="give a folder with text in it")
    return files


def documents_in(path: Path) -> list[str]:
    """The documents of a file. Raises InputError or MissingError."""
    kind = kind_of(path)
    lines = [] if kind == ".json" else read_lines(path)
    if kind not in (".json", ".jsonl"):
        return ["\n".join(lines) + "\n"]
    rows = json_items(path) if kind == ".json" else json_lines(path, lines)
    documents = [text_of(row, where) for where, row in rows]
    if not any(map(str.strip, documents)):
        raise InputError("no document with a word", where=str(path), fix='write {"text": "..."} on each line')
    return documents


def text_of(row: object, where: str) -> str:
    """The text of a document in JSON. Raises InputError."""
    if not isinstance(row, dict) or not isinstance(row.get("text"), str):
        raise InputError('no "text" that is a string', where=where, fix='write {"text": "..."} on each line')
    return sanitise(row["text"])


def marked_up(path: Path) -> Notes:
    """A note on a file that has more than its words."""
    if kind_of(path) not in MARKED_UP:
        return ()
    words = 'for its words alone give .jsonl, {"text": "..."} on each line'
    return (f"{path}: learnt as it stands, with all that separates or marks its words; {words}",)


def documents_kept(sizes: Sequence[int], most: int | None, where: object) -> tuple[int, str]:
    """How many of the first of many documents are learnt, by their characters, and a note on what is held out."""
    kept = first = len(sizes) - len(sizes) // SHARE
    size = sum(sizes[kept:])
    while most is not None and size > most and kept < len(sizes) - 1:
        size -= sizes[kept]
        kept += 1
    count = len(sizes) - kept
    what, verb = (TENTH, "is") if kept == first else (f"the last {counted(count, 'document')}", are(count))
    return kept, f"{where}: {what} {verb} held out for validation"


def characters_held(size: int, most: int | None, where: object) -> tuple[int, str]:
    """How many of the last characters of a text are held out, and a note on that. Raises InputError."""
    tenth = max(1, size // SHARE)
    held = tenth if most is None else min(tenth, most)
    if held >= size:
        raise InputError("too little text to hold any out", fix="give more text")
    what, verb = (TENTH, "is") if held == tenth else (f"the last {held:,} characters", "are")
    return held, f"{where}: {what} {verb} held out for validation"


def _held_out(documents: list[str], most: int | None, path: Path) -> tuple[list[str], list[str], str]:
    """What is left, what is held out, and a note on it."""
    if len(documents) >= 2 * SHARE:
        kept, note = documents_kept([*map(len, documents)], most, path)
        return documents[:kept], documents[kept:], note
    whole = "\n".join(documents)
    held, note = characters_held(len(whole), most, path)
    return [whole[:-held]], [whole[-held:]], note
