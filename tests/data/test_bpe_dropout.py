"""BPE that leaves out merges: as the tokenizer where it leaves out none, the same for the same draws, and the text can
always be read back."""

import random
import tracemalloc

import pytest

from heedful.data import bpe_dropout
from heedful.data.bpe_dropout import BPEDropout
from heedful.data.tokenizer import Tokenizer, train_tokenizer
from heedful.errors import InputError

TEXTS = ["the small cat sleeps near the smaller house", "Où est-elle, 1234 chats ?", "", "  the\tthe ", "日本 <s> the"]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(TEXTS[:2] * 3, kind="bpe", size=330)


def test_without_dropout_it_is_the_tokenizer(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bpe_dropout, "MOST", 3)  # what it remembers is made anew on the way
    encoder, draw = BPEDropout(tokenizer, 0.0), random.Random(1)
    assert [encoder.encode(text, draw) for text in TEXTS] == tokenizer.encode(TEXTS)


def test_the_draws_say_how_words_are_cut(tokenizer: Tokenizer) -> None:
    encoder = BPEDropout(tokenizer, 0.3)
    made = [[encoder.encode(text, random.Random(seed)) for text in TEXTS] for seed in (1, 2, 1)]
    assert made[0] == made[2] != made[1]
    assert [tokenizer.decode(ids) for ids in made[0]] == tokenizer.decode_batch(tokenizer.encode(TEXTS))
    assert len(made[0][0]) > len(tokenizer.encode(TEXTS[:1])[0])


def test_a_merge_is_left_out_as_often_as_it_should_be() -> None:
    """Of a word with one merge; and of two in a row, where the second is possible after the first alone."""
    tokenizer = train_tokenizer(["ab ab ab"], kind="bpe", size=262)
    assert len(tokenizer.encode(["ab"])[0]) == 1
    encoder, draw = BPEDropout(tokenizer, 0.25), random.Random(5)
    lengths = [len(encoder.encode("ab", draw)) for _ in range(4000)]
    assert {*lengths} == {1, 2, 3}
    assert lengths.count(1) / 4000 == pytest.approx(0.75**2, abs=0.03)
    assert lengths.count(2) / 4000 == pytest.approx(0.75 * 0.25, abs=0.03)
    assert lengths.count(3) / 4000 == pytest.approx(0.25, abs=0.03)


@pytest.mark.parametrize("kind", ["unigram", "chars", "bytes"])
def test_what_merges_nothing_is_refused(kind: str) -> None:
    with pytest.raises(InputError, match="only a BPE vocabulary"):
        BPEDropout(train_tokenizer(TEXTS, kind=kind, size=400), 0.1)


def test_a_text_without_spaces_takes_little_memory() -> None:
    draw = random.Random(2)
    text = "".join(draw.choices([chr(0x4E00 + i) for i in range(80)], k=150))
    encoder = BPEDropout(train_tokenizer([text] * 2, kind="bpe", size=700), 0.1)
    tracemalloc.start()
    try:
        encoder.encode(text, draw)
        assert tracemalloc.get_traced_memory()[1] < 16e6
    finally:
        tracemalloc.stop()
