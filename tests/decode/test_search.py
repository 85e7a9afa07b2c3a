"""The searches, on a toy whose next token depends on the whole history, against searches spelled out in plain Python.

Sizes: B sentences, S source length, R rows, V vocabulary.
"""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from heedful.decode.contract import Hypothesis
from heedful.decode.rules import NEVER, NoRepeat
from heedful.decode.search import beam, greedy, sample
from heedful.decode.settings import Sampling
from heedful.errors import InputError, NonFiniteError
from trails import BOS, EOS, PAD, PLACES, Told, Toy, check_scores, sources, toy


@dataclass
class Plain:
    """What the plain search found, and how many steps it took."""

    finished: list[tuple[float, Told]]
    live: list[tuple[float, Told]]
    steps: int


def plain_beam(
    model: Toy,
    source: Sequence[int],
    limit: int,
    width: int,
    alpha: float,
    patience: float = 1.0,
    allow: Callable[[Told, int], bool] = lambda history, token: True,
) -> Plain:
    """Beam search as its description says, one sentence, without any bound."""
    live: list[tuple[float, Told]] = [(0.0, ())]
    finished: list[tuple[float, Told]] = []
    for step in range(1, limit + 1):
        options = [
            (total + value, (*history, token))
            for total, history in live
            for token, value in enumerate(model.log_probabilities(source, history))
            if allow(history, token)
        ]
        options = sorted(options, key=lambda option: -option[0])[: 2 * width]
        ends = [option for option in options[:width] if option[1][-1] == EOS]
        finished += [(total / step**alpha, history[:-1]) for total, history in ends]
        live = [option for option in options if option[1][-1] != EOS][:width]
        if len(finished) >= patience * width:
            break
    return Plain(sorted(finished, key=lambda found: -found[0]), [(s / step**alpha, h) for s, h in live], step)


def test_greedy_takes_the_best_token_each_time() -> None:
    model, source = toy(), sources(30)
    found = greedy(model, source, bos=BOS, eos=EOS, longest=12, length_penalty=0.6)
    for own, one in zip(source.tolist(), found, strict=True):
        told: list[int] = []
        while len(told) < 12 and EOS not in told:
            values = model.log_probabilities(own, told)
            told.append(values.index(max(values)))
        assert one.tokens == tuple(token for token in told if token != EOS)
        assert one.finished == (EOS in told)
        check_scores(model, own, one, 0.6)
    assert {one.finished for one in found} == {True, False}


@pytest.mark.parametrize("alpha", [-0.5, 0.0, 0.6, 1.0, 2.0])
def test_beam_1_is_greedy(alpha: float) -> None:
    model, source = toy(), sources(40)
    options: dict[str, Any] = {
        "bos": BOS,
        "eos": EOS,
        "longest": 9,
        "length_penalty": alpha,
        "forbidden": (PAD, BOS),
        "shortest": 2,
    }
    assert beam(model, source, beam=1, **options) == [[one] for one in greedy(model, source, **options)]


def test_what_stands_at_the_limit_comes_by_its_score_or_after_what_is_finished() -> None:
    """By sums, which only fall, neither search ends before its results are settled."""
    model, source = toy(end=0.5), sources(30)
    options: dict[str, Any] = {"bos": BOS, "eos": EOS, "longest": 4, "beam": 4, "n_best": 4, "length_penalty": 0.0}
    by_score = beam(model, source, early_stopping=False, **options)
    finished_first = beam(model, source, patience=math.inf, **options)
    for own, scored, sorted_in in zip(source.tolist(), by_score, finished_first, strict=True):
        plain = plain_beam(model, own, 4, 4, 0.0, math.inf)
        every = [(told, True, total) for total, told in plain.finished] + [(h, False, total) for total, h in plain.live]
        best = sorted(every, key=lambda one: -one[2])[:4]
        assert [(one.tokens, one.finished) for one in scored] == [one[:2] for one in best]
        best = sorted(every, key=lambda one: (not one[1], -one[2]))[:4]
        assert [(one.tokens, one.finished) for one in sorted_in] == [one[:2] for one in best]
    assert any(not own[0].finished and any(one.finished for one in own) for own in by_score)


