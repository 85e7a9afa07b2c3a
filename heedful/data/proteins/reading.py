"""Reads chains in parts: from structures with alignments beside them, or made ones."""

from collections.abc import Mapping
from pathlib import Path

import numpy

from heedful.data.lines import read_bytes
from heedful.data.parts import Parts, held_out, kind_of, learnt_too, sorted_in, stems
from heedful.data.proteins.chain import UNKNOWN, Chain, chain_of
from heedful.data.proteins.made import made_chain
from heedful.data.proteins.structures import KINDS, read_structure
from heedful.errors import InputError, MissingError

Chains = Parts[list[Chain]]

MADE, MANY, FEW, MOST = "chains", 400, 40, 100_000  # chains to learn from by default; to validate and test on; at most
ALIGNED = ".a3m"


def read_chains(path: str | Path) -> Chains:
    """Reads chains of known structure.

    - .cif or .pdb, perhaps gzipped: its chains of proteins.
    - a folder, with all folders in it: such files, named train*, valid* and test*; alignments (.a3m) whose name begins
      like that of a chain ("2q2k_A") are its relatives. The first sequence of each must be the chain's.
    - "chains", perhaps with a number ("chains:1000"): so many made ones.

    Without validation data, a tenth of the sequences is held out. Raises InputError or MissingError.
    """
    name, _, number = str(path).partition(":")
    if name == MADE and not Path(path).exists():
        if number and not (number.isdecimal() and 0 < int(number) <= MOST):
            raise InputError(f"{number!r} is no number of chains", where=str(path), fix="for example chains:1000")
        parts = (range(FEW), range(FEW, 2 * FEW), range(2 * FEW, 2 * FEW + int(number or MANY)))
        valid, test, learnt = ([*map(made_chain, part)] for part in parts)
        return Parts(learnt, valid, {"test": test}, str(path))
    by_file = _files(Path(path))
    train, valid, tests = sorted_in((file.name, chains) for file, chains in by_file.items())
    train, valid, notes = held_out(train, valid, _sequence, noun="chain", where=Path(path))
    notes += learnt_too(train, {"valid": valid, **tests}, _sequence)
    return Parts(train, valid, stems(tests), str(path), tuple(by_file), notes)


def read_test_chains(path: str | Path) -> Mapping[str, list[Chain]]:
    """The chains of a file, or those of whatever else `read_chains` reads: the test sets of made ones, and all of a
    folder. Raises InputError or MissingError."""
    if str(path).partition(":")[0] == MADE and not Path(path).exists():
        return read_chains(path).tests
    return {Path(path).name: [chain for chains in _files(Path(path)).values() for chain in chains]}


def _sequence(chain: Chain) -> str:
    return chain.letters


def _files(path: Path) -> dict[Path, list[Chain]]:
    """The chains of each file, with their relatives."""
    if not path.is_dir():
        return {path: read_structure(path)}
    every = sorted(file for file in path.rglob("*") if file.is_file())
    structures = [file for file in every if kind_of(file) in KINDS]
    if not structures:
        raise MissingError("no structure", where=str(path), fix=f"add files like 2q2k{KINDS[0]}")
    aligned = [file for file in every if file.suffix == ALIGNED]
    return {file: [_with_relatives(chain, aligned) for chain in read_structure(file)] for file in structures}


def _with_relatives(chain: Chain, aligned: list[Path]) -> Chain:
    """The chain, with the relatives of all alignments that are named like it."""
    rows = [chain.sequences]
    for file in aligned:
        if file.name.startswith(chain.name):
            others = chain_of(read_bytes(file).decode(errors="replace"), name=file.stem).sequences
            first, sequence = others[0], chain.sequences[0]
            unknown = (first == UNKNOWN) | (sequence == UNKNOWN) if len(first) == len(sequence) else None
            same = unknown is not None and numpy.all(unknown | (first == sequence))
            if not same:
                what = f"its first sequence is not that of the chain {chain.name}"
                raise InputError(what, where=str(file), fix="align to the sequence that the structure names")
            rows.append(others[1:])
    return chain._replace(sequences=numpy.concatenate(rows))
