"""Drawing, on a toy whose next token depends on all before, against distributions spelled out in plain Python."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from heedful.decode.contract import Hypothesis
from heedful.decode.rules import NoRepeat
from heedful.decode.search import greedy, sample
from heedful.decode.settings import Sampling
from heedful.errors import InputError
from trails import BOS, EOS, Told, Toy, check_scores, sources, toy


def exact(model: Toy, own: list[int], limit: int, keep: Callable[[list[float]], list[float]]) -> dict[Told, float]:
    """The probability of every sequence (with its end token) when each token is drawn from keep(log-probabilities)."""
    chances: dict[Told, float] = {}
    running: dict[Told, float] = {(): 1.0}
    for _ in range(limit):
        grown: dict[Told, float] = {}
        for told, chance in running.items():
            for token, share in enumerate(keep(model.log_probabilities(own, told))):
                if share > 0:
                    (chances if token == EOS else grown)[(*told, token)] = chance * share
        running = grown
    return {**chances, **running}


def filtered(temperature: float, top_k: int, top_p: float, min_p: float) -> Callable[[list[float]], list[float]]:
    """The filters of sampling, spelled out for one row."""

    def keep(values: list[float]) -> list[float]:
        shares = [math.exp(value / temperature) for value in values]
        order = sorted(range(len(shares)), key=lambda token: -shares[token])[:top_k]
        whole = sum(shares[token] for token in order)
        nucleus: list[int] = []
        for token in order:
            if sum(shares[earlier] for earlier in nucleus) < top_p * whole:
                nucleus.append(token)
        kept = {token for token in nucleus if shares[token] >= min_p * shares[order[0]]}
        whole = sum(shares[token] for token in kept)
        return [share / whole if token in kept else 0.0 for token, share in enumerate(shares)]

    return keep


@pytest.mark.parametrize(
    ("temperature", "top_k", "top_p", "min_p"),
    [(1.0, 6, 1.0, 0.0), (0.6, 6, 1.0, 0.0), (1.7, 3, 1.0, 0.0), (1.0, 6, 0.8, 0.0), (1.5, 5, 0.9, 0.1)],
)
def test_samples_follow_the_exact_distribution(temperature: float, top_k: int, top_p: float, min_p: float) -> None:
    model, own, count = toy(V=6, loud=1.0), [4, 5, 6], 3000
    chances = exact(model, own, 3, filtered(temperature, top_k, top_p, min_p))
    assert sum(chances.values()) == pytest.approx(1)
    drawn = sample(
        model,
        torch.tensor([own]),
        bos=BOS,
        eos=EOS,
        longest=3,
        samples=count,
        sampling=Sampling(seed=5, temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p),
    )[0]
    counts = Counter((*one.tokens, EOS) if one.finished else one.tokens for one in drawn)
    assert set(counts) <= set(chances), "nothing that the filters cut"
    assert all(counts[told] for told, chance in chances.items() if chance * count > 12), "everything that they leave"
    rare = [told for told, chance in chances.items() if chance * count < 5]
    cells = [(counts[told], chance * count) for told, chance in chances.items() if chance * count >= 5]
    if rare:
        cells.append((sum(counts[told] for told in rare), sum(chances[told] for told in rare) * count))
    distance = sum((seen - due) ** 2 / due for seen, due in cells if due > 0)
    free = len(cells) - 1
    assert distance < free + 4 * math.sqrt(2 * free)
    for one in drawn[:20]:
        check_scores(model, own, one, 1.0)


def test_a_seed_repeats_and_seeds_differ() -> None:
    model = toy()

    def draw(seed: int | Sequence[int], B: int = 6) -> list[list[Hypothesis]]:
        told: Any = {"sampling": Sampling(seed=seed)} if isinstance(seed, int) else {"seeds": seed}
        return sample(model, sources(B), bos=BOS, eos=EOS, longest=8, samples=3, **told)

    assert draw(1) == draw(1) != draw(2)
    assert draw(1)[:2] == draw(1, B=2), "the batch may grow"
    assert len({one.tokens for one in draw(1)[0]}) > 1, "the samples of a sentence differ"
    same = sample(model, sources(1).expand(6, 3), bos=BOS, eos=EOS, longest=8, sampling=Sampling(seed=1))
    assert len({one.tokens for (one,) in same}) > 1, "so do equal sentences under one seed"
    own = draw([11, 12, 13, 14, 15, 16])
    assert own[4:] == sample(model, sources(6)[4:], bos=BOS, eos=EOS, longest=8, seeds=[15, 16], samples=3)


def test_temperature_0_is_greedy() -> None:
    model = toy()
    options: dict[str, Any] = {"bos": BOS, "eos": EOS, "longest": 8, "rules": (NoRepeat(2),)}
    drawn = sample(model, sources(9), sampling=Sampling(seed=1, temperature=0.0, top_k=3), samples=2, **options)
    assert drawn == [[one, one] for one in greedy(model, sources(9), **options)]


def test_finished_samples_leave_the_batch() -> None:
    model = toy(end=0.5)
    drawn = sample(model, sources(6), bos=BOS, eos=EOS, longest=10, sampling=Sampling(seed=3))
    lengths = [len(one.token_log_probabilities) for (one,) in drawn]
    assert model.seen == [[i for i, n in enumerate(lengths) if n > step] for step in range(max(lengths))]


def test_sampling_options_that_cannot_be_met_are_refused() -> None:
    options: dict[str, Any] = {"bos": BOS, "eos": EOS, "longest": 4}
    with pytest.raises(InputError, match="0 samples"):
        sample(toy(), sources(2), sampling=Sampling(seed=1), samples=0, **options)
    with pytest.raises(InputError, match="1 seeds for 2 sentences"):
        sample(toy(), sources(2), seeds=[1], **options)
    with pytest.raises(InputError, match="temperature is -1"):
        sample(toy(), sources(2), sampling=Sampling(seed=1, temperature=-1.0), **options)
