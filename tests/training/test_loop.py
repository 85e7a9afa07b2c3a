"""The loop: a big batch in parts is a big batch, and what was interrupted goes on with the same numbers."""

import copy
import math
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, BrokenBarrierError, current_thread
from types import SimpleNamespace

import pytest
import torch

from heedful.core.seeds import counter_seed
from heedful.errors import NonFiniteError
from heedful.training import loop
from heedful.training.loop import Budget, CachingTask, fit
from heedful.training.loss import Loss
from heedful.training.optim import OptimConfig, schedule
from heedful.training.ranks import Ranks
from line import Line, state, weights


@pytest.fixture(params=[False, True])
def halves(request):
    """Whether batches are computed in two halves, by two threads."""
    torch.set_num_threads(2 if request.param else 1)
    yield request.param
    torch.set_num_threads(1)


class Counted(Line):
    """Tells for which epochs it was asked for batches."""

    def __init__(self):
        super().__init__()
        self.asked = []

    def batches(self, epoch, model):
        self.asked.append(epoch)
        return super().batches(epoch, model)


def test_the_batches_of_an_epoch_are_made_once():
    task = Counted()
    assert len([*fit(task, state(), Budget(steps=9))]) == 9
    assert task.asked == [0, 1, 2]
    kept = CachingTask(task)
    assert kept.batches(5, None) is kept.batches(5, None)
    assert kept.batches(6, None) is not kept.batches(5, None)


def test_accumulated_batches_equal_one_big_batch():
    parts, whole = state(dropout=0.0), state(dropout=0.0)
    task, joined = Line(), Line()
    joined.data = [torch.cat(task.data)]
    one = next(fit(task, parts, Budget(steps=1), accumulate=4))
    other = next(fit(joined, whole, Budget(steps=1)))
    assert one.count == other.count == 16
    assert one.loss == pytest.approx(other.loss, rel=1e-6)
    torch.testing.assert_close(weights(parts), weights(whole), rtol=1e-6, atol=1e-7)


class Burdened(Line):
    """Learns beside the line that weights are small."""

    def loss(self, model, batch):
        own, extra = super().loss(model, batch), 3 * sum(each.square().sum() for each in model.parameters())
        return Loss(own.total + extra, own.count, extra=extra)


def test_what_is_learnt_beside_is_not_told_as_the_loss():
    plain, other = state(dropout=0.0), state(dropout=0.0)
    one = next(fit(Line(), plain, Budget(steps=1), accumulate=2))
    more = next(fit(Burdened(), other, Budget(steps=1), accumulate=2))
    assert more.loss == pytest.approx(one.loss, rel=1e-6)
    assert more.norm != pytest.approx(one.norm, rel=0.01)
    assert not torch.equal(weights(plain), weights(other))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("stop", range(1, 9))
