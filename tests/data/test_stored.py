"""The permutation that is computed number by number: a permutation for every size, and for ever the same. Ids of texts
that are encoded part by part are those of the whole texts."""

import random
from collections.abc import Iterable

import numpy as np
import pytest

from heedful.data import lines, stored
from heedful.data.pieces import Kind
from heedful.data.stored import permuted, stored_texts
from heedful.data.tokenizer import train_tokenizer

KINDS: tuple[Kind, ...] = ("bpe", "unigram", "chars", "bytes")
SIGNS = [
    *"abcdefg12.,'<▁",
    " ",
    " ",
    " ",
    " ",
    "\n",
    "  ",
    "\t",
    "é",
    "e\u0301",
    "\u0301",
    "\u00a0",
    "猫",
    "🙂",
    "\ud83d",
    "'s",
]


@pytest.mark.parametrize("sizes", [range(1, 300), [1000, 4095, 4096, 4097, 100_003]])
def test_every_number_has_one_place(sizes: Iterable[int]) -> None:
    for n in sizes:
        found = permuted(np.arange(n), n, "key", 1)
        assert sorted(found.tolist()) == [*range(n)]


def test_a_window_is_a_part_of_the_whole() -> None:
    whole = permuted(np.arange(1000), 1000, 7)
    assert permuted(np.arange(100, 200), 1000, 7).tolist() == whole[100:200].tolist()
    assert whole.tolist() != permuted(np.arange(1000), 1000, 8).tolist()


def test_neighbours_are_no_longer_neighbours() -> None:
    found = permuted(np.arange(100_000), 100_000, 3).astype(float)
    assert abs(np.corrcoef(found[1:], found[:-1])[0, 1]) < 0.02
    assert abs(found[:10_000].mean() / 50_000 - 1) < 0.02


def test_the_numbers_never_change() -> None:
    """Trainings that were begun with them continue with them."""
    assert permuted(np.arange(8), 1000, "blocks", 1, 2).tolist() == [954, 198, 823, 670, 113, 373, 266, 57]


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_that_is_read_in_parts_gives_the_ids_of_the_whole(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    """In whatever parts; and so does the vocabulary that is learnt of them."""
    draw = random.Random(0)
    texts = ["".join(draw.choices(SIGNS, k=draw.choice([0, 1, 9, 200]))) for _ in range(300)]
    whole = train_tokenizer(texts, kind=kind, size=400)
    ids = whole.encode_whole(texts)
    for module in (lines, stored):
        monkeypatch.setattr(module, "PART", 5)
    assert train_tokenizer(texts, kind=kind, size=400).fingerprint == whole.fingerprint
    found = stored_texts(texts, whole)
    assert max(len([*lines.in_parts(text)]) for text in texts) > 10
    assert [*found] == ids
    assert (len(found), found[-1], found[2:5]) == (len(ids), ids[-1], ids[2:5])
    assert found.counts().total() == len(found.ids) == sum(map(len, ids))
    ends = [token for own in ids for token in (1, *own)]
    assert found.behind(1).tolist() == [*ends, 1]
