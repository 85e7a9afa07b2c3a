"""How a training is divided: by what was asked for, by memory, and by what a run was begun with."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from cases import CASES, recipe_of
from heedful.errors import InputError
from heedful.models import preset
from heedful.run.division import Division, chosen_division
from heedful.run.passes import BatchShape, passed
from heedful.run.plan import SHARDS, Machine, Setting, Shard, Short
from heedful.tasks import TASKS
from heedful.training.ranks import Ranks
from made import made_corpus, made_recipe

CPU, GPU = torch.device("cpu"), torch.device("cuda")


def job(**train: object) -> Any:
    return TASKS["translate"].job()(made_recipe(**train), made_corpus(30))


def short(memory: float) -> Short:
    """A training on four devices of so much memory, in units of what one needs that holds everything."""
    taken = passed(preset("transformer-base"), BatchShape(32, 64, True, "pairs", 32), "bf16", explicit=False)
    machine = Machine(name="x", memory=1.0, speed={"bf16": 1.0})
    whole = Short(taken, Setting(devices=4), machine)
    return whole._replace(machine=replace(machine, memory=memory * whole.needed("none")))


def test_pieces_are_as_large_as_memory_allows() -> None:
    needed = [short(1.0).needed(shard) / short(1.0).needed("none") for shard in SHARDS]
    assert needed[0] > needed[1] > needed[2]
    for enough, shard in zip(needed, SHARDS, strict=True):
        found = chosen_division(job(), Ranks(0, 4), GPU, short(1.01 * enough), 0)
        assert found == Division(shard, 4 if shard == "optimizer" else 0)
    assert chosen_division(job(), Ranks(0, 4), GPU, short(0.01), 0).shard == "model"  # the least there is
    assert chosen_division(job(optimizer="muon"), Ranks(0, 4), GPU, short(0.01), 0).shard == "optimizer"
    assert chosen_division(job(), Ranks(0, 4), GPU, None, 0) == Division()
    assert chosen_division(job(), Ranks(), GPU, short(0.01), 0) == Division()


@pytest.mark.parametrize(
    ("ranks", "exact", "before", "shares"),
    [
        (1, None, 0, 0),  # as it always was
        (1, True, 0, 8),
        (2, None, 0, 8),
        (8, None, 0, 8),
        (3, None, 0, 3),
        (16, None, 0, 16),
        (2, False, 0, 0),
        (1, None, 8, 8),  # begun on several
        (4, None, 8, 8),
        (3, None, 8, 3),  # not to the last bit any more
        (2, False, 8, 0),
    ],
)
def test_shares_stay_those_that_a_run_was_begun_with(ranks: int, exact: bool | None, before: int, shares: int) -> None:
    plan = {} if exact is None else {"exact": exact}
    assert chosen_division(job(**plan), Ranks(0, ranks), CPU, None, before) == Division("none", shares)


def test_what_cannot_go_together_is_refused() -> None:
    four = Ranks(0, 4)
    for other in ({"exact": True}, {"optimizer": "muon"}, {"compile": True}):
        with pytest.raises(InputError, match=f"train.shard=model and train.{next(iter(other))}"):
            chosen_division(job(shard="model", **other), four, CPU, None, 0)
    with pytest.raises(InputError, match="begun with 8 shares") as caught:
        chosen_division(job(exact=True), Ranks(0, 3), CPU, None, 8)
    assert caught.value.fix == "train on 1, 2, 4 or 8 ranks"
    case = CASES["match"]
    match = TASKS["match"].job()(recipe_of(case, case.model, {"exact": True}), case.corpus)
    with pytest.raises(InputError, match="no sum over the rows"):
        chosen_division(match, four, CPU, None, 0)


@pytest.mark.parametrize("shard", SHARDS)
def test_a_setting_holds(shard: Shard) -> None:
    assert chosen_division(job(shard=shard), Ranks(0, 2), CPU, None, 0).shard == shard
