"""Chains of known geometry, and families of sequences that fit them: a helix, a turn, a helix and so on, folded so that
distant residues touch. Residues that touch have opposite charges, or are alike in how they like water, so that they
change together; which of them are in helices shows in the sequences too.

K candidates, R residues, N sequences.
"""

import math

import numpy
from numpy.typing import NDArray

from heedful.core.seeds import counter_seed
from heedful.data.proteins.chain import LETTERS, Chain

HELIX = (-60.0, -45.0)  # degrees: phi and psi
TURNS = ((-60.0, -30.0), (-90.0, 0.0), (-120.0, 130.0), (60.0, 45.0), (-70.0, 140.0))
# Of each atom: the length of the bond before it (angstroms), and the angle at the atom before (degrees; Engh and Huber
# 1991).
BONDS = {"N": (1.329, 116.2), "CA": (1.458, 121.7), "C": (1.525, 111.0)}
CANDIDATES, SWEEPS = 24, 8
TOUCH, APART, CLASH = 8.0, 6, 3.6  # angstroms between CAs that touch; residues between them at least; too near
SIZES = (24, 36)  # residues, at least and at most
# By the letters: charge; how little a letter likes water (Kyte and Doolittle 1982, from -1 to 1); and whether it likes
# helices (1), or breaks them.
CHARGE = numpy.array([(letter in "RK") - (letter in "DE") for letter in LETTERS[:20]])
_DRY = {"A": 1.8, "R": -4.5, "N": -3.5, "D": -3.5, "C": 2.5, "Q": -3.5, "E": -3.5, "G": -0.4, "H": -3.2, "I": 4.5}
_DRY |= {"L": 3.8, "K": -3.9, "M": 1.9, "F": 2.8, "P": -1.6, "S": -0.8, "T": -0.7, "W": -0.9, "Y": -1.3, "V": 4.2}
DRY = numpy.array([_DRY[letter] for letter in LETTERS[:20]]) / 4.5
HELICAL = numpy.array([(letter in "ALEMQKR") - (letter in "GPN") for letter in LETTERS[:20]])
FIELD, PULL, DRYNESS = 0.7, 3.0, 1.5
# How much each two letters like to touch: opposite charges, and those that are alike in water.
LIKES = DRYNESS * numpy.outer(DRY, DRY) - PULL * numpy.outer(CHARGE, CHARGE)
RELATIVES = 16


def made_chain(number: int) -> Chain:
    """The chain of this number, the same on every machine, with RELATIVES sequences."""
    draw = numpy.random.Generator(numpy.random.PCG64(counter_seed("chain", number)))
    in_helix, torsions = _plan(draw)
    every = _built(torsions)
    ca = every[:, :, 1]
    distance = numpy.linalg.norm(ca[:, :, None] - ca[:, None], axis=-1)
    place = numpy.arange(len(in_helix))
    between = numpy.abs(place[:, None] - place)
    touch = (distance < TOUCH) & (between >= APART)
    clashes = ((distance < CLASH) & (between > 2)).sum((1, 2))
    best = int((touch.sum((1, 2)) - len(place) * clashes).argmax())
    return Chain(f"made_{number}", _family(touch[best], in_helix, draw), every[best].astype(numpy.float32))


def _plan(draw: numpy.random.Generator) -> tuple[NDArray[numpy.bool_], NDArray[numpy.float64]]:
    """Which residues are in helices, and candidates for the phi and psi of each (K, R, 2)."""
    length, helix = int(draw.integers(*SIZES, endpoint=True)), list[bool]()
    while len(helix) < length:
        helix += [True] * int(draw.integers(8, 13)) + [False] * int(draw.integers(3, 5))
    in_helix = numpy.array(helix[:length])
    turns = numpy.array(TURNS)[draw.integers(len(TURNS), size=(CANDIDATES, length))]
    torsions = numpy.where(in_helix[:, None], numpy.array(HELIX), turns)
    return in_helix, torsions + draw.normal(0.0, 4.0, torsions.shape)


def _built(torsions: NDArray[numpy.float64]) -> NDArray[numpy.float64]:
    """The atoms N, CA and C of backbones with these phi and psi, in degrees, and omega 180: (K, R, 3, 3)."""
    K, R, _ = torsions.shape
    begun = numpy.array([[-0.5225, 1.3611, 0.0], [0.0, 0.0, 0.0], [1.525, 0.0, 0.0]])  # any triangle of these bonds
    atoms = [numpy.broadcast_to(atom, (K, 3)) for atom in begun]
    for residue in range(1, R):
        psi, phi = torsions[:, residue - 1, 1], torsions[:, residue, 0]
        for name, angle in (("N", psi), ("CA", numpy.full(K, 180.0)), ("C", phi)):
            a, b, c = atoms[-3:]
            atoms.append(_placed(a, b, c, *BONDS[name], angle))
    return numpy.stack(atoms, axis=1).reshape(K, R, 3, 3)


def _placed(
    a: NDArray[numpy.float64],
    b: NDArray[numpy.float64],
    c: NDArray[numpy.float64],
    length: float,
    angle: float,
    torsion: NDArray[numpy.float64],
) -> NDArray[numpy.float64]:
    """The atom after a, b and c (Parsons et al. 2005)."""
    bend, turn = math.radians(angle), numpy.radians(torsion)[:, None]
    axis = (c - b) / numpy.linalg.norm(c - b, axis=1, keepdims=True)
    normal = numpy.cross(b - a, axis)
    normal /= numpy.linalg.norm(normal, axis=1, keepdims=True)
    side = numpy.cross(normal, axis)
    step = -math.cos(bend) * axis + math.sin(bend) * (numpy.cos(turn) * side + numpy.sin(turn) * normal)
    return c + length * step


def _family(
    touch: NDArray[numpy.bool_], in_helix: NDArray[numpy.bool_], draw: numpy.random.Generator
) -> NDArray[numpy.int8]:
    """Sequences (N, R) of a Potts model of this contact map, by Gibbs sampling."""
    R, likes_helix = len(touch), HELICAL[:, None] * [-FIELD, FIELD]
    rows = draw.integers(20, size=(RELATIVES, R))
    for _ in range(SWEEPS):
        for place in draw.permutation(R):
            likes = likes_helix[:, int(in_helix[place])] + LIKES[rows[:, touch[place]]].sum(1)
            rows[:, place] = (likes + draw.gumbel(size=likes.shape)).argmax(1)
    return rows.astype(numpy.int8)
