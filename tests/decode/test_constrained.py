"""Search for hypotheses with certain phrases in them: all are there, and without any it is the beam search as it is."""

from typing import Any

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from heedful.decode.constrained import Wish, constrained_beam
from heedful.decode.contract import Hypothesis
from heedful.decode.rules import NoRepeat
from heedful.decode.search import beam
from heedful.errors import InputError
from loud import make_loud
from toys import BOS, EOS, Toy, V, rnn, sources, transformer

PARTING = torch.arange(V) % 3 == 0  # tokens that begin something new
WORDS = st.integers(3, V - 1)
PHRASE = st.lists(WORDS, min_size=1, max_size=3).map(tuple)
WISH = st.builds(Wish, st.lists(PHRASE, min_size=1, max_size=2).map(tuple), st.booleans(), st.integers(1, 2))
WISHES = st.lists(WISH, max_size=3)


def found_by(model: Any, source: Tensor, wishes: list[list[Wish]], **more: Any) -> list[list[Hypothesis]]:
    options = {"bos": BOS, "eos": EOS, "longest": 40, "beam": 4, "parting": PARTING, **more}
    return constrained_beam(model, source, wishes=wishes, **options)


def times(said: tuple[int, ...], wish: Wish) -> int:
    """How often the wish is met, counted naively: at most once by what ends in one place."""
    ends = set()
    for phrase in wish.phrases:
        for begin in range(len(said) - len(phrase) + 1):
            end = begin + len(phrase)
            apart = end == len(said) or bool(PARTING[said[end]])
            if said[begin:end] == phrase and (apart or not wish.whole):
                ends.add(end)
    return len(ends)


TWICE = [Wish(((3, 3), (11,)), whole=True, times=2), Wish(((8,),), times=2)]  # put off at each step, if that is as near


@settings(max_examples=60)
@given(st.lists(WISHES, min_size=1, max_size=4), st.integers(2, 6), st.sampled_from([-1.0, 1.0, 4.0]))
@example([[], [], TWICE], 5, 1.0)
def test_every_wish_is_in_every_hypothesis(wishes: list[list[Wish]], width: int, end: float) -> None:
    made = found_by(Toy(end), sources(len(wishes)), wishes, beam=width, n_best=2)
    for own, found in zip(wishes, made, strict=True):
        assert found
        best = found[0]
        assert len(best.tokens) + best.finished <= 40
        for hypothesis in found:
            assert all(times(hypothesis.tokens, wish) >= wish.times for wish in own)


def test_a_phrase_ends_however_improbable_what_parts_words_is() -> None:
    model = Toy()
    model.table[:, PARTING] -= 30
    model.table[:, EOS] -= 60
    wish = Wish(((5, 7),), whole=True)
    for found in found_by(model, sources(6), [[wish]] * 6, beam=2):
        assert times(found[0].tokens, wish) >= 1


def test_tokens_beyond_the_tokenizer_part_nothing() -> None:
    """Of a model whose logits are wider than what its tokenizer knows."""
    model, wishes = Toy(), [[Wish(((5, 7),), whole=True)]] * 4
    known = PARTING & (torch.arange(V) < V - 3)
    found = found_by(model, sources(4), wishes, parting=known[: V - 3])
    assert found == found_by(model, sources(4), wishes, parting=known)


@settings(max_examples=30)
@given(st.lists(WISHES, min_size=2, max_size=4))
def test_a_batch_is_one_by_one(wishes: list[list[Wish]]) -> None:
    model, source = Toy(), sources(len(wishes))
    together = found_by(model, source, wishes, n_best=2, longest=20)
    alone = [found_by(model, source[i : i + 1], [own], n_best=2, longest=20)[0] for i, own in enumerate(wishes)]
    assert together == alone


def loud(model: nn.Module) -> nn.Module:
    torch.manual_seed(3)
    return make_loud(model, norm=1.0).eval()


@pytest.mark.parametrize("make", [Toy, lambda: loud(transformer(V)), lambda: loud(rnn(V))])
def test_without_wishes_it_is_the_plain_beam(make: Any) -> None:
    """Also beside a sentence that has some, which are met."""
    model, source = make(), sources(9) % V
    options: dict[str, Any] = {"longest": [5 + i for i in range(9)], "n_best": 3, "rules": (NoRepeat(3),)}
    plain = beam(model, source, bos=BOS, eos=EOS, beam=4, **options)
    assert found_by(model, source, [[] for _ in plain], **options) == plain
    wishes = [[Wish(((7, 8), (9,)), whole=True), Wish(((5,),))] if i == 4 else [] for i in range(9)]
    mixed = found_by(model, source, wishes, **options)
    assert all(times(one.tokens, wish) for one in mixed[4] for wish in wishes[4])
    for i, (found, expected) in enumerate(zip(mixed, plain, strict=True)):
        if i != 4:
            assert [one.tokens for one in found] == [one.tokens for one in expected]
            assert [one.score for one in found] == pytest.approx([one.score for one in expected], abs=1e-4)


def test_a_forced_prefix_counts() -> None:
    wish = Wish(((5, 6),))
    (made,) = found_by(Toy(9.0), sources(1), [[wish]], prefix=[[4, 5, 6]], length_penalty=0.0)
    assert made[0].tokens == (4, 5, 6)
    (made,) = found_by(Toy(9.0), sources(1), [[wish]], prefix=[[4, 5]], length_penalty=0.0)
    assert made[0].tokens == (4, 5, 6)


@pytest.mark.parametrize("wish", [Wish(()), Wish(((),)), Wish(((5, EOS),))])
def test_a_wish_that_cannot_be_is_refused(wish: Wish) -> None:
    with pytest.raises(InputError, match="a phrase to be said is empty, or has the end token in it"):
        found_by(Toy(), sources(1), [[wish]])
    with pytest.raises(InputError, match="wishes for 1 of 2 sentences"):
        found_by(Toy(), sources(2), [[]])
