"""Noise: what is hidden can be put back, what is kept keeps its order, and shares, lengths and orders are as drawn."""

from collections import Counter
from itertools import chain, pairwise, permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.core.seeds import random_stream
from heedful.data.text.noise import hide_spans, infill, passages, permuted, poisson, sentences_of, span_count, words_of

SENTINELS = list(range(1000, 1100))
MASK = 999
LENGTHS = st.integers(1, 300)
SEEDS = st.integers(0, 10**6)
quick = settings(max_examples=60)


def put_back(source: list[int], target: list[int]) -> list[int]:
    """What was hidden, in place of the sentinels: `hide_spans` undone."""
    hidden: dict[int, list[int]] = {}
    for token in target:
        if token in SENTINELS:
            hidden[token] = []
            last = token
        else:
            hidden[last].append(token)
    return list(chain.from_iterable(hidden[token] if token in SENTINELS else [token] for token in source))


@quick
@given(LENGTHS, SEEDS)
def test_spans_can_be_put_back(length: int, seed: int) -> None:
    ids = random_stream(seed).choices(range(50), k=length)
    source, target = hide_spans(ids, SENTINELS, random_stream(seed))
    assert put_back(source, target) == ids
    used = [token for token in source if token in SENTINELS]
    assert used == SENTINELS[: len(used)], "in their order, each once"
    assert [token for token in target if token in SENTINELS] == [*used, SENTINELS[len(used)]]
    assert target[-1] == SENTINELS[len(used)]


@quick
@given(LENGTHS, SEEDS, st.floats(0.05, 0.9), st.floats(1.0, 6.0))
def test_as_much_is_hidden_in_as_many_spans_as_was_asked_for(length: int, seed: int, share: float, mean: float) -> None:
    ids = list(range(length))
    source, target = hide_spans(ids, SENTINELS, random_stream(seed), share=share, mean=mean)
    hidden = max(1, round(share * length))
    kept = [token for token in source if token not in SENTINELS]
    assert len(kept) == length - hidden
    spans = len(source) - len(kept)
    assert len(target) == hidden + spans + 1
    assert (hidden, spans) == span_count(length, share=share, mean=mean) or spans == len(SENTINELS) - 1
    assert spans <= max(1, round(hidden / mean))
    pairs = pairwise(source)
    assert not any(one in SENTINELS and other in SENTINELS for one, other in pairs), "spans do not touch"


def test_the_shares_of_t5() -> None:
    """15 % of 512 tokens, in spans of 3 on average (Raffel et al. 2020, section 3.3.4)."""
    assert span_count(512) == (77, 26)
    assert span_count(1) == (1, 1)
    assert span_count(20) == (3, 1)


def test_with_few_sentinels_spans_are_fewer() -> None:
    source, target = hide_spans(list(range(400)), SENTINELS[:3], random_stream(1))
    assert sum(token in SENTINELS for token in source) == 2
    assert put_back(source, target) == list(range(400))


def test_every_way_to_hide_is_equally_likely() -> None:
    """4 of 6 tokens in 2 spans: 3 ways to share out the 4, and the 2 that are kept stand in 3 ways."""
    found = Counter(
        tuple(hide_spans(list(range(6)), SENTINELS, random_stream(seed), share=4 / 6, mean=2.0)[0])
        for seed in range(1800)
    )
    assert len(found) == 9
    assert min(found.values()) > 140
    assert max(found.values()) < 260


def words_for(count: int, seed: int) -> list[list[int]]:
    """Different words of one to three tokens."""
    draw, tokens = random_stream("words", seed), iter(range(900))
    return [[next(tokens) for _ in range(draw.randint(1, 3))] for _ in range(count)]


@quick
@given(LENGTHS, SEEDS)
def test_infilling_keeps_the_order_of_what_is_kept(count: int, seed: int) -> None:
    words = words_for(count, seed)
    made = infill(words, MASK, random_stream(seed))
    kept = [token for token in made if token != MASK]
    tokens = list(chain.from_iterable(words))
    assert kept == sorted(kept)
    assert set(kept) <= set(tokens)
    whole = [word for word in words if set(word) <= set(kept)]
    assert list(chain.from_iterable(whole)) == kept, "words are kept or hidden as a whole"
    assert len(words) - len(whole) == max(1, round(0.3 * count))
    masks = len(made) - len(kept)
    assert 1 <= masks <= len(words) - len(whole)
    assert len(made) <= len(tokens)