def test_beam_1_is_greedy_among_equal_logits() -> None:
    model = Toy((toy(V=300).table / 3).round())
    options: dict[str, Any] = {"bos": BOS, "eos": EOS, "longest": 9, "rules": (NoRepeat(2),)}
    found = greedy(model, sources(40), **options)
    assert beam(model, sources(40), beam=1, **options) == [[one] for one in found]


def test_the_lower_token_is_first_among_equals() -> None:
    flat = Toy(torch.zeros(PLACES, 9))
    options: dict[str, Any] = {"bos": BOS, "eos": EOS, "longest": 2, "forbidden": (PAD, EOS, 4)}
    assert greedy(flat, sources(1), **options)[0].tokens == (1, 1)
    found = beam(flat, sources(1), beam=4, n_best=4, **options)
    assert [one.tokens for one in found[0]] == [(1, 1), (1, 3), (1, 5), (1, 6)]


@pytest.mark.parametrize("alpha", [-0.5, 0.0, 0.6, 1.0])
def test_a_wide_beam_finds_the_best_of_all_sequences(alpha: float) -> None:
    model, V, limit = toy(V=5), 5, 4
    words = [token for token in range(V) if token != EOS]
    for own in sources(3).tolist():
        every = []
        for length in range(limit):
            for told in itertools.product(words, repeat=length):
                spoken = (*told, EOS)
                total = sum(model.log_probabilities(own, spoken[:i])[token] for i, token in enumerate(spoken))
                every.append((total / len(spoken) ** alpha, told))
        every.sort(reverse=True)
        for n_best in (1, 85):
            found = beam(
                model,
                torch.tensor([own]),
                bos=BOS,
                eos=EOS,
                longest=limit,
                beam=V**limit,
                length_penalty=alpha,
                n_best=n_best,
                patience=math.inf,
            )[0]
            assert [one.tokens for one in found] == [told for _, told in every[:n_best]]
            assert [one.score for one in found] == pytest.approx([score for score, _ in every[:n_best]], abs=1e-5)


@pytest.mark.parametrize("alpha", [-0.5, 0.0, 0.6, 1.0, 1.5])
@pytest.mark.parametrize("patience", [0.5, 1.0, 2.0, math.inf])
def test_beam_is_the_plain_search_run_to_its_end(alpha: float, patience: float) -> None:
    model, source = toy(V=12, end=1.0), sources(25)
    limits = [3 + i % 11 for i in range(25)]
    options: dict[str, Any] = {"longest": limits, "length_penalty": alpha, "patience": patience}
    cases = [
        (width, n_best, *case)
        for width, n_best in ((2, 1), (2, 2), (5, 1), (5, 3))
        for case in zip(
            source.tolist(),
            limits,
            beam(model, source, bos=BOS, eos=EOS, beam=width, n_best=n_best, **options),
            strict=True,
        )
    ]
    for width, n_best, own, limit, ours in cases:
        plain = plain_beam(model, own, limit, width, alpha, patience)
        expected = [told for _, told in plain.finished[:n_best]]
        ended = [one.tokens for one in ours if one.finished]
        assert ended == expected
        assert [one.tokens for one in ours[len(ended) :]] == [told for _, told in plain.live][: n_best - len(ended)]
        assert [one.score for one in ours if one.finished] == sorted(one.score for one in ours if one.finished)[::-1]
        for one in ours:
            check_scores(model, own, one, alpha)


@pytest.mark.parametrize("alpha", [-0.5, 0.0, 0.6, 1.0])
def test_a_sentence_is_over_as_soon_as_no_live_hypothesis_can_win(alpha: float) -> None:
    model, source, limit, width = toy(V=12, end=1.0), sources(25), 14, 4
    options: dict[str, Any] = {
        "bos": BOS,
        "eos": EOS,
        "longest": limit,
        "beam": width,
        "length_penalty": alpha,
        "patience": math.inf,
    }
    beam(model, source, **options)
    steps = [sum(i in sentences for sentences in model.seen) for i in range(25)]
    for own, taken in zip(source.tolist(), steps, strict=True):
        over = []
        for step in range(1, limit + 1):
            plain = plain_beam(model, own, step, width, alpha, math.inf)
            best = plain.live[0][0] * step**alpha
            bound = best / (limit if alpha > 0 else step + 1) ** alpha
            over.append(step == limit or bool(plain.finished and plain.finished[0][0] >= bound))
        assert taken == over.index(True) + 1
    assert min(steps) < limit


