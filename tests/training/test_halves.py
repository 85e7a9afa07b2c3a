"""Two halves of a batch at once: the same numbers as the whole, whichever ends first, and nothing is left under way."""

import time
from dataclasses import replace

import pytest
import torch

from cases import CASES, METHODS, PROMPTED, preferring, recipe_of, save_start
from heedful.core.dropout import rows
from heedful.models import make_model
from heedful.run.events import Trained
from heedful.tasks import TASKS
from heedful.training.halves import FEWEST, Halves
from heedful.training.loop import Budget, fit, rows_of
from heedful.verbs.train import train
from line import Line, state, weights

# At so small a rate hardly any weight moves by as much as a rounding. So all steps are computed at the same weights,
# and differ by how their own sums are rounded, on every processor. That halves move weights alike is shown on a line.
FEW = {"steps": 4, "eval_every": 4, "lr": 1e-9}
NEAR = 1e-5  # some eighty roundings of float32, of sums that are rounded in two orders; at most four were seen
PLAN = {**FEW, "tokens": 768, "precision": "fp32"}
WHOLE = {"detect", "match", "vectors"}  # tasks whose batches are not halved


@pytest.fixture(autouse=True)
def two_threads():
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(1)


class Watched(Line):
    """Batches of more and of fewer rows than are halved."""

    def __init__(self, sizes=(7, FEWEST, 6, FEWEST - 1)):
        super().__init__(sizes)
        self.seen = []  # rows of each loss, and torch's threads there
        self.late = -1  # how many rows a loss has that takes longer

    def loss(self, model, batch):
        self.seen.append((len(batch.x), torch.get_num_threads()))
        if len(batch.x) == self.late:
            time.sleep(0.02)
        return super().loss(model, batch)


@pytest.mark.parametrize("accumulate", [1, 3])
def test_halves_learn_what_the_whole_learns(accumulate):
    whole, halved, task = state(), state(), Watched()
    budget = Budget(steps=9)
    ones = [*fit(Watched(), whole, budget, accumulate=accumulate)]
    others = [*fit(task, halved, budget, accumulate=accumulate, halves=True)]
    assert {*task.seen} == {(4, 1), (3, 1), (2, 1), (FEWEST - 1, 2)}
    for one, other in zip(ones, others, strict=True):
        assert (one.count, one.epoch, one.lr) == (other.count, other.epoch, other.lr)
        assert other.loss == pytest.approx(one.loss, rel=1e-5)
        assert other.norm == pytest.approx(one.norm, rel=1e-5)
    torch.testing.assert_close(weights(halved), weights(whole), rtol=1e-5, atol=1e-6)


def test_gradients_in_bf16_are_added_in_float32():
    of = state(dtype=torch.bfloat16)
    one, other = ([torch.full_like(p, each) for p in of.optimizer.params] for each in (256.0, 1.0))
    of.optimizer.collect_both(one, other)
    assert all(torch.equal(master.grad, torch.full_like(master, 257.0)) for master in of.optimizer.masters)


@pytest.mark.parametrize("late", [4, 3])
def test_whichever_half_ends_first(late):
    plain, delayed, task = state(), state(), Watched((7,))
    for _ in fit(Watched((7,)), plain, Budget(steps=5), halves=True):
        pass
    task.late = late
    for _ in fit(task, delayed, Budget(steps=5), halves=True):
        pass
    assert torch.equal(weights(plain), weights(delayed))


def test_each_half_has_half_of_the_threads_and_others_have_all():
    task = Watched((8, 2))
    for _ in fit(task, state(), Budget(steps=4), halves=True):
        assert torch.get_num_threads() == 2
    assert sorted(task.seen) == [(2, 2)] * 2 + [(4, 1)] * 4
    torch.set_num_threads(4)
    wide = Watched((8,))
    steps = fit(wide, state(), Budget(steps=4), halves=True)
    next(steps)
    steps.close()
    assert wide.seen == [(4, 2)] * 2
    assert torch.get_num_threads() == 4
    torch.set_num_threads(3)
    odd = Watched((8,))
    assert [step.count for step in fit(odd, state(), Budget(steps=2), halves=True)] == [8, 8]
    assert odd.seen == [(8, 3)] * 2
    with pytest.raises(ValueError, match="3 threads have no halves"):
        Halves(3)


