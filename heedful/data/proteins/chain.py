"""A chain of a protein: its sequence, its relatives, aligned to it, and its backbone.

N sequences, R residues.
"""

import hashlib
import re
from typing import NamedTuple

import numpy
from numpy.typing import NDArray

from heedful.errors import TextError, counted

LETTERS = "ARNDCQEGHILKMFPSTWYVX-"  # by their numbers; X is unknown, - is a gap
UNKNOWN, GAP = LETTERS.index("X"), LETTERS.index("-")
ATOMS = ("N", "CA", "C")
NUMBERS = {letter: number for number, letter in enumerate(LETTERS)}
RARE = re.compile(r"[BZJUO]")  # letters for two residues, and for rare ones
INSERTED = re.compile(r"[a-z.]")  # of A3M: what the first sequence has not
MOST_RESIDUES = 4096


class Chain(NamedTuple):
    """The first of `sequences` is the chain's own. `backbone` has the positions of N, CA and C in angstroms, NaN where
    one is not known; None where none is."""

    name: str
    sequences: NDArray[numpy.int8]  # (N, R)
    backbone: NDArray[numpy.float32] | None = None  # (R, 3, 3)

    @property
    def letters(self) -> str:
        return "".join(LETTERS[number] for number in self.sequences[0])

    @property
    def fingerprint(self) -> str:
        """Of the sequences and the backbone, without the name."""
        backbone = b"" if self.backbone is None else self.backbone.round(2).tobytes()
        return hashlib.sha256(self.sequences.tobytes() + backbone).hexdigest()


def chain_of(text: str, *, name: str = "protein") -> Chain:
    """A chain without a backbone, from a bare sequence, or a text in FASTA or A3M: the first sequence is the chain's,
    and the others are its relatives, aligned to it. Lower-case letters of A3M are what the first has not, and left
    out; a bare sequence may be in lower case.

    Raises TextError for no sequence, one that is not aligned, or characters that stand for no residue.
    """
    where, records = text.strip()[:40], _records(text, name)
    if not records:
        raise TextError("no sequence", where=where, fix="give letters of residues, or a text in FASTA or A3M")
    names, rows = zip(*records, strict=True)
    aligned = [rows[0].upper()] if len(rows) == 1 else [INSERTED.sub("", row) for row in rows]
    length = len(aligned[0])
    if not 0 < length <= MOST_RESIDUES:
        raise TextError(f"{counted(length, 'residue')}", where=where, fix=f"give 1 to {MOST_RESIDUES:,}")
    for other, row in zip(names, aligned, strict=True):
        if len(row) != length:
            what = f"{other} has {len(row)} columns, and the first sequence {length}: they are not aligned"
            raise TextError(what, where=where, fix="give an alignment (A3M), or one sequence at a time")
    return Chain(names[0], numpy.stack([_numbers(row, where) for row in aligned]))


def _records(text: str, name: str) -> list[tuple[str, str]]:
    """Names and sequences."""
    if not text.lstrip().startswith(">"):
        bare = "".join(text.split())
        return [(name, bare)] if bare else []
    records = []
    for record in re.split(r"^>", text.lstrip(), flags=re.MULTILINE)[1:]:
        head, _, body = record.partition("\n")
        records.append(((head.split() or [name])[0], "".join(body.split())))
    return records


def _numbers(row: str, where: str) -> NDArray[numpy.int8]:
    letters = RARE.sub("X", row)
    if wrong := next((letter for letter in letters if letter not in NUMBERS), ""):
        raise TextError(f"{wrong!r} stands for no residue", where=where, fix="give the letters of residues alone")
    return numpy.array([NUMBERS[letter] for letter in letters], dtype=numpy.int8)


def with_sequences(chain: Chain, count: int) -> Chain:
    """With the first so many of its sequences."""
    return chain._replace(sequences=chain.sequences[:count])


def cut(chain: Chain, first: int, last: int) -> Chain:
    """Some of its residues."""
    backbone = None if chain.backbone is None else chain.backbone[first:last]
    return Chain(chain.name, chain.sequences[:, first:last], backbone)
