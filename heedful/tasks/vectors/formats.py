"""Word vectors in word2vec's text and binary formats, which every library reads.

V words, D width.
"""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy
from jaxtyping import Float32
from numpy import ndarray

from heedful.data.lines import read_bytes
from heedful.errors import InputError

Matrix = Float32[ndarray, "V D"]
LARGEST = 1 << 31  # the most numbers that a file may claim to contain


def as_text(words: Sequence[str], vectors: Matrix) -> bytes:
    """A line of sizes, then a line per word with its numbers, in enough digits to restore float32 exactly."""
    lines = [f"{len(words)} {vectors.shape[1]}"]
    for word, row in zip(words, vectors.tolist(), strict=True):
        lines.append(f"{word} {' '.join(f'{value:.9g}' for value in row)}")
    return ("\n".join(lines) + "\n").encode()


def as_binary(words: Sequence[str], vectors: Matrix) -> bytes:
    """A line of sizes, then each word, a space, its numbers as little-endian float32, and the end of a line."""
    rows = vectors.astype("<f4")
    parts = [f"{len(words)} {vectors.shape[1]}\n".encode()]
    for word, row in zip(words, rows, strict=True):
        parts += [word.encode(), b" ", row.tobytes(), b"\n"]
    return b"".join(parts)


def read_vectors(path: Path) -> tuple[list[str], Matrix]:
    """The words and vectors of a file in either format, told apart by its name (".bin") and by its first line. GloVe's
    text, which has no line of sizes, is read too. Raises InputError or MissingError."""
    data = read_bytes(path)
    first, _, rest = data.partition(b"\n")
    sizes = re.fullmatch(rb"(\d+) (\d+)\s*", first)
    if path.suffix == ".bin":
        if sizes is None:
            raise InputError("does not begin with a line of sizes", where=str(path), fix="give a file of word2vec's")
        return _binary(rest, int(sizes[1]), int(sizes[2]), path)
    return _text(rest if sizes else data, path, 2 if sizes else 1, int(sizes[2]) if sizes else None)


def _binary(data: bytes, V: int, D: int, path: Path) -> tuple[list[str], Matrix]:
    if len(data) < V * D * 4 or V * D > LARGEST:
        raise InputError(f"{V} x {D} numbers do not fit into the file", where=str(path), fix="get the whole file")
    words, rows, at = [], numpy.empty((V, D), numpy.float32), 0
    for number in range(V):
        space = data.find(b" ", at)
        end = space + 1 + 4 * D
        if space < 0 or end > len(data):
            raise InputError(f"ends at word {number + 1} of {V}", where=str(path), fix="get the whole file")
        words.append(data[at:space].decode("utf-8", errors="replace").lstrip("\n"))
        rows[number] = numpy.frombuffer(data, "<f4", D, space + 1)
        at = end + (data[end : end + 1] == b"\n")
    return _checked(words, rows, path)


def _text(data: bytes, path: Path, begin: int, D: int | None) -> tuple[list[str], Matrix]:
    words, rows = [], []
    for number, line in enumerate(data.decode("utf-8", errors="replace").split("\n"), begin):
        if not line.strip():
            continue
        word, *values = line.rstrip().split(" ")
        D = len(values) if D is None else D
        try:
            row = numpy.array(values, dtype=numpy.float32)
        except ValueError:
            row = numpy.zeros(0, numpy.float32)
        if len(row) != D or not D:
            what = f"expected a word and {D or 'some'} numbers, found {line[:40]!r}"
            raise InputError(what, where=f"{path}:{number}", fix="give vectors in word2vec's or GloVe's format")
        words.append(word)
        rows.append(row)
    return _checked(words, numpy.array(rows, dtype=numpy.float32).reshape(len(rows), D or 0), path)


def _checked(words: list[str], vectors: Matrix, path: Path) -> tuple[list[str], Matrix]:
    if not words:
        raise InputError("has no vectors", where=str(path), fix="give vectors in word2vec's format")
    if not numpy.isfinite(vectors).all():
        raise InputError("has vectors that are not finite", where=str(path), fix="train them again")
    return words, vectors
