"""Diverse beam search: of one group it is the beam, of no diversity each group is; else they say different things."""

import math
from itertools import pairwise

import pytest
import torch

from heedful.decode.contract import Hypothesis
from heedful.decode.diverse import _Grouped, _State, diverse_beam
from heedful.decode.rules import NEVER
from heedful.decode.search import beam
from heedful.errors import InputError
from toys import BOS, EOS, Toy, sources

OPTIONS = {"bos": BOS, "eos": EOS, "longest": [12, 9, 14], "length_penalty": 0.7}


def groups_of(
    count: int, width: int, diversity: float, n_best: int, toy: Toy | None = None, *, early: bool = True
) -> list[list[Hypothesis]]:
    more = {"beam": count * width, "groups": count, "diversity": diversity, "n_best": n_best, "early_stopping": early}
    return diverse_beam(toy or Toy(), sources(3), **OPTIONS, **more)


@pytest.mark.parametrize("early", [True, False])
def test_of_one_group_it_is_the_beam(early: bool) -> None:
    assert groups_of(1, 4, 0.5, 4, early=early) == beam(
        Toy(), sources(3), beam=4, n_best=4, early_stopping=early, **OPTIONS
    )


@pytest.mark.parametrize("early", [True, False])
def test_without_diversity_each_group_is_a_beam(early: bool) -> None:
    assert groups_of(3, 2, 0.0, 6, early=early) == beam(
        Toy(), sources(3), beam=2, n_best=2, early_stopping=early, **OPTIONS
    )


def test_the_first_group_is_a_beam_and_the_others_say_something_else() -> None:
    alone = beam(Toy(), sources(3), beam=2, **OPTIONS)
    found = groups_of(3, 2, 4.0, 6)
    for (best,), own in zip(alone, found, strict=True):
        assert best in own
        assert len(own) == len({one.tokens for one in own}) > 2
        assert all(one.score >= other.score or other.finished < one.finished for one, other in pairwise(own))
    starts = [len({one.tokens[:1] for one in own}) for own in found]
    plain = [len({one.tokens[:1] for one in own}) for own in groups_of(3, 2, 0.0, 6)]
    assert sum(starts) > sum(plain)


def test_scores_are_the_models_own() -> None:
    toy = Toy()
    for source, own in zip(sources(3), groups_of(3, 2, 2.0, 6), strict=True):
        for one in own:
            state, told, newest = toy.start(source[None], None), [], torch.tensor([BOS])
            for token in (*one.tokens, *([EOS] if one.finished else [])):
                logits, state = toy.step(newest, state)
                told.append(float(logits.log_softmax(-1)[0, token]))
                newest = torch.tensor([token])
            assert one.token_log_probabilities == pytest.approx(told, abs=1e-5)


def test_a_batch_is_one_by_one_and_prefixes_go_before() -> None:
    together = groups_of(2, 2, 1.0, 4)
    for row, limit in enumerate(OPTIONS["longest"]):
        one = diverse_beam(
            Toy(),
            sources(3)[row : row + 1],
            **{**OPTIONS, "longest": [limit]},
            beam=4,
            groups=2,
            diversity=1.0,
            n_best=4,
        )
        assert one == together[row : row + 1]
    held = diverse_beam(Toy(), sources(3), **OPTIONS, beam=4, groups=2, n_best=4, prefix=[[5, 6], [], [7]])
    assert {one.tokens[:2] for one in held[0]} == {(5, 6)}
    assert {one.tokens[0] for one in held[2]} == {7}


def test_groups_have_one_size() -> None:
    with pytest.raises(InputError, match="a beam of 5 in 2 groups"):
        diverse_beam(Toy(), sources(3), **OPTIONS, beam=5, groups=2)


@pytest.mark.parametrize("diversity", [-0.5, math.nan, math.inf])
def test_diversity_is_a_number_of_nats(diversity: float) -> None:
    with pytest.raises(InputError, match=f"diversity {diversity}"):
        groups_of(2, 2, diversity, 4)


def test_what_a_group_cannot_say_costs_the_next_group_nothing() -> None:
    """The first group has one token left for its two rows; the second one likes any other better."""
    total, grouped = torch.tensor([[0.0, NEVER], [0.0, NEVER]]), _Grouped(Toy(), 2, 2, 0.5, (EOS,))
    state = _State(Toy().start(sources(2), None), torch.tensor([0, 0, 1, 1]))
    for token in (0, 1, 3, 4, 6, 7):
        scores = torch.full((4, 8), NEVER)
        scores[:2, 5], scores[2:], scores[2:, token] = 0.0, 0.0, 0.1
        made = grouped.choose(scores, torch.zeros(4), total, state)
        assert made.token.gather(1, made.live)[:, 0].tolist() == [5, token]
