"""Chains of proteins: what a text in FASTA or A3M says, structures there and back, and chains that are made."""

import gzip
from pathlib import Path

import numpy
import pytest
from numpy.typing import NDArray

from heedful.data.proteins.chain import UNKNOWN, Chain, chain_of, cut
from heedful.data.proteins.made import APART, BONDS, RELATIVES, SIZES, TOUCH, made_chain
from heedful.data.proteins.reading import FEW, read_chains, read_test_chains
from heedful.data.proteins.structures import read_structure, structure_text
from heedful.errors import InputError, MissingError, TextError
from heedful.metrics.structures import distances


def letters(row: NDArray[numpy.int8]) -> str:
    return Chain("", row[None]).letters


# Texts


@pytest.mark.parametrize("text", ["ACDE", "acde", " AC\nDE ", ">one two\nAC\nDE\n", "\n>one\nacde"])
def test_one_sequence(text: str) -> None:
    chain = chain_of(text)
    assert (chain.letters, chain.name) == ("ACDE", "one" if ">" in text else "protein")
    assert chain.sequences.shape == (1, 4)


def test_an_alignment() -> None:
    chain = chain_of(">first\nACDE\n>second\nA-DgtE\n\n>third x\nBC.-E\n")
    assert [letters(row) for row in chain.sequences] == ["ACDE", "A-DE", "XC-E"]
    assert chain.name == "first"
    assert letters(chain_of(">a\nUZJO").sequences[0]) == "XXXX"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no sequence"),
        (">alone", "0 residues"),
        (">a\nACDE\n>b\nACD\n", "b has 3 columns, and the first sequence 4"),
        ("AC1D", "'1' stands for no residue"),
        ("short.fasta", r"'\.' stands for no residue"),
        ("Ä", "'Ä' stands for no residue"),
    ],
)
def test_other_texts_are_refused(text: str, message: str) -> None:
    with pytest.raises(TextError, match=message):
        chain_of(text)


def test_a_part_of_a_chain() -> None:
    chain = made_chain(0)
    part = cut(chain, 3, 9)
    assert part.letters == chain.letters[3:9]
    assert part.backbone is not None
    assert part.backbone.shape == (6, 3, 3)


# Structures


@pytest.fixture
def chain() -> Chain:
    return made_chain(1)


def written(chain: Chain, path: Path) -> Path:
    assert chain.backbone is not None
    sure = [50.0] * len(chain.letters)
    text = structure_text(chain.name, chain.letters, chain.backbone, sure, path.suffix)
    path.write_text(text)
    return path


@pytest.mark.parametrize("kind", [".cif", ".pdb"])
def test_structures_there_and_back(chain: Chain, tmp_path: Path, kind: str) -> None:
    (back,) = read_structure(written(chain, tmp_path / f"x{kind}"))
    assert (back.name, back.letters) == ("x_A", chain.letters)
    numpy.testing.assert_allclose(back.backbone, chain.backbone, atol=2e-3)


def test_residues_without_atoms_are_there(chain: Chain, tmp_path: Path) -> None:
    """mmCIF says which sequence a chain has; what was not seen has no position."""
    text = written(chain, tmp_path / "x.cif").read_text()
    lines = [line for line in text.splitlines() if not (line.startswith("ATOM") and line.split()[-3] == "4")]
    assert len(lines) < len(text.splitlines())
    (tmp_path / "x.cif").write_text("\n".join(lines) + "\n")
    (back,) = read_structure(tmp_path / "x.cif")
    assert back.letters == chain.letters
    assert back.backbone is not None
    assert numpy.isnan(back.backbone).any((1, 2)).tolist() == [place == 3 for place in range(len(chain.letters))]


@pytest.mark.parametrize("text", ["", "no structure", "data_x\n_cell.length_a"])
def test_what_is_no_structure(tmp_path: Path, text: str) -> None:
    for name in ("x.cif", "x.pdb"):
        (tmp_path / name).write_text(text)
        with pytest.raises(InputError, match=name):
            read_structure(tmp_path / name)


def test_without_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "gemmi", None)
    with pytest.raises(MissingError, match="need the package gemmi"):
        read_structure(tmp_path / "x.cif")


def test_a_folder_with_alignments(tmp_path: Path) -> None:
    chains = [made_chain(number) for number in range(4)]
    (tmp_path / "inner").mkdir()
    for number, each in enumerate(chains):
        path = written(each, tmp_path / f"{'test' if number == 3 else 'c'}{number}.cif")
        if number == 0:
            path.with_suffix(".cif.gz").write_bytes(gzip.compress(path.read_bytes()))
            path.unlink()
    own = chains[1].letters
    (tmp_path / "inner" / "c1_A_hits.a3m").write_text(f">query\n{own}\n>other\n-{own[1:]}\n")
    data = read_chains(tmp_path)
    found = {each.name: each for part in data.named().values() for each in part}
    assert found.keys() == {"c0_A", "c1_A", "c2_A", "test3_A"}
    assert [letters(row) for row in found["c1_A"].sequences] == [own, f"-{own[1:]}"]
    assert [*data.tests] == ["test3"]
    assert len(data.valid) == 1
    assert "held out" in data.notes[0]
    (all_of_it,) = read_test_chains(tmp_path).values()
    assert len(all_of_it) == 4
    (tmp_path / "inner" / "c1_A_hits.a3m").write_text(">query\nACDE\n")
    with pytest.raises(InputError, match="its first sequence is not that of the chain c1_A"):
        read_chains(tmp_path)
    with pytest.raises(MissingError, match="no structure"):
        read_chains(tmp_path / "inner")


# Made chains


def test_made_chains() -> None:
    data = read_chains("chains:5")
    assert [len(part) for part in data.named().values()] == [5, FEW, FEW]
    assert len({each.fingerprint for part in data.named().values() for each in part}) == 5 + 2 * FEW
    assert [*read_test_chains("chains:5")] == ["test"]
    for wrong in ("chains:0", "chains:many"):
        with pytest.raises(InputError, match="no number of chains"):
            read_chains(wrong)


def test_a_made_chain_has_the_geometry_of_a_backbone() -> None:
    for number in range(5):
        chain = made_chain(number)
        again = made_chain(number)
        assert chain.fingerprint == again.fingerprint
        assert SIZES[0] <= len(chain.letters) <= SIZES[1]
        assert len(chain.sequences) == RELATIVES
        assert chain.sequences.max() < UNKNOWN
        assert chain.backbone is not None
        atoms = chain.backbone.reshape(-1, 3)
        lengths = numpy.linalg.norm(numpy.diff(atoms, axis=0), axis=1)
        expected = [BONDS["CA"][0], BONDS["C"][0], BONDS["N"][0]] * len(chain.letters)
        numpy.testing.assert_allclose(lengths, expected[:-1], atol=0.03)
        apart = distances(chain.backbone)
        one, other = numpy.triu_indices(len(apart), 1)
        numpy.testing.assert_allclose(apart[one, other][other - one == 1], 3.8, atol=0.03)
        assert (apart[one, other][other - one > 2] > 3.0).all()
        assert ((apart < TOUCH) & (abs(numpy.subtract.outer(*[numpy.arange(len(apart))] * 2)) >= APART)).any()