@pytest.mark.parametrize("width", [1, 2, 5])
def test_finished_sentences_leave_the_batch(width: int) -> None:
    model, source = toy(end=0.5), sources(20)
    beam(model, source, bos=BOS, eos=EOS, longest=10, beam=width)
    assert len(model.seen[0]) == 20, "the first step takes one row a sentence"
    for rows in model.seen[1:]:
        assert set(Counter(rows).values()) == {width}
    assert len(set(model.seen[-1])) < 20
    for earlier, later in itertools.pairwise(model.seen):
        assert set(later) <= set(earlier)

    found = greedy(model, source, bos=BOS, eos=EOS, longest=10)
    lengths = [len(one.token_log_probabilities) for one in found]
    expected = [[i for i, length in enumerate(lengths) if length > step] for step in range(max(lengths))]
    assert model.seen == expected


def search_all(
    model: Toy, source: Tensor, segments: Tensor | None, limits: list[int] | Tensor
) -> list[list[list[Hypothesis]]]:
    """Every search, each with results for every sentence."""
    options: dict[str, Any] = {
        "bos": BOS,
        "eos": EOS,
        "longest": limits,
        "forbidden": (PAD, BOS),
        "rules": (NoRepeat(2),),
    }
    seeds = source.sum(1).tolist()
    return [
        [[one] for one in greedy(model, source, segments, **options)],
        beam(model, source, segments, beam=4, n_best=3, **options),
        sample(
            model,
            source,
            segments,
            seeds=seeds,
            sampling=Sampling(temperature=0.8, top_k=6, top_p=0.95),
            samples=2,
            **options,
        ),
    ]


def test_batch_equals_one_by_one() -> None:
    model, source, limits = toy(V=10), sources(16), [2 + i % 9 for i in range(16)]
    together = search_all(model, source, None, limits)
    for i in range(16):
        alone = search_all(model, source[i : i + 1], None, limits[i : i + 1])
        assert [found[i] for found in together] == [found[0] for found in alone]


def test_padding_reaches_the_model_as_segments() -> None:
    model, source = toy(), sources(4)
    padded = torch.cat((source, torch.full((4, 2), 77)), dim=1)
    segments = (torch.arange(5) < 3).long().expand(4, 5)
    assert search_all(model, padded, segments, [6] * 4)[:2] == search_all(model, source, None, [6] * 4)[:2]


def test_several_best_are_sorted_and_distinct() -> None:
    found = beam(toy(end=1.0), sources(20), bos=BOS, eos=EOS, longest=8, beam=6, n_best=6)
    for ours in found:
        assert len({one.tokens for one in ours}) == len(ours) == 6
        order = [(not one.finished, -one.score) for one in ours]
        assert order == sorted(order)
    assert {one.finished for ours in found for one in ours} == {True, False}


def test_several_ends_of_one_beginning_are_one_hypothesis() -> None:
    model, source, ends = toy(V=8, end=3.0), sources(6), (3, EOS)
    model.table[:, 3] += 3
    for own in beam(model, source, bos=BOS, eos=ends, longest=6, beam=5, n_best=5):
        assert len({one.tokens for one in own if one.finished}) == sum(one.finished for one in own)
        assert [*own] == sorted(own, key=lambda one: (not one.finished, -one.score))
    # enough beginnings are left for a beam, and an end is the more probable of the two
    wide = beam(model, source, bos=BOS, eos=ends, longest=2, beam=8, n_best=8, patience=math.inf)
    for words, own in zip(source.tolist(), wide, strict=True):
        for one in own:
            values = model.log_probabilities(words, one.tokens)
            end = pytest.approx(max(values[end] for end in ends), abs=1e-5)
            assert not one.finished or one.token_log_probabilities[-1] == end


