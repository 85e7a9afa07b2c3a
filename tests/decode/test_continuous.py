"""Texts that share a batch, whenever they enter and leave it, are what each is alone."""

import math
import random
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, Literal

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from heedful.decode.continuous import Session
from heedful.decode.rules import NEVER, RepetitionPenalty
from heedful.decode.search import greedy, sample
from heedful.decode.settings import Sampling
from heedful.errors import InputError, NonFiniteError
from heedful.models.lm import LM, LMState
from heedful.models.presets import LMSize, lm_config
from loud import make_loud

PLACES, V, EOS = 1009, 9, 1
MARKS = 600  # tokens after these, which mark prompts and are never said


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

    @property
    def vocab_size(self) -> int:
        return self.table.shape[1]

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


def random_table(seed: int) -> Tensor:
    return torch.randn(PLACES, V, generator=torch.Generator().manual_seed(seed))


def toy() -> Toy:
    return Toy(F.pad(random_table(1) * 2, (0, MARKS), value=NEVER))


@dataclass(frozen=True)
class How:
    sampling: Sampling
    more: dict[str, Any] = field(default_factory=dict)  # rules of a session


SETTINGS = {
    "greedy": How(Sampling(temperature=0.0)),
    "sampled": How(Sampling(temperature=0.8, top_k=6, top_p=0.9, min_p=0.01)),
    "penalised": How(Sampling(temperature=0.0, repetition_penalty=1.5), {"forbidden": (3,)}),
    "counted": How(Sampling(temperature=0.8, presence_penalty=0.7, frequency_penalty=0.9), {}),
    "both": How(Sampling(temperature=1.2), {"rules": [RepetitionPenalty(1.3)]}),
}
Said = dict[int, list[tuple[int, float]]]  # by the last token of a prompt, which no other prompt has


def seeded(sampling: Sampling, prompt: list[int]) -> Sampling:
    return replace(sampling, seed=sum(prompt))


def run(
    session: Session[Any],
    how: str,
    more: dict[int, list[list[int]]],
    *,
    longest: int = 12,
    cancelled: dict[int, int] | None = None,
) -> Said:
    """All that is said until nobody is left; `more` are prompts that come at a step, and of those that are to be
    `cancelled` no more is wanted after so many tokens. `how` "mixed" gives every prompt settings of its own."""
    made: Said = {}
    numbers: dict[int, int] = {}
    counts: Counter[int] = Counter()  # by handle: a prompt may come twice
    for t in range(1000):
        for prompt in more.get(t, []):
            handle = session.add(prompt, seeded(sampling_of(how, prompt), prompt), longest)
            assert handle not in numbers
            numbers[handle] = prompt[-1]
        for handle, token, value, finished, _ in session.step():
            said = made.setdefault(numbers[handle], [])
            said.append((token, value))
            counts[handle] += 1
            assert finished == (token == EOS or counts[handle] == longest)
            if len(said) == (cancelled or {}).get(numbers[handle]):
                session.cancel(handle)
        if not len(session) and t > max(more):
            return made
    raise AssertionError("no end")