def test_an_interrupted_training_goes_on_bit_for_bit(dtype, stop, halves):
    straight = state(dtype=dtype)
    for _ in fit(Line(), straight, Budget(steps=9), halves=halves):
        pass
    before, after = state(dtype=dtype), state(dtype=dtype)
    for step in fit(Line(), before, Budget(steps=9), halves=halves):
        if step.step == stop:
            break
    names = before.optimizer.names
    after.optimizer.load_masters(dict(zip(names, before.optimizer.masters, strict=True)))
    after.optimizer.load_state(copy.deepcopy(before.optimizer.state()))
    after.average = before.average
    for key in ("step", "epoch", "batch", "tokens"):
        setattr(after, key, getattr(before, key))
    for _ in fit(Line(), after, Budget(steps=9), halves=halves):
        pass
    assert torch.equal(weights(after), weights(straight))
    assert after.tokens == straight.tokens
    for one, other in zip(after.average.model.parameters(), straight.average.model.parameters(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_not_finite_is_caught_before_the_weights_move(bad, halves):
    task, one = Line(), state()
    task.data[2] = torch.ones(6, 4)
    task.data[2][3] = bad  # of one half alone
    steps = fit(task, one, Budget(steps=9), halves=halves)
    next(steps), next(steps)
    kept = weights(one)
    with pytest.raises(NonFiniteError, match=r"step 3: the gradient of 0\.weight is not finite"):
        next(steps)
    assert torch.equal(weights(one), kept)


def test_budgets_end_where_they_say():
    assert sum(1 for _ in fit(Line(), state(), Budget(steps=6))) == 6
    assert sum(1 for _ in fit(Line(), state(), Budget(epochs=2.5))) == 10
    assert sum(1 for _ in fit(Line(), state(), Budget(epochs=2.0), accumulate=3)) == 4
    assert sum(1 for _ in fit(Line(), state(), Budget(steps=50, minutes=1e-9))) == 1


class Side(Ranks):
    """One of two ranks, each in a thread of its own, whose clocks do not agree."""

    meeting, said = Barrier(2, timeout=20), [[], []]

    def gather(self, values):
        self.said[self.rank] = list(values)
        self.meeting.wait()
        found = [*self.said]
        self.meeting.wait()
        return found

    def sum(self, tensors):
        copies = self.gather([tensor.clone() for tensor in tensors])
        for tensor, *each in zip(tensors, *copies, strict=True):
            tensor.copy_(sum(each))


def test_ranks_whose_clocks_differ_end_at_one_step_with_the_same_weights(monkeypatch):
    """Of so many minutes the rate of each step comes of the time: of the first rank's, on all of them."""
    clocks = {}

    def perf_counter():
        rank = int(current_thread().name[-1])
        clocks[rank] = clocks.get(rank, 0.0) + (0.7, 1.9)[rank]
        return clocks[rank]

    monkeypatch.setattr(loop, "time", SimpleNamespace(perf_counter=perf_counter))

    def train(rank):
        current_thread().name = f"rank-{rank}"
        try:
            rates = [step.lr for step in fit(Line(), states[rank], Budget(minutes=1.0), ranks=Side(rank, 2))]
        except BrokenBarrierError:
            return "the other one has ended"
        return rates, weights(states[rank]).tolist()

    states = [state(dropout=0.0), state(dropout=0.0)]
    with ThreadPoolExecutor(2) as both:
        first, second = both.map(train, range(2))
    assert first == second
    assert len(first[0]) > 10


def test_an_epoch_is_one_however_many_batches_it_has():
    class Varying(Line):
        def batches(self, epoch, model=None):
            return super().batches(epoch, model)[: (4, 1, 3, 2)[epoch % 4]]

    assert [step.epoch for step in fit(Varying(), state(), Budget(epochs=4.0))] == [0, 0, 0, 0, 1, 2, 2, 2, 3, 3]
    assert [step.epoch for step in fit(Varying(), state(), Budget(epochs=3.0), accumulate=2)] == [0, 0, 1, 2, 2]


def test_bf16_steps_too_small_for_bf16_still_add_up():
    one = state(dtype=torch.bfloat16, dropout=0.0)
    one.optimizer.config = OptimConfig(lr=1e-6)
    begin = weights(one)
    for _ in fit(Line(), one, Budget(steps=20)):
        pass
    assert not torch.equal(weights(one), begin)
    for param, master in zip(one.optimizer.params, one.optimizer.masters, strict=True):
        assert torch.equal(param, master.bfloat16())


def test_schedules():
    config = OptimConfig(warmup=100, schedule="inverse_sqrt")
    assert schedule(config, 50, 0.0) == pytest.approx(0.5)
    assert schedule(config, 400, 0.5) == pytest.approx(0.5)
    cosine = OptimConfig(warmup=100, schedule="cosine")
    assert schedule(cosine, 500, 0.5) == pytest.approx(0.5)
    assert schedule(cosine, 1000, 1.0) == pytest.approx(0.0)
    assert schedule(OptimConfig(warmup=100, schedule="linear"), 500, 0.75) == pytest.approx(0.25)
    assert schedule(OptimConfig(warmup=1000, schedule="constant"), 5, 0.1) == 1.0  # a tenth of a short training


def test_the_average_is_the_exponential_one():
    one = state(decay=0.9)
    expected = weights(one)
    for step in fit(Line(), one, Budget(steps=40)):
        decay = min(0.9, (1 + step.step) / (10 + step.step))
        expected = decay * expected + (1 - decay) * weights(one)
    found = torch.cat([parameter.flatten() for parameter in one.average.model.parameters()])
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


def test_seeds_are_the_same_everywhere():
    assert counter_seed(1, "step", 2) == counter_seed(1, "step", 2) != counter_seed(1, "step", 3)
    assert counter_seed(0) == 3582888934675442504
