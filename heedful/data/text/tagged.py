"""Sentences with a label for each word: parts of speech, or named entities."""

from pathlib import Path
from typing import NamedTuple

from heedful.data.lines import read_lines
from heedful.data.parts import Parts, kind_of, read_parts
from heedful.errors import InputError, counted

KINDS = (".conllu", ".tsv")
FORM, UPOS, COLUMNS = 1, 3, 10  # of CoNLL-U
HEADERS = {f"{word}\t{label}" for word in ("word", "token", "form") for label in ("label", "tag", "pos", "upos", "ner")}


class Sentence(NamedTuple):
    words: tuple[str, ...]
    labels: tuple[str, ...]

    @property
    def text(self) -> str:
        return " ".join(self.words)


def read_tagged(path: str | Path) -> Parts[list[Sentence]]:
    """Reads sentences as `read_sentences`, in parts as `read_parts`. Raises InputError or MissingError."""
    return read_parts(path, read_sentences, kinds=KINDS, key=lambda one: one.text)


def read_sentences(path: str | Path) -> list[Sentence]:
    """Reads the sentences of one file, which are separated by blank lines.

    .conllu: ten columns, of which the second is the word and the fourth its universal part of speech (Nivre et al.
    2020); comments, ranges ("1-2") and empty words ("1.1") are left out. .tsv: word TAB label, perhaps below a header.
    Raises InputError or MissingError.
    """
    path = Path(path)
    if kind_of(path) not in KINDS:
        fix = "give .tsv, or from Python (words, labels) of each sentence"
        raise InputError("not a kind of file that tagged words are read from", where=str(path), fix=fix)
    treebank = kind_of(path) == ".conllu"
    sentences: list[Sentence] = []
    rows: list[tuple[str, str]] = []
    lines = [*read_lines(path), ""]
    if not treebank and lines[0].lower() in HEADERS:
        lines[0] = ""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            if rows:
                words, labels = zip(*rows, strict=True)
                sentences.append(Sentence(words, labels))
            rows = []
        elif not (treebank and line.startswith("#")):
            cells, expected = line.split("\t"), COLUMNS if treebank else 2
            if len(cells) != expected:
                what = f"{counted(len(cells), 'column')}, expected {expected}"
                fix = "" if treebank else "write word TAB label, and a blank line between sentences"
                raise InputError(what, where=f"{path}:{number}", fix=fix)
            if not treebank or cells[0].isdigit():
                word, label = (cells[FORM], cells[UPOS]) if treebank else cells
                if not word.strip() or not label.strip():
                    raise InputError("a word or a label is empty", where=f"{path}:{number}")
                rows.append((word.strip(), label.strip()))
    if not sentences:
        raise InputError("no tagged word", where=str(path))
    if treebank and all(label == "_" for one in sentences for label in one.labels):
        what = "no parts of speech: the fourth column is empty (_) throughout"
        raise InputError(what, where=str(path), fix="give a treebank with UPOS tags, or word TAB label in a .tsv file")
    return sentences
