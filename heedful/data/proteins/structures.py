"""Reads and writes structures as mmCIF and PDB, by the library gemmi, an extra."""

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy
from numpy.typing import NDArray

from heedful.data.lines import read_bytes
from heedful.data.parts import kind_of
from heedful.data.proteins.chain import ATOMS, NUMBERS, UNKNOWN, Chain
from heedful.errors import InputError, MissingError, pip_install

KINDS = (".cif", ".pdb")
FEWEST = 10  # residues of a chain that is learnt from


def structure_library(where: str) -> ModuleType:
    """Raises MissingError where gemmi is not installed."""
    try:
        import gemmi
    except ImportError:
        fix = pip_install("'heedful[fold]'")
        raise MissingError("structures need the package gemmi", where=where, fix=fix) from None
    return gemmi


def read_structure(path: Path) -> list[Chain]:
    """The chains of a file (of its first model) that have at least FEWEST residues, named like "2q2k_A", without
    relatives. Residues that the file names, but has no atoms of, are there too, where it says which they are. Raises
    MissingError or InputError."""
    gemmi, where = structure_library(str(path)), str(path)
    text = read_bytes(path).decode(errors="replace")
    try:
        if kind_of(path) == ".cif":
            structure = gemmi.make_structure_from_block(gemmi.cif.read_string(text).sole_block())
        else:
            structure = gemmi.read_pdb_string(text)
        structure.setup_entities()
        models = [*structure][:1]
    except (RuntimeError, ValueError, IndexError) as error:
        what = f"not a structure, or damaged ({' '.join(str(error).split())[:100]})"
        raise InputError(what, where=where, fix="give mmCIF (.cif) or PDB (.pdb)") from None
    chains = [_chain(gemmi, structure, each, path) for model in models for each in model]
    kept = [chain for chain in chains if chain is not None]
    if not kept:
        raise InputError(f"no chain of a protein with {FEWEST} residues", where=where, fix="leave the file out")
    return kept


def _chain(gemmi: ModuleType, structure: Any, chain: Any, path: Path) -> Chain | None:
    polymer = chain.get_polymer()
    if polymer.check_polymer_type() != gemmi.PolymerType.PeptideL:
        return None
    entity = structure.get_entity_of(polymer)
    names = [gemmi.Entity.first_mon(name) for name in entity.full_sequence] if entity is not None else []
    residues = [*polymer.first_conformer()]
    numbers_in_chain = [-1 if residue.label_seq is None else residue.label_seq - 1 for residue in residues]
    if not names or not all(0 <= at < len(names) for at in numbers_in_chain):  # which are missing is not said
        names, numbers_in_chain = [residue.name for residue in residues], [*range(len(residues))]
    if len(names) < FEWEST:
        return None
    letters = (gemmi.find_tabulated_residue(name).one_letter_code.upper() for name in names)
    numbers = numpy.array([NUMBERS.get(letter, UNKNOWN) for letter in letters], dtype=numpy.int8)
    backbone = numpy.full((len(names), len(ATOMS), 3), numpy.nan, dtype=numpy.float32)
    for at, residue in zip(numbers_in_chain, residues, strict=True):
        for which, name in enumerate(ATOMS):
            atom = residue.find_atom(name, "*")
            if atom is not None:
                backbone[at, which] = atom.pos.tolist()
    stem = path.name.removesuffix(".gz").rsplit(".", 1)[0]
    return Chain(f"{stem}_{chain.name}", numbers[None], backbone)


def structure_text(
    name: str, letters: str, backbone: NDArray[numpy.float32], confidence: Sequence[float], kind: str
) -> str:
    """A file with the atoms N, CA and C of one chain, as ".pdb" or ".cif"; confidence, from 0 to 100, stands where
    B-factors do. Raises MissingError."""
    gemmi = structure_library(name)
    structure, model, chain = gemmi.Structure(), gemmi.Model(1), gemmi.Chain("A")
    structure.name = name[:40]
    for number, (letter, atoms, sure) in enumerate(zip(letters, backbone, confidence, strict=True), 1):
        residue = gemmi.Residue()
        residue.name = gemmi.expand_one_letter(letter, gemmi.ResidueKind.AA) or "UNK"
        residue.seqid = gemmi.SeqId(number, " ")
        for which, position in zip(ATOMS, atoms.tolist(), strict=True):
            atom = gemmi.Atom()
            atom.name, atom.element = which, gemmi.Element(which[0])
            atom.pos, atom.b_iso, atom.occ = gemmi.Position(*position), sure, 1.0
            residue.add_atom(atom)
        chain.add_residue(residue)
    model.add_chain(chain)
    structure.add_model(model)
    structure.setup_entities()
    structure.entities[0].full_sequence = [residue.name for residue in chain]
    structure.assign_label_seq_id()
    return structure.make_mmcif_document().as_string() if kind == ".cif" else structure.make_pdb_string()