def sampling_of(how: str, prompt: list[int]) -> Sampling:
    ways = sorted(SETTINGS)
    return SETTINGS[ways[prompt[-1] // 10 % len(ways)] if how == "mixed" else how].sampling


def prompts(count: int) -> list[list[int]]:
    draw = random.Random(3)
    return [[draw.randrange(2, V) for _ in range(draw.randint(1, 6))] + [10 * i + 20] for i in range(count)]


def session_of(model: Toy, rows: int, how: str, size: int = 99, draft: Toy | None = None) -> Session[Trail]:
    more = {} if how == "mixed" else SETTINGS[how].more
    return Session(model, rows=rows, size=size, device=torch.device("cpu"), end=EOS, draft=draft, **more)


EACH_HOW = pytest.mark.parametrize("how", [*sorted(SETTINGS), "mixed"])


@EACH_HOW
def test_together_is_alone(how: str) -> None:
    """Whenever and in whatever order texts come; with settings of their own, too."""
    given, model = prompts(40), toy()
    alone: Said = {}
    for prompt in given:
        alone |= run(session_of(model, 1, how), how, {0: [prompt]})
    assert len({len(said) for said in alone.values()}) > 3, "texts end at different steps"
    for rows in (1, 3, 7, 64):
        assert run(session_of(model, rows, how), how, {0: given}) == alone
    late = {0: given[:2], 3: given[2:10], 4: given[10:11], 40: given[11:]}
    assert run(session_of(model, 5, how), how, late) == alone
    for seed in range(3):
        order = random.Random(seed).sample(given, len(given))
        late = {t: order[2 * t : 2 * t + 2] for t in range(20)}
        assert run(session_of(model, 5, how), how, late) == alone


def test_settings_are_a_text_s_own() -> None:
    """Of one prompt: each setting gives what it gives in a session of its own, and they are not all the same."""
    settings = [
        Sampling(temperature=0.0),
        *(Sampling(temperature=heat, seed=seed) for heat in (0.5, 2.0) for seed in (1, 2)),
    ]
    settings += [Sampling(temperature=2.0, seed=1, top_k=2), Sampling(temperature=2.0, seed=1, repetition_penalty=9.0)]

    def said(chosen: list[Sampling]) -> list[list[int]]:
        session = session_of(toy(), 9, "mixed")
        handles = [session.add([7, 3], sampling, 12) for sampling in chosen]
        made = [one for _ in range(12) for one in session.step()]
        return [[one.token for one in made if one.handle == handle] for handle in handles]

    together = said(settings)
    assert together == [said([sampling])[0] for sampling in settings]
    assert len(set(map(tuple, together))) == len(settings)


@EACH_HOW
@pytest.mark.parametrize("drafted", [False, True])
def test_who_is_cancelled_changes_nothing_for_others(how: str, drafted: bool) -> None:
    """Neither what they say nor what was said before; and the row is free at once."""
    given, model = prompts(20), toy()
    draft = model if drafted else None
    alone = run(session_of(model, 3, how), how, {0: given})
    cancelled = {prompt[-1]: 1 + i % 4 for i, prompt in enumerate(given[::2])}
    model.seen.clear()
    made = run(session_of(model, 3, how, draft=draft), how, {0: given}, cancelled=cancelled)
    assert made == {last: said[: cancelled.get(last)] for last, said in alone.items()}
    assert len(made) == len(given)
    steps = [int(call.split()[1]) for call in model.seen if call.startswith("step")]
    if not drafted:
        assert sum(steps) == sum(map(len, made.values())), "no row is read for nobody"


@pytest.mark.parametrize("how", sorted(SETTINGS))
def test_it_is_the_search(how: str) -> None:
    """A text is what `greedy` and `sample` make of it."""
    model, sampling = toy(), SETTINGS[how].sampling
    options = SETTINGS[how].more | {"eos": EOS, "longest": 12}
    for prompt in prompts(10):
        source, bos = torch.tensor([prompt[:-1]]), prompt[-1]
        segments = torch.ones_like(source)
        if sampling.temperature == 0:
            rules = [RepetitionPenalty(sampling.repetition_penalty, tuple(prompt))]
            (found,) = greedy(model, source, segments, bos=bos, rules=rules, **options)
        else:
            ((found,),) = sample(model, source, segments, bos=bos, sampling=sampling, seeds=[sum(prompt)], **options)
        (said,) = run(session_of(model, 1, how), how, {0: [prompt]}).values()
        tokens = (*found.tokens, EOS) if found.finished else found.tokens
        assert tuple(token for token, _ in said) == tokens
        assert [value for _, value in said] == pytest.approx(list(found.token_log_probabilities))


@EACH_HOW
@pytest.mark.parametrize("wrong", [0.0, 0.6, 3.0])
def test_drafted_tokens_change_nothing_but_the_calls(how: str, wrong: float) -> None:
    """A draft that is right, mostly right, or mostly wrong; and more texts that come while tokens are drafted."""
    given, model = prompts(30), toy()
    draft = Toy(model.table + wrong * F.pad(random_table(2), (0, MARKS)))
    late = {0: given[:1], 5: given[1:2], 30: given[2:6], 31: given[6:], 400: given[:1]}
    for more, rows, size in (({0: given}, 1, 99), (late, 1, 99), (late, 3, 99), ({0: given}, 1, 19)):
        plain = run(session_of(model, rows, how, size), how, more)
        steps, model.seen[:], draft.seen[:] = Counter(model.seen), [], []
        assert run(session_of(model, rows, how, size, draft), how, more) == plain
        drafted = Counter(model.seen)
        assert not any("read" in call for call in draft.seen)
        if rows == 1:
            assert set(drafted) <= {"read 1", *(f"{n} steps" for n in range(1, 8))}
            calls = drafted.total() - drafted["read 1"]
            assert calls <= steps["step 1"]
            assert (calls < steps["step 1"] / 3) == (wrong == 0.0)
        model.seen.clear()


def test_rows_are_never_idle_while_somebody_waits() -> None:
    model = toy()
    made = run(session_of(model, 4, "greedy"), "greedy", {0: prompts(40)})
    steps = [int(call.split()[1]) for call in model.seen if call.startswith("step")]
    assert sum(steps) == sum(len(said) for said in made.values())
    assert max(steps) == 4
    last = max(i for i, call in enumerate(model.seen) if call.startswith("read"))
    assert {call for call in model.seen[:last] if call.startswith("step")} == {"step 4"}
    assert steps == sorted(steps, reverse=True), "then the batch shrinks"
    assert model.seen[0] == "read 4"


def test_who_waits_can_be_cancelled() -> None:
    session = session_of(toy(), 1, "greedy")
    first, second = session.add([2, 3]), session.add([4])
    assert len(session) == 2
    session.step()
    session.cancel(second)
    assert len(session) == 1
    session.cancel(first)
    session.cancel(first)
    assert len(session) == 0
    assert session.step() == []
    assert session.add([4]) not in (first, second)


@pytest.mark.parametrize("drafted", [False, True])
def test_a_text_is_finished_where_its_room_is_used_up(drafted: bool) -> None:
    """Its last token needs none, as nobody reads it."""
    model = toy()
    model.table[:, EOS] = NEVER
    for size, count in ((3, 1), (4, 2), (12, 10)):
        session = session_of(model, 2, "greedy", size, model if drafted else None)
        session.add([2, 3, 4], Sampling(temperature=0.0))
        made = [said for _ in range(20) for said in session.step()]
        assert [said.finished for said in made] == [False] * (count - 1) + [True]
        assert len(session) == 0


def texts_of(net: LM, rows: int, size: int | None, late: dict[int, list[list[int]]]) -> dict[int, list[int]]:
    """The tokens that follow each prompt, drawn. Caches have room for `size` tokens (None: for any number)."""
    numbers, made = {}, {}
    session = Session(Grown(net) if size is None else net, rows=rows, size=size or 99, device=torch.device("cpu"))
    for t in range(200):
        for prompt in late.get(t, []):
            numbers[session.add(prompt, Sampling(temperature=1.5, seed=prompt[0]), 30)] = prompt[0]
        for said in session.step():
            made.setdefault(numbers[said.handle], []).append(said.token)
    assert not len(session)
    return made


@dataclass
class Grown:
    """A language model whose caches begin small and grow."""

    net: LM

    @property
    def vocab_size(self) -> int:
        return self.net.vocab_size

    def start(self, source: Tensor, segments: Tensor | None, size: int) -> LMState:
        return self.net.start(source, segments)

    def step(self, tokens: Tensor, state: LMState) -> tuple[Tensor, LMState]:
        return self.net.step(tokens, state)

    def steps(self, tokens: Tensor, state: LMState) -> tuple[Tensor, LMState]:
        return self.net.steps(tokens, state)


@pytest.mark.parametrize("style", ["gpt2", "llama"])
def test_a_long_text_joins_a_batch_of_short_ones(style: Literal["gpt2", "llama"]) -> None:
    """With caches that have room for it and with such that must grow for it, while others are under way."""
    row = LMSize(style=style, n_layers=2, d_model=32, n_heads=4, vocab_size=37, context_length=128)
    net = LM(lm_config(row)).eval()
    make_loud(net, std=0.3, norm=1.0)
    draw = random.Random(5)
    given = [[i, *(draw.randrange(37) for _ in range(length - 1))] for i, length in enumerate((2, 3, 50, 1, 69))]
    late = {0: given[:2], 4: given[2:3], 6: given[3:4], 33: given[4:]}
    alone: dict[int, list[int]] = {}
    for prompt in given:
        alone |= texts_of(net, 1, None, {0: [prompt]})
    assert {len(tokens) for tokens in alone.values()} == {30}
    for size in (None, 99):
        for rows in (2, 5):
            assert texts_of(net, rows, size, late) == alone


def test_what_cannot_be() -> None:
    with pytest.raises(InputError, match="a batch of 0 rows"):
        session_of(toy(), 0, "greedy")
    for prompt in ([], [2] * 100):
        with pytest.raises(InputError, match=f"a prompt of {len(prompt)} tokens in a session with room for 99"):
            session_of(toy(), 1, "greedy").add(prompt)
    for ids in ([2, V + MARKS], [-1, 2]):
        with pytest.raises(InputError, match="tokens that the model does not have") as found:
            session_of(toy(), 1, "greedy").add(ids)
        assert found.value.fix == f"give whole numbers from 0 to {V + MARKS - 1}"
    with pytest.raises(InputError, match="at most 0 new tokens"):
        session_of(toy(), 1, "greedy").add([2], longest=0)
    with pytest.raises(InputError, match="temperature is -1"):
        session_of(toy(), 1, "greedy").add([2], Sampling(temperature=-1.0))
    for bad in (math.nan, math.inf):
        session = session_of(Toy(torch.full((PLACES, V), bad)), 1, "greedy")
        session.add([2])
        with pytest.raises(NonFiniteError):
            session.step()
    nothing = Session(toy(), rows=1, size=9, device=torch.device("cpu"), forbidden=tuple(range(V)))
    handle = nothing.add([2])
    ((found, _, value, finished, _),) = nothing.step()
    assert (found, value, finished) == (handle, NEVER, True)
