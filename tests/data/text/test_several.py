"""Several data sets at once: patterns, weights, and what is held out of all together."""

from collections import Counter
from pathlib import Path

import pytest

import written
from heedful.data.text.corpus import read_parallel
from heedful.errors import InputError
from heedful.tasks.translate.training.epochs import weighted_order

FIRST = [(f"first {i}", f"erster {i}") for i in range(60)]
SECOND = [(f"second {i}", f"zweiter {i}") for i in range(60)]


@pytest.fixture
def two(tmp_path: Path) -> tuple[str, str]:
    (tmp_path / "a.tmx").write_bytes(written.tmx(FIRST))
    (tmp_path / "b.tsv").write_text("".join(f"{one}\t{other}\n" for one, other in SECOND))
    return str(tmp_path / "a.tmx"), str(tmp_path / "b.tsv")


def test_sets_are_read_together_and_held_out_together(two: tuple[str, str]):
    corpus = read_parallel([two[0], f"{two[1]}:0.2"])
    parts = [corpus.train, corpus.valid, *corpus.tests.values()]
    assert sorted(text for part in parts for text in part.source) == sorted(text for text, _ in FIRST + SECOND)
    assert (corpus.source, corpus.target) == ("en", "de")
    assert corpus.weights == {(two[1], None): 0.2}
    assert corpus.taken[1].endswith("60 pairs, 0.2 times in each epoch")
    for part in parts:
        for i, text in enumerate(part.source):
            assert part.file_of(i) == two[text.startswith("second")]


def test_one_sentence_is_on_one_side_across_sets(tmp_path: Path):
    (tmp_path / "a.tsv").write_text("".join(f"Same {i}\ta {i}\n" for i in range(100)))
    (tmp_path / "b.tsv").write_text("".join(f"same {i}\tb {i}\n" for i in range(100)))
    corpus = read_parallel([str(tmp_path / "*.tsv")])
    held = {text.lower() for part in (corpus.valid, *corpus.tests.values()) for text in part.source}
    assert held
    assert not held & {text.lower() for text in corpus.train.source}


def test_two_files_of_lines_are_two_sides(tmp_path: Path):
    (tmp_path / "x.en").write_text("".join(f"{one}\n" for one, _ in FIRST))
    (tmp_path / "x.de").write_text("".join(f"{other}\n" for _, other in FIRST))
    corpus = read_parallel([str(tmp_path / "x.en"), str(tmp_path / "x.de")])
    assert dict(zip(corpus.train.source, corpus.train.target, strict=True)).items() <= dict(FIRST).items()
    with pytest.raises(InputError, match="one side of the pairs alone"):
        read_parallel([str(tmp_path / "x.en:2"), str(tmp_path / "x.de")])


def test_a_name_that_ends_like_a_weight_is_a_name(tmp_path: Path):
    path = tmp_path / "a:2"
    path.write_text("".join(f"{one}\t{other}\n" for one, other in FIRST))
    assert not read_parallel(str(path)).weights


def test_weights_say_how_often_an_epoch_has_a_pair():
    weights = [1.0] * 10 + [0.2] * 100 + [2.5] * 8
    orders = [Counter(weighted_order(weights, 3, epoch)) for epoch in range(5)]
    for order in orders:
        assert [order[i] for i in range(10)] == [1] * 10
        assert sum(order[i] for i in range(10, 110)) == 20
        assert max(order[i] for i in range(10, 110)) == 1
        assert {order[i] for i in range(110, 118)} == {2, 3}
        assert sum(order[i] for i in range(110, 118)) == 20
    assert len({i for order in orders for i in order if 10 <= i < 110}) > 50  # others in each epoch
    assert weighted_order(weights, 3, 1) == weighted_order(weights, 3, 1) != weighted_order(weights, 4, 1)


def test_a_small_weight_leaves_a_pair_to_an_epoch():
    orders = [weighted_order([0.001] * 100 + [0.2] * 2, 3, epoch) for epoch in range(9)]
    assert {len(order) for order in orders} == {2}
    assert len({tuple(order) for order in orders}) > 1