def test_a_span_of_no_words_is_a_mask_between_two() -> None:
    words = [[n] for n in range(60)]
    between = 0
    for seed in range(200):
        made = infill(words, MASK, random_stream(seed))
        for before, middle, after in zip(made, made[1:], made[2:], strict=False):
            between += middle == MASK and after == before + 1
    lengths = [poisson(3.0, random_stream("lengths", seed)) for seed in range(4000)]
    a_text = 200 * 18 / 3 * lengths.count(0) / len(lengths)  # 18 of 60 words hidden, in spans of 3 and of 0
    assert 0.5 * a_text < between < 1.2 * a_text  # some stand beside another mask, or at an end


def test_infilled_spans_have_the_lengths_of_poisson() -> None:
    """Where all texts are long, so that few spans are cut short: as many masks as spans."""
    words = [[n] for n in range(900)]
    masks = [infill(words, MASK, random_stream(seed)).count(MASK) for seed in range(60)]
    assert 270 / 3 * 0.95 < sum(masks) / len(masks) < 270 / 3 * 1.07


def test_poisson() -> None:
    drawn = Counter(poisson(3.0, random_stream(seed)) for seed in range(6000))
    expected = [0.0498, 0.1494, 0.2240, 0.2240, 0.1680, 0.1008]
    for number, chance in enumerate(expected):
        assert drawn[number] / 6000 == pytest.approx(chance, abs=0.02)


def test_every_order_of_sentences_is_equally_likely() -> None:
    sentences = [[1, 2], [3], [4, 5]]
    found = Counter(tuple(map(tuple, permuted(sentences, random_stream(seed)))) for seed in range(1200))
    assert set(found) == set(permutations(map(tuple, sentences)))
    assert min(found.values()) > 150
    assert sentences == [[1, 2], [3], [4, 5]]


def test_noise_depends_on_its_key_alone() -> None:
    ids, words = list(range(80)), [[n] for n in range(80)]
    made = {}
    for key in ((1, 0, 0), (1, 0, 1), (1, 1, 0), (2, 0, 0), ("valid", 0)):
        made[key] = (hide_spans(ids, SENTINELS, random_stream(*key)), infill(words, MASK, random_stream(*key)))
        assert made[key] == (hide_spans(ids, SENTINELS, random_stream(*key)), infill(words, MASK, random_stream(*key)))
    assert len({str(each) for each in made.values()}) == 5
    _, target = hide_spans(list(range(40)), SENTINELS, random_stream(1, 2, 4))
    assert target == [1000, 25, 26, 27, 28, 1001, 30, 31, 1002], "the same on every machine"


def test_sentences() -> None:
    text = 'One.  Two three!\n\n"Four?" she said\tand left. Mr. X has 3.5 apples\nno stop'
    expected = ["One.", "Two three!", '"Four?" she said and left.', "Mr.", "X has 3.5 apples", "no stop"]
    assert sentences_of(text) == expected
    assert sentences_of(" \n ") == []


def test_passages_are_whole_sentences_and_lose_nothing() -> None:
    sentences = [list(range(n)) for n in (3, 4, 2, 9, 1, 20, 5)]
    for longest in (1, 4, 7, 50):
        made = list(passages(sentences, longest))
        assert [token for own in made for part in own for token in part] == list(chain.from_iterable(sentences))
        assert all(0 < sum(map(len, own)) <= longest for own in made)
        for own, after in pairwise(made):
            assert sum(map(len, own)) + len(after[0]) > longest, "no room was left for more"
    assert list(passages(sentences, 7))[:2] == [[sentences[0], sentences[1]], [sentences[2]]]
    assert list(passages([], 5)) == []


def test_words_begin_where_they_are_said_to() -> None:
    assert words_of([7, 1, 2, 8, 9, 3], {7, 8, 9}) == [[7, 1, 2], [8], [9, 3]]
    assert words_of([1, 7], {7}) == [[1], [7]]
    assert words_of([], {7}) == []
