"""Texts that share a batch, whenever they enter and leave it, are what each is alone."""

import math
import random
from collections import Counter
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import pytest
import torch
from torch import Tensor

from heedful.decode.continuous import Batch
from heedful.decode.rules import NEVER, RepetitionPenalty
from heedful.decode.search import greedy, sample
from heedful.errors import InputError, NonFiniteError

PLACES, V, EOS = 1009, 9, 1


@dataclass
class Trail:
    """Where each row is, and was after each of its tokens."""

    past: list[list[int]]
    size: int

    def pick(self, rows: Tensor) -> "Trail":
        return Trail([list(self.past[row]) for row in rows.tolist()], self.size)

    def put(self, rows: Tensor, newer: "Trail") -> "Trail":
        past = list(self.past)
        for row, own in zip(rows.tolist(), newer.past, strict=True):
            past[row] = own
        return Trail(past, self.size)

    def keep(self, length: int) -> "Trail":
        return Trail([own[: length + 1] for own in self.past], self.size)


@dataclass
class Toy:
    """A model that walks over a table of logits, one hop a token; `seen` has the rows and the prompts of each call."""

    table: Tensor
    seen: list[str] = field(default_factory=list)

    def start(self, source: Tensor, segments: Tensor | None, size: int = 99) -> Trail:
        assert segments is not None
        self.seen.append(f"read {len(source)}")
        rows = [row[real > 0].tolist() for row, real in zip(source, segments, strict=True)]
        return Trail([list(accumulate(row, hop, initial=0)) for row in rows], size)

    def step(self, tokens: Tensor, state: Trail) -> tuple[Tensor, Trail]:
        assert len(tokens) == len(state.past)
        self.seen.append(f"step {len(tokens)}")
        past = [[*own, hop(own[-1], token)] for own, token in zip(state.past, tokens.tolist(), strict=True)]
        assert max(map(len, past)) <= state.size + 1
        return self.table[[own[-1] for own in past]].clone(), Trail(past, state.size)

    def steps(self, tokens: Tensor, state: Trail) -> tuple[Tensor, Trail]:
        assert len({len(own) for own in state.past}) == 1
        calls = len(self.seen)
        logits = []
        for column in tokens.unbind(1):
            made, state = self.step(column, state)
            logits.append(made)
        self.seen[calls:] = [f"{tokens.shape[1]} steps"]
        return torch.stack(logits, dim=1), state


def hop(place: int, token: int) -> int:
    return (place * 37 + token * 101 + 7) % PLACES


def toy() -> Toy:
    return Toy(torch.randn(PLACES, V, generator=torch.Generator().manual_seed(1)) * 2)


SETTINGS: dict[str, dict[str, Any]] = {
    "greedy": {"temperature": 0.0},
    "sampled": {"temperature": 0.8, "top_k": 6, "top_p": 0.9, "min_p": 0.01},
    "penalised": {"temperature": 0.0, "rules": [RepetitionPenalty(1.5)], "forbidden": (3,)},
    "both": {"temperature": 1.2, "rules": [RepetitionPenalty(1.3)]},
}


def run(batch: Batch[Trail], longest: int, more: dict[int, list[list[int]]] | None = None) -> dict[int, list[Any]]:
    """All that is said until nobody is left; `more` are prompts that come at a step."""
    made: dict[int, list[Any]] = {}
    for t in range(1000):
        for prompt in (more or {}).get(t, []):
            batch.add(prompt[-1], prompt, sum(prompt))
        for number, token, value in batch.step():
            made.setdefault(number, []).append((token, value))
            if token == EOS or len(made[number]) == longest:
                batch.drop(number)
        if not len(batch) and t > max(more or {0: []}):
            return made
    raise AssertionError("no end")


def prompts(count: int) -> list[list[int]]:
    draw = random.Random(3)
    return [[draw.randrange(2, V) for _ in range(draw.randint(1, 6))] + [10 * i + 20] for i in range(count)]


def batch_of(model: Toy, rows: int, how: str, size: int = 99, draft: Toy | None = None) -> Batch[Trail]:
    return Batch(model, rows=rows, size=size, device=torch.device("cpu"), draft=draft, **SETTINGS[how])