def test_limits_count_the_end_token() -> None:
    model, limits = toy(), [1, 2, 5, 9]
    for which in (limits, torch.tensor(limits)):
        for ours in search_all(model, sources(4), None, which)[0], search_all(model, sources(4), None, which)[1]:
            for limit, found in zip(limits, ours, strict=True):
                assert all(len(one.tokens) + one.finished <= limit for one in found)
                assert all(one.finished or len(one.tokens) == limit for one in found)
    ends = Toy(torch.tensor([[0.0, 0, 9, 0]]).expand(PLACES, 4).clone())
    assert greedy(ends, sources(1), bos=BOS, eos=EOS, longest=1)[0].finished
    assert not greedy(ends, sources(1), bos=BOS, eos=EOS, longest=3, shortest=3)[0].finished
    assert greedy(ends, sources(1), bos=BOS, eos=EOS, longest=4, shortest=3)[0].finished


def test_shortest_forbidden_and_no_repeat_hold() -> None:
    model = toy(V=9, end=2.0)
    options: dict[str, Any] = {
        "bos": BOS,
        "eos": EOS,
        "longest": 14,
        "shortest": 3,
        "forbidden": (PAD, BOS),
        "rules": (NoRepeat(2),),
    }
    free = beam(model, sources(20), bos=BOS, eos=EOS, longest=14, beam=4, n_best=4)
    held = beam(model, sources(20), beam=4, n_best=4, **options)
    drawn = sample(model, sources(20), sampling=Sampling(seed=1), samples=4, **options)
    for found, holds in ((free, False), (held, True), (drawn, True)):
        every = [one.tokens for ours in found for one in ours]
        assert all(len(told) >= 3 for told in every) == holds
        assert (not any({PAD, BOS} & set(told) for told in every)) == holds
        assert all(max(Counter(itertools.pairwise(told)).values(), default=1) == 1 for told in every) == holds


def test_beam_with_forbidden_continuations_is_the_plain_search() -> None:
    model, source = toy(V=9, end=1.0), sources(20)

    def allow(history: Told, token: int) -> bool:
        return token not in (PAD, BOS) and (*history[-1:], token) not in list(itertools.pairwise(history))

    found = beam(model, source, bos=BOS, eos=EOS, longest=12, beam=3, forbidden=(PAD, BOS), rules=(NoRepeat(2),))
    for own, (one,) in zip(source.tolist(), found, strict=True):
        plain = plain_beam(model, own, 12, 3, 1.0, allow=allow)
        assert (one.tokens, one.finished) == (plain.finished[0][1], True)
        check_scores(model, own, one, 1.0)


PREFIXES = [[], [5], [PAD, 6, 6, 6], [3, 4], [7, 7, 7, 7, 7, 7]]


def test_a_forced_prefix_is_scored_as_any_tokens_whatever_the_rules() -> None:
    model, source = toy(), sources(5)
    options: dict[str, Any] = {
        "bos": BOS,
        "eos": EOS,
        "longest": 6,
        "forbidden": (PAD,),
        "rules": (NoRepeat(2),),
        "prefix": PREFIXES,
    }
    every = [
        [[one] for one in greedy(model, source, **options)],
        beam(model, source, beam=3, n_best=2, **options),
        sample(model, source, sampling=Sampling(seed=2), samples=2, **options),
    ]
    for found in every:
        for own, forced, ours in zip(source.tolist(), PREFIXES, found, strict=True):
            for one in ours:
                assert list(one.tokens[: len(forced)]) == forced
                check_scores(model, own, one, 1.0)
    assert beam(model, source, beam=1, **options) == every[0]


def test_a_forced_prefix_changes_nothing_else() -> None:
    model, source = toy(V=12, end=0.5), sources(25)
    prefixes = [[3, 4, 5][: i % 4] for i in range(25)]
    found = beam(model, source, bos=BOS, eos=EOS, longest=9, beam=4, prefix=prefixes)
    for i, (own, forced) in enumerate(zip(source.tolist(), prefixes, strict=True)):
        alone = beam(model, source[i : i + 1], bos=BOS, eos=EOS, longest=9, beam=4, prefix=[forced])
        assert alone == [found[i]]

        def allow(history: Told, token: int, forced: list[int] = forced) -> bool:
            return len(history) >= len(forced) or token == forced[len(history)]

        plain = plain_beam(model, own, 9, 4, 1.0, allow=allow)
        assert found[i][0].tokens == (plain.finished or plain.live)[0][1]


