"""Bracketed trees: read, made plain, written as tokens, and back."""

import pytest

from heedful.data.text.trees import (
    LEAF,
    BracketVocabulary,
    Leaf,
    Tree,
    linearise,
    parse_trees,
    plain,
    read_test_trees,
    read_treebank,
    read_trees,
    right_branching,
    tree_of,
    words_in,
)
from heedful.errors import InputError, MissingError

CAT = "(S (NP (DT the) (NN cat)) (VP (VBZ sleeps)) (. .))"


def read(text):
    return list(parse_trees(text.split("\n"), "x"))


def test_one_or_many_lines_and_many_trees():
    lines = "( (S\n  (NP (DT the)\n (NN cat)) (VP (VBZ\tsleeps))\n (. .)) )  (X (A b))\r\n\n(Y (A c))"
    assert [str(tree) for tree in map(plain, read(lines))] == [CAT, "(X (A b))", "(Y (A c))"]
    assert [str(tree) for tree in read(CAT)] == [CAT]


def test_plain_trees_have_no_traces_functions_or_empty_roots():
    text = "(TOP (S-TPC-1 (NP-SBJ=2 (-NONE- *T*-1)) (VP (VB go) (NP (ADJP (-NONE- *)) (-LRB- -LRB-) (NN-X a)))))"
    (tree,) = read(text)
    assert str(plain(tree)) == "(S (VP (VB go) (NP (-LRB- -LRB-) (NN-X a))))"
    assert plain(tree).words() == ["go", "(", "a"]
    assert plain(read("(S (-NONE- *))")[0]) is None
    assert str(plain(read("( (S (A b)) (. .))")[0])) == "(TOP (S (A b)) (. .))"
    assert str(plain(read("(NN word)")[0])) == "(TOP (NN word))"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(S (NP (DT the)\n\n(X (A b))", "x:1: a bracket opens that none closes"),
        ("(S (A b))\n)", "x:2: a bracket closes that none opens"),
        ("(S (A b))\nword", "x:2: 'word' stands outside of brackets"),
        ("(S\n())", "x:2: an empty bracket"),
        ("(S (NP))", "x:1: an empty bracket"),
        ("(S (A b c))", "x:1: 'c' is not the only word of its bracket"),
        ("(S (A b) c)", "x:1: 'c' is not the only word of its bracket"),
        ("(S b (A c))", "x:1: a bracket after the word 'b'"),
        ("(S " * 2000, "x:1: more than 200 brackets within each other"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(text, message):
    with pytest.raises(InputError) as error:
        read(text)
    assert str(error.value) == message


def test_linearised_and_back():
    (tree,) = read(CAT)
    assert " ".join(linearise(tree)) == "(S (NP XX XX )NP (VP XX )VP XX )S"
    assert tree_of(linearise(tree), list(tree.leaves())) == tree
    brackets = BracketVocabulary(["NP", "S", "VP"])
    ids = brackets.encode(tree)
    assert ids == [6, 5, 4, 4, 8, 7, 4, 10, 4, 9]
    assert brackets.decode(ids, list(tree.leaves())) == tree
    assert brackets.encode(Tree("Z", tree.children))[0] == 1


@pytest.mark.parametrize(
    "tokens", ["", "XX", "(S )S", "(S XX", "(S XX )NP", "(S XX )S )S", "(S XX XX )S", "(S XX )S (S XX )S"]
)
def test_tokens_that_are_no_tree_are_refused(tokens):
    with pytest.raises(InputError, match="not one tree of this sentence"):
        tree_of(tokens.split(), [Leaf(LEAF, "a")])


def test_brackets_that_are_words_are_escaped():
    words = words_in("f(x) [ -LRB- thin\u2009space ]\n")
    assert words == ["f(x)", "[", "(", "thin\u2009space", "]"]
    tree = Tree("NP", tuple(Leaf("NN", word) for word in words))
    assert str(tree).startswith("(NP (NN f-LRB-x-RRB-) (NN -LSB-) (NN -LRB-)")
    assert read(str(tree)) == [tree]


def test_constituents_span_leaves():
    (tree,) = read("(S (NP (DT the) (NP (NN cat))) (VP (VBZ sleeps)))")
    assert list(tree.constituents()) == [("S", 0, 3), ("NP", 0, 2), ("NP", 1, 2), ("VP", 2, 3)]
    assert str(right_branching(list(tree.leaves()), "S", "X")) == "(S (DT the) (X (NN cat) (X (VBZ sleeps))))"


def test_parts_of_a_folder(tmp_path):
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "a.tree").write_text("(S (A b))\n(S (A c))")
    (tmp_path / "dev.mrg").write_text("(S (A d))")
    (tmp_path / "test_1.tree").write_text("(S (A e))")
    (tmp_path / "LICENSE.txt").write_text("all rights")
    found = read_treebank(tmp_path)
    assert [len(found.train), len(found.valid), [*found.tests]] == [2, 1, ["test_1"]]
    assert len(found.files) == 3
    alone = read_treebank(tmp_path / "train" / "a.tree")
    assert [len(alone.train), len(alone.valid)] == [1, 1]
    assert read_trees(tmp_path / "dev.mrg") == found.valid
    with pytest.raises(MissingError, match="no training trees"):
        read_treebank(tmp_path / "train")


def test_tests_are_read_where_nothing_is_there_to_learn_from(tmp_path):
    for name in ("test.a.tree", "test.b.tree"):
        (tmp_path / name).write_text("(S (A e))")
    (tmp_path / "dev.tree").write_text("(S (A b))")
    assert {name: len(trees) for name, trees in read_test_trees(tmp_path).items()} == {"test": 2}
    assert [*read_test_trees(tmp_path / "dev.tree")] == ["dev.tree"]
    with pytest.raises(MissingError, match="no training trees"):
        read_treebank(tmp_path)


def test_a_file_of_empty_trees_is_refused(tmp_path):
    (tmp_path / "x.tree").write_text("(TOP (-NONE- *))\n")
    with pytest.raises(InputError, match="no tree with a word"):
        read_trees(tmp_path / "x.tree")


def test_sentences_that_are_learnt_and_measured_on_are_told(tmp_path):
    (tmp_path / "train.tree").write_text("(S (A b))\n(S (A c))")
    (tmp_path / "dev.tree").write_text("(S (A d))")
    (tmp_path / "test.tree").write_text("(NP (A b))\n(S (A e))")
    assert read_treebank(tmp_path).notes == ("test: 1 of 2 share their text with what is learnt from",)