@pytest.mark.parametrize("how", sorted(SETTINGS))
def test_together_is_alone(how: str) -> None:
    given, model = prompts(40), toy()
    alone = {}
    for prompt in given:
        alone |= run(batch_of(model, 1, how), 12, {0: [prompt]})
    assert len({len(said) for said in alone.values()}) > 3, "texts end at different steps"
    for rows in (1, 3, 7, 64):
        assert run(batch_of(model, rows, how), 12, {0: given}) == alone
    late = {0: given[:2], 3: given[2:10], 4: given[10:11], 40: given[11:]}
    assert run(batch_of(model, 5, how), 12, late) == alone


@pytest.mark.parametrize("how", sorted(SETTINGS))
def test_it_is_the_search(how: str) -> None:
    """A text is what `greedy` and `sample` make of it."""
    model = toy()
    options = SETTINGS[how] | {"eos": EOS, "longest": 12}
    for prompt in prompts(10):
        source, bos = torch.tensor([prompt[:-1]]), prompt[-1]
        segments = torch.ones_like(source)
        if options["temperature"] == 0:
            chosen = {key: value for key, value in options.items() if key != "temperature"}
            (found,) = greedy(model, source, segments, bos=bos, **chosen)
        else:
            ((found,),) = sample(model, source, segments, bos=bos, seed=[sum(prompt)], **options)
        (said,) = run(batch_of(model, 1, how), 12, {0: [prompt]}).values()
        tokens = (*found.tokens, EOS) if found.finished else found.tokens
        assert tuple(token for token, _ in said) == tokens
        assert [value for _, value in said] == pytest.approx(list(found.token_log_probabilities))


@pytest.mark.parametrize("how", sorted(SETTINGS))
@pytest.mark.parametrize("wrong", [0.0, 0.6, 3.0])
def test_guesses_change_nothing_but_the_calls(how: str, wrong: float) -> None:
    """A draft that is right, mostly right, or mostly wrong; and more texts that come while one is guessed ahead."""
    given, model = prompts(30), toy()
    draft = Toy(model.table + wrong * torch.randn(PLACES, V, generator=torch.Generator().manual_seed(2)))
    late = {0: given[:1], 5: given[1:2], 30: given[2:6], 31: given[6:], 400: given[:1]}
    for more, rows, size in (({0: given}, 1, 99), (late, 1, 99), (late, 3, 99), ({0: given}, 1, 19)):
        plain = run(batch_of(model, rows, how, size), 12, more)
        steps, model.seen[:], draft.seen[:] = Counter(model.seen), [], []
        assert run(batch_of(model, rows, how, size, draft), 12, more) == plain
        guessed = Counter(model.seen)
        assert not any("read" in call for call in draft.seen)
        if rows == 1:
            assert set(guessed) <= {"read 1", *(f"{n} steps" for n in range(1, 8))}
            calls = guessed.total() - guessed["read 1"]
            assert calls <= steps["step 1"]
            assert (calls < steps["step 1"] / 3) == (wrong == 0.0)
        model.seen.clear()


def test_rows_are_never_idle_while_somebody_waits() -> None:
    model = toy()
    made = run(batch_of(model, 4, "greedy"), 12, {0: prompts(40)})
    steps = [int(call.split()[1]) for call in model.seen if call.startswith("step")]
    assert sum(steps) == sum(len(said) for said in made.values())
    assert max(steps) == 4
    last = max(i for i, call in enumerate(model.seen) if call.startswith("read"))
    assert {call for call in model.seen[:last] if call.startswith("step")} == {"step 4"}
    assert steps == sorted(steps, reverse=True), "then the batch shrinks"
    assert model.seen[0] == "read 4"


def test_who_waits_can_be_dropped() -> None:
    model = toy()
    batch = batch_of(model, 1, "greedy")
    batch.add(0, [2, 3], 0)
    batch.add(1, [4], 0)
    assert len(batch) == 2
    batch.step()
    batch.drop(1)
    assert len(batch) == 1
    batch.drop(0)
    assert len(batch) == 0
    assert batch.step() == []


def test_what_cannot_be() -> None:
    with pytest.raises(InputError, match="a batch of 0 rows"):
        batch_of(toy(), 0, "greedy")
    for bad in (math.nan, math.inf):
        batch = batch_of(Toy(torch.full((PLACES, V), bad)), 1, "greedy")
        batch.add(0, [2])
        with pytest.raises(NonFiniteError):
            batch.step()
    nothing = Batch(toy(), rows=1, size=9, device=torch.device("cpu"), forbidden=tuple(range(V)))
    nothing.add(0, [2])
    ((number, _, value),) = nothing.step()
    assert (number, value) == (0, NEVER)