def test_a_prefix_forced_on_all_takes_one_row_a_sentence() -> None:
    model = toy()
    beam(model, sources(3), bos=BOS, eos=EOS, longest=9, beam=4, prefix=[[3, 3], [4, 4, 4], [5, 5]], shortest=9)
    assert [len(sentences) for sentences in model.seen] == [3, 3, 3, 12, 12, 12, 12, 12, 12]


def test_a_sentence_stops_where_the_rules_leave_nothing() -> None:
    def two_at_most(history: Tensor, scores: Tensor) -> Tensor:
        return torch.full_like(scores, NEVER) if history.shape[1] == 2 else scores

    model = toy(end=-9.0)
    options: dict[str, Any] = {"bos": BOS, "eos": EOS, "longest": 6, "rules": (two_at_most,)}
    free = greedy(model, sources(4), bos=BOS, eos=EOS, longest=2)
    assert greedy(model, sources(4), **options) == free
    assert beam(model, sources(4), beam=1, **options) == [[one] for one in free]
    drawn = sample(model, sources(4), sampling=Sampling(seed=0), samples=2, **options)
    assert all(len(one.tokens) == 2 and not one.finished for ours in drawn for one in ours)
    wide = beam(model, sources(4), beam=3, n_best=3, **options)
    assert wide == beam(model, sources(4), beam=3, n_best=3, bos=BOS, eos=EOS, longest=2)

    nothing: dict[str, Any] = {"bos": BOS, "eos": EOS, "longest": 3, "forbidden": tuple(range(8))}
    empty = Hypothesis((), 0.0, 0.0, (), False)
    assert greedy(model, sources(2), **nothing) == [empty, empty]
    assert beam(model, sources(2), beam=3, n_best=2, **nothing) == [[empty], [empty]]


def test_half_precision_logits_are_scored_in_float32() -> None:
    model = toy(V=300)
    model.table = model.table.bfloat16()
    for own, (one,) in zip(
        sources(5).tolist(), beam(model, sources(5), bos=BOS, eos=EOS, longest=5, beam=3), strict=True
    ):
        exact_table = Toy(model.table.float())
        check_scores(exact_table, own, one, 1.0)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_logits_that_are_not_finite_are_refused(bad: float) -> None:
    model = toy()
    model.table[:, 4] = bad
    options: dict[str, Any] = {"bos": BOS, "eos": EOS, "longest": 4}
    with pytest.raises(NonFiniteError, match="NaN or infinite"):
        greedy(model, sources(3), **options)
    with pytest.raises(NonFiniteError, match="NaN or infinite"):
        beam(model, sources(3), beam=3, **options)
    with pytest.raises(NonFiniteError, match="NaN or infinite"):
        sample(model, sources(3), sampling=Sampling(seed=1, top_p=0.9), **options)


def test_an_empty_batch_has_no_results() -> None:
    options: dict[str, Any] = {"bos": BOS, "eos": EOS, "longest": 4}
    assert greedy(toy(), sources(0), **options) == []
    assert beam(toy(), sources(0), beam=2, **options) == []
    assert sample(toy(), sources(0), sampling=Sampling(seed=1), samples=2, **options) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"longest": 0}, "sentence 0: a limit of 0"),
        ({"longest": [4, 4, 4]}, "3 limits and 2 prefixes for 2 sentences"),
        ({"longest": 4, "prefix": [[3]]}, "2 limits and 1 prefixes"),
        ({"longest": [4, 1], "prefix": [[3, 3], [3, 3]]}, "sentence 1: a limit of 1 tokens"),
        ({"longest": 4, "prefix": [[3], [EOS]]}, "sentence 1: the forced prefix has an end token"),
        ({"longest": 4, "n_best": 3}, "n_best 3"),
        ({"longest": 4, "n_best": 0}, "n_best 0"),
        ({"longest": 4, "patience": 0.0}, "patience 0.0"),
    ],
)
def test_options_that_cannot_be_met_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        beam(toy(), sources(2), bos=BOS, eos=EOS, beam=2, **options)
