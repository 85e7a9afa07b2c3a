"""Tagged words: both layouts, what is left out of a treebank, and errors by file and line."""

import pytest

from heedful.data.text.tagged import Sentence, read_sentences, read_tagged
from heedful.errors import InputError

SENTENCES = [Sentence(("the", "dog"), ("DET", "NOUN")), Sentence(("dogs",), ("NOUN",))]
ROWS = ["# text = the dog", "1-2\tthe dog", "1\tthe\tthe\tDET", "1.1\tbig\tbig\tADJ", "2\tdog\tdog\tNOUN", ""]


def treebank():
    rows = [*ROWS, "1\tdogs\tdog\tNOUN"]
    return "\n".join(row + "\t_" * (9 - row.count("\t")) if row and row[0] != "#" else row for row in rows)


def test_both_layouts(tmp_path):
    (tmp_path / "a.conllu").write_text(treebank())
    (tmp_path / "b.tsv").write_text("the\tDET\ndog\tNOUN\n\n\ndogs\tNOUN\n")
    for name in ("a.conllu", "b.tsv"):
        assert read_sentences(tmp_path / name) == SENTENCES


@pytest.mark.parametrize("header", ["word\ttag\n", "Token\tLabel\n\n", "FORM\tUPOS\n"])
def test_a_header_is_no_word(tmp_path, header):
    (tmp_path / "b.tsv").write_text(f"{header}the\tDET\ndog\tNOUN\n\ndogs\tNOUN\n")
    assert read_sentences(tmp_path / "b.tsv") == SENTENCES


def test_parts_by_the_names_of_universal_dependencies(tmp_path):
    for part in ("train", "dev", "test"):
        (tmp_path / f"en_made-ud-{part}.conllu").write_text(treebank())
    (tmp_path / "LICENSE.txt").write_text("free")
    found = read_tagged(tmp_path)
    assert (found.train, found.valid, found.tests) == (SENTENCES, SENTENCES, {"en_made-ud-test": SENTENCES})


def test_one_file_is_parted(tmp_path):
    (tmp_path / "a.tsv").write_text("".join(f"w{n}\tX\n\n" for n in range(30)))
    found = read_tagged(tmp_path / "a.tsv")
    assert (len(found.train), len(found.valid)) == (27, 3)
    assert not {*found.train} & {*found.valid}


@pytest.mark.parametrize(
    ("name", "text", "what"),
    [
        ("a.tsv", "a\tX\nb\n", r"a\.tsv:2: 1 column, expected 2"),
        ("a.tsv", "a\tX\nb\t \n", r"a\.tsv:2: a word or a label is empty"),
        ("a.conllu", "1\ta\tX\n", r"a\.conllu:1: 3 columns, expected 10"),
        ("a.conllu", "# nothing\n", "no tagged word"),
        ("a.conllu", "1\ta" + 8 * "\t_" + "\n", "no parts of speech"),
        ("a.csv", "a,X\n", "not a kind of file"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, name, text, what):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=what):
        read_sentences(tmp_path / name)
