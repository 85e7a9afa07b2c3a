"""Evaluates word vectors on human judgements: pairs of words with a similarity score, and analogies."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from heedful.data.lines import read_lines
from heedful.errors import InputError
from heedful.metrics.labels import spearman
from heedful.tasks.vectors.use import WordVectors


class SimilarityScore(NamedTuple):
    """Spearman's correlation with human scores, over the pairs of which both words have a vector."""

    pairs: int
    known: int
    spearman: float


class AnalogyScore(NamedTuple):
    """The accuracy on the analogies whose four words all have a vector."""

    section: str
    analogies: int
    known: int
    accuracy: float


def is_analogies(lines: Sequence[str]) -> bool:
    """Whether a file has analogies: its sections begin with ": name" (Mikolov et al. 2013a, section 4.1)."""
    return any(line.startswith(": ") for line in lines[:1])


def read_pairs(path: Path) -> list[tuple[str, str, float]]:
    """Reads two words and a score per line, separated by tabs, commas or spaces. A header, and columns in between, as
    in SimLex-999 and WordSim-353, are skipped: the score is in the column that the header names so, or in the third.
    Raises InputError or MissingError."""
    made: list[tuple[str, str, float]] = []
    column = 2
    for number, line in enumerate(read_lines(path), start=1):
        parted = re.split(r"[\t,]" if re.search(r"[\t,]", line) else r" +", line.strip())
        cells = [cell.strip() for cell in parted]
        if not line.strip():
            continue
        if not made and number == 1 and len(cells) > 2 and not _is_number(cells[2]):
            names = [cell.lower() for cell in cells]
            column = next((i for i, name in enumerate(names) if i > 1 and _names_a_score(name)), 2)
            continue
        if len(cells) <= column or not _is_number(cells[column]):
            what = f"expected two words and a score, found {line[:40]!r}"
            raise InputError(what, where=f"{path}:{number}", fix="WORD TAB WORD TAB SCORE")
        made.append((cells[0], cells[1], float(cells[column])))
    if len(made) < 2:
        raise InputError("has fewer than two pairs", where=str(path), fix="WORD TAB WORD TAB SCORE, a pair a line")
    return made


def _is_number(cell: str) -> bool:
    return re.fullmatch(r"[-+]?\d+(\.\d+)?", cell) is not None


def _names_a_score(name: str) -> bool:
    return any(word in name for word in ("mean", "score", "simlex", "similarity", "human"))


def judged(vectors: WordVectors, pairs: Sequence[tuple[str, str, float]]) -> SimilarityScore:
    """The correlation with human scores. Raises InputError where fewer than two pairs have vectors."""
    known = [pair for pair in pairs if None not in map(vectors.row_of, pair[:2])]
    found = [vectors.similarity(one, other) for one, other, _ in known]
    if len(found) < 2:
        raise InputError(f"{len(found)} of {len(pairs)} pairs have vectors", fix="train on more text")
    return SimilarityScore(len(pairs), len(found), spearman(found, [score for _, _, score in known]))


def solved(vectors: WordVectors, lines: Sequence[str], where: str) -> list[AnalogyScore]:
    """The accuracy in each section, and at the end in all. The answer is the nearest word to b - a + c, other than the
    three. Raises InputError."""
    sections: dict[str, list[list[str]]] = {}
    name = ""
    for number, line in enumerate(lines, start=1):
        words = line.split()
        if line.startswith(":"):
            name = line[1:].strip()
        elif len(words) == 4:
            sections.setdefault(name, []).append(words)
        elif words:
            raise InputError(f"expected four words, found {line[:40]!r}", where=f"{where}:{number}", fix="A B C D")
    made = [_section(vectors, name, asked) for name, asked in sections.items() if asked]
    if not made:
        raise InputError("has no analogies", where=where, fix="A B C D, one a line")
    known = sum(one.known for one in made)
    right = sum(one.accuracy * one.known for one in made)
    return [*made, AnalogyScore("all", sum(one.analogies for one in made), known, right / max(1, known))]


def _section(vectors: WordVectors, name: str, asked: Sequence[Sequence[str]]) -> AnalogyScore:
    known = [rows for words in asked if None not in (rows := [vectors.row_of(word) for word in words])]
    right = 0
    for first in range(0, len(known), 256):
        a, b, c, d = torch.tensor(known[first : first + 256]).unbind(1)
        wanted = vectors.unit[b] - vectors.unit[a] + vectors.unit[c]
        scores = wanted @ vectors.unit.mT
        scores.scatter_(1, torch.stack([a, b, c], 1), -torch.inf)
        right += int((scores.argmax(1) == d).sum())
    return AnalogyScore(name, len(asked), len(known), right / max(1, len(known)))
