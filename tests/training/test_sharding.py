"""Ranks that share a training: fixed shares give the same bits on any number of them, whatever each holds."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from heedful.apply.checkpointed import checkpoint_blocks
from heedful.core.dropout import Dropout
from heedful.models import make_model, preset
from heedful.run.passes import BatchShape, MadeBatches
from heedful.training.loop import Budget, Step, TrainState, fit
from heedful.training.optim import Average, OptimConfig, Optimizer
from heedful.training.ranks import Ranks, TreeSum
from heedful.training.sharding import FixedShares, FullySharded, owners, shares_fit
from line import Line
from together import on_ranks


def net(dtype: torch.dtype) -> tuple[torch.nn.Module, Average]:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), Dropout(0.2), torch.nn.Linear(8, 3), torch.nn.Linear(3, 1))
    average = Average(model, 0.9)
    return model.to(dtype), average


def digest(tensors: Sequence[torch.Tensor]) -> str:
    return hashlib.sha256(b"".join(tensor.detach().numpy().tobytes() for tensor in tensors)).hexdigest()


def by_shares(ranks: Ranks, dtype: torch.dtype, *, divided: bool, accumulate: int) -> Any:
    model, average = net(dtype)
    strategy = FixedShares(model, ranks, 8, divided=divided)
    optimizer = Optimizer(model, OptimConfig(lr=0.01, warmup=3, clip=0.5, weight_decay=0.1), strategy.pieces())
    whole = dict(average.model.named_parameters())
    optimizer.load_masters(whole)
    if strategy.placement is not None:
        average.divide({name: own.of(whole[name]).clone() for name, own in strategy.placement.here.items()})
    state = TrainState(model=model, optimizer=optimizer, average=average, seed=7, strategy=strategy)
    steps = fit(Line((9, 5, 2, 16)), state, Budget(steps=5), accumulate=accumulate, ranks=ranks)
    told = [(step.loss, step.norm, step.count) for step in steps if isinstance(step, Step)]
    with state.whole() as measured:
        kept = digest([*measured.parameters()]) if ranks.first else ""
    held = sum(master.numel() for master in optimizer.masters)
    return [told, digest([parameter.float() for parameter in model.parameters()]), kept, held]


@pytest.mark.parametrize(("dtype", "accumulate"), [("float32", 1), ("float32", 3), ("bfloat16", 1), ("bfloat16", 2)])
def test_any_number_of_ranks_has_the_same_bits(dtype: str, accumulate: int, tmp_path: Path) -> None:
    kind = getattr(torch, dtype)
    alone = by_shares(Ranks(), kind, divided=False, accumulate=accumulate)
    assert len(alone[0]) == 5
    for size, divided in ((2, False), (2, True), (4, True), (8, False), (8, True)):
        every = on_ranks(
            tmp_path,
            size,
            lambda ranks, divided=divided: by_shares(ranks, kind, divided=divided, accumulate=accumulate),
        )
        assert json.loads(json.dumps(alone[:3])) == every[0][:3], (size, divided)
        assert {each[1] for each in every} == {alone[1]}
        assert sum(each[3] for each in every) == alone[3] * (1 if divided else size)


def test_a_sum_in_parts_is_the_sum() -> None:
    numbers = torch.randn(12, 100)

    def total(rows: Sequence[torch.Tensor]) -> torch.Tensor:
        tree = TreeSum()
        for row in rows:
            tree.add(row.clone())
        return tree.result()

    for shares in (1, 2, 3, 4, 6, 8, 12):
        for ranks in range(1, shares + 1):
            if shares_fit(shares, ranks):
                each = shares // ranks
                parts = [total(numbers[i : i + each]) for i in range(0, shares, each)]
                assert torch.equal(total(parts), total(numbers[:shares])), (shares, ranks)
    assert not shares_fit(8, 3)
    assert not torch.equal(total(numbers[:8]), numbers[:8].sum(0))  # so that the order tells


def test_each_rank_owns_about_as_much() -> None:
    sizes = {"embed": 50, **{f"block {n}": 10 + n for n in range(20)}}
    found = owners(sizes, 4)
    loads = [sum(sizes[name] for name, rank in found.items() if rank == each) for each in range(4)]
    assert sum(loads) == sum(sizes.values())
    assert max(loads) - min(loads) <= 10
    assert set(owners({"one": 1}, 3).values()) == {0}


SHAPE = BatchShape(3, 16, True, "pairs", 3)


def in_pieces(ranks: Ranks, dtype: torch.dtype, *, model: bool, accumulate: int) -> Any:
    """Of a translator: losses, norms, the average's weights, and the numbers that each rank steps."""
    torch.manual_seed(0)
    made = make_model(preset("transformer-tiny", vocab_size=40))
    task = MadeBatches(made, SHAPE, count=4)
    if accumulate > 1:  # blocks that are computed again are gathered again
        checkpoint_blocks(made)
    average = Average(made, 0.9)
    strategy: Any = FullySharded(made, ranks, dtype) if model else FixedShares(made.to(dtype), ranks, 4, divided=False)
    optimizer = Optimizer(made, OptimConfig(lr=1e-3, warmup=0), strategy.pieces())
    weights = dict(average.model.named_parameters())
    if strategy.placement is not None:
        weights = {name: own.of(weights[name]).clone() for name, own in strategy.placement.here.items()}
        average.divide({name: weights[name] for name in optimizer.names})
    optimizer.load_masters(weights)
    state = TrainState(model=made, optimizer=optimizer, average=average, seed=7, strategy=strategy)
    steps = fit(task, state, Budget(steps=4), accumulate=accumulate, ranks=ranks)
    told = [(step.loss, step.norm) for step in steps if isinstance(step, Step)]
    with state.whole() as measured:
        kept = [each.detach().flatten()[:50].tolist() for each in measured.parameters()] if ranks.first else []
    return [told, kept, sum(master.numel() for master in optimizer.masters)]


@pytest.mark.parametrize(
    ("dtype", "size", "together", "accumulate"),
    [("float32", 2, 2, 1), ("float32", 4, 4, 2), ("float32", 4, 2, 1), ("bfloat16", 2, 2, 1)],
)
def test_weights_in_pieces_learn_the_same(
    dtype: str, size: int, together: int, accumulate: int, tmp_path: Path
) -> None:
    """Of three rows the fourth rank has none; `together`: two machines of two ranks each hold all."""
    kind = getattr(torch, dtype)
    (alone,) = on_ranks(tmp_path, 1, lambda ranks: in_pieces(ranks, kind, model=False, accumulate=accumulate))
    every = on_ranks(
        tmp_path, size, lambda ranks: in_pieces(ranks, kind, model=True, accumulate=accumulate), together=together
    )
    near = 1e-4 if dtype == "float32" else 2e-2
    for step, one in zip(every[0][0], alone[0], strict=True):
        assert step == pytest.approx(one, rel=near)
    for kept, whole in zip(every[0][1], alone[1], strict=True):
        assert kept == pytest.approx(whole, rel=near, abs=5 * near)
    assert all(each[0] == every[0][0] for each in every)
    assert sum(each[2] for each in every) == alone[2] * size // together
    assert max(each[2] for each in every) < 1.2 * alone[2] / together