@pytest.mark.parametrize("side", [0, 1])
def test_what_a_half_raises_is_raised_when_both_have_ended(side):
    ended = []

    def half(own):
        if own == side:
            raise OSError("broken")
        time.sleep(0.02)
        ended.append(own)

    with Halves(2) as both, pytest.raises(OSError, match="broken"):
        both.both(half)
    assert ended == [1 - side]


def test_a_loss_that_fails_moves_nothing():
    task, one = Watched((7,)), state()
    steps = fit(task, one, Budget(steps=9), halves=True)
    next(steps)
    kept, task.data[0] = weights(one), torch.zeros(7, 5)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        next(steps)
    assert torch.equal(weights(one), kept)
    assert torch.get_num_threads() == 2


def test_one_tensor_may_be_the_gradient_of_two_parameters():
    of = state()
    shared = torch.ones(8)
    biases = [index for index, name in enumerate(of.optimizer.names) if name.endswith("bias")]
    one = [torch.ones(1).expand_as(p) if p.ndim == 2 else None for p in of.optimizer.params]
    other = [shared if index == biases[0] else None for index in range(len(one))]
    one[biases[0]] = shared
    of.optimizer.collect_both(one, other)
    of.optimizer.collect_both(other, one)
    grads = [master.grad for master in of.optimizer.masters]
    assert torch.equal(grads[biases[0]], 4 * torch.ones(8))
    assert torch.equal(shared, torch.ones(8))
    assert grads[biases[1]] is None
    assert all(torch.equal(each, 2 * torch.ones_like(each)) for each in grads if each is not None and each.ndim == 2)


def trained(recipe, corpus, out, monkeypatch, threads):
    """The losses and norms of the steps, and how many batches were halved."""
    torch.set_num_threads(threads)
    halved, whole = [], Halves.both

    def counted(self, half):
        halved.append(half)
        return whole(self, half)

    monkeypatch.setattr(Halves, "both", counted)
    events = [*train(recipe, out, corpus=corpus, device="cpu")]
    monkeypatch.undo()
    return [[event.step.loss, event.step.norm] for event in events if isinstance(event, Trained)], len(halved)


def alike(halved, whole):
    torch.testing.assert_close(torch.tensor(halved), torch.tensor(whole), rtol=NEAR, atol=NEAR)


@pytest.mark.parametrize("name", CASES)
def test_every_task(name, tmp_path, monkeypatch):
    case = CASES[name]
    for section in {"images", "sound"} & {*case.more}:
        case = replace(case, more={section: case.more[section] | {"batch": 5}})
    model = case.model | ({"dropout": 0.1} if "dropout" in case.model else {})
    recipe = recipe_of(case, model, PLAN)
    whole, none = trained(recipe, case.corpus, tmp_path / "1", monkeypatch, 1)
    halved, count = trained(recipe, case.corpus, tmp_path / "2", monkeypatch, 2)
    assert none == 0
    assert (count > 0) == (case.task not in WHOLE)
    alike(halved, whole)


@pytest.mark.parametrize("name", ["describe", "questions", "transcribe"])
def test_a_row_draws_the_same_dropout_whatever_is_beside_it(name):
    """Though texts are padded only where their rows are computed."""
    case = CASES[name]
    job = TASKS[case.task].job()(recipe_of(case, {**case.model, "dropout": 0.2}, PLAN), case.corpus)
    model = make_model(job.config).train()
    task = job.task(model)
    for batch in task.batches(0, model):
        numbers = range(len(batch.pictures))
        with rows(numbers):
            whole = task.loss(model, batch).total
        parts = []
        for i in numbers:
            with rows([i]):
                parts.append(task.loss(model, rows_of(batch, i, len(numbers))).total)
        torch.testing.assert_close(torch.stack(parts).sum(), whole, rtol=1e-5, atol=0)


@pytest.mark.parametrize("method", METHODS)
def test_every_way_to_prefer(method, tmp_path, monkeypatch):
    start = save_start(tmp_path / "start")
    recipe = preferring(start, method, batch=16, rollouts=32, **FEW)
    whole, none = trained(recipe, PROMPTED, tmp_path / "1", monkeypatch, 1)
    halved, count = trained(recipe, PROMPTED, tmp_path / "2", monkeypatch, 2)
    assert (none, count > 0) == (0, True)
    alike(halved, whole)
