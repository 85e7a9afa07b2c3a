"""How a training is divided among ranks, as `train.shard` and `train.exact` say and the memory that is here allows."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from heedful.errors import InputError
from heedful.run.job import Job
from heedful.run.plan import SHARDS, Shard, Short
from heedful.training.ranks import Ranks
from heedful.training.sharding import SHARES, FixedShares, FullySharded, shares_fit


class Division(NamedTuple):
    """What the ranks hold in pieces, and in how many shares each batch is computed; 0: one for each rank."""

    shard: Shard = "none"
    shares: int = 0

    def strategy(self, model: torch.nn.Module, ranks: Ranks, dtype: torch.dtype) -> FixedShares | FullySharded | None:
        """Divides a model, in float32, with its weights in `dtype` for the passes. None: each rank holds everything."""
        if self.shard == "model":
            return FullySharded(model, ranks, dtype)
        model.to(dtype)
        return FixedShares(model, ranks, self.shares, divided=self.shard == "optimizer") if self.shares else None


def chosen_division(
    job: Job[Any, Any, Any], ranks: Ranks, device: torch.device, short: Short | None, before: int
) -> Division:
    """The division of a training. `before`: the shares with which it was begun. Raises InputError for settings that
    cannot go together."""
    plan = job.recipe.train
    why_whole = _not_in_pieces(job)
    if plan.shard == "model" and why_whole:
        raise InputError(f"train.shard=model and {why_whole}", where="recipe", fix="--set train.shard=optimizer")
    if plan.exact and not job.halves:
        what = f"train.exact, and a loss of {job.recipe.task} that is no sum over the rows of a batch"
        raise InputError(what, where="recipe", fix="leave out train.exact")
    shard: Shard = "none"
    if ranks.size > 1:
        shard = _that_fits(short, SHARDS[: 2 if why_whole else 3]) if plan.shard == "auto" else plan.shard
    if shard == "model":
        return Division(shard)
    begun = before if plan.exact is not False else 0
    on_cpus = plan.exact is None and ranks.size > 1 and device.type == "cpu" and job.halves
    if begun and shares_fit(begun, ranks.size):
        return Division(shard, begun)
    if begun and plan.exact:
        what = f"this run was begun with {begun} shares of a batch, which {ranks.size} ranks cannot sum in one order"
        fix = f"train on {_in_words([size for size in range(1, begun + 1) if shares_fit(begun, size)])}"
        raise InputError(what, where="train.exact", fix=fix)
    if plan.exact or on_cpus:
        return Division(shard, SHARES if shares_fit(SHARES, ranks.size) else ranks.size)
    return Division(shard, ranks.size if shard == "optimizer" else 0)


def _not_in_pieces(job: Job[Any, Any, Any]) -> str:
    """What the weights in pieces cannot go together with; "" where they can."""
    plan = job.recipe.train
    reasons = {
        "train.exact": bool(plan.exact),
        "train.optimizer=muon, which needs whole matrices": plan.optimizer == "muon",
        "train.lora": bool(plan.lora),
        "train.compile": plan.compile,
        "distil.teacher": job.teacher is not None,
        f"{job.recipe.task}, whose batches come of the model": bool(job.companions),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def _that_fits(short: Short | None, shards: Sequence[Shard]) -> Shard:
    """The first for which there is memory, or else the last."""
    if short is None:
        return "none"
    return next((shard for shard in shards if short.needed(shard) <= short.machine.memory), shards[-1])


def _in_words(sizes: Sequence[int]) -> str:
    return f"{', '.join(map(str, sizes[:-1]))} or {sizes[-1]} ranks"
