"""Each row passes twice under other dropout: the loss is the paper's, whichever model learns."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from heedful.core import dropout
from heedful.data.batches import PairBatch
from heedful.models import TranslationModel, make_model
from heedful.tasks.translate.train import TranslateJob
from heedful.tasks.translate.training.losses import training_loss
from made import DECODER, RECURRENT, TRANSFORMER, made_corpus, made_recipe

SEEDS = [11, 12, 13]
Learner = tuple[TranslationModel, PairBatch]


@pytest.fixture(scope="module", params=["transformer", "decoder", "rnn"])
def learner(request: pytest.FixtureRequest) -> Learner:
    """A model with dropout, and a batch of three rows."""
    base: dict[str, Any] = {"transformer": TRANSFORMER, "decoder": DECODER, "rnn": RECURRENT}[request.param]
    recipe = made_recipe(base | {"model": base["model"] | {"dropout": 0.3}})
    job = TranslateJob(recipe, made_corpus(60))  # type: ignore[arg-type]
    torch.manual_seed(1)
    model = make_model(job.config)
    batch = job.task(model).batches(0, model)[0]
    return model, PairBatch(*(part[: len(SEEDS)] for part in batch))


def loss_of(model: TranslationModel, batch: PairBatch, rdrop: float, seeds: list[int] = SEEDS) -> tuple[float, int]:
    with dropout.rows(seeds):
        loss = training_loss(model, batch, smoothing=0.1, rdrop=rdrop)
    return float(loss.total.detach()), loss.count


def test_the_loss_is_both_passes_and_their_divergence(learner: Learner) -> None:
    model, batch = learner
    source, target_in, _, source_segments, target_segments = (p.repeat_interleave(2, 0) for p in batch)
    with dropout.rows(SEEDS), torch.no_grad():
        logits = model.head(model.hidden(source, target_in, source_segments, target_segments))
    expected, count = 0.0, 0
    for row in range(len(SEEDS)):
        real = batch.target_segments[row] > 0
        passes = [logits[2 * row + i][real].log_softmax(-1) for i in (0, 1)]
        for one, other in (passes, passes[::-1]):
            smoothed = F.cross_entropy(one, batch.target_out[row][real], label_smoothing=0.1, reduction="sum")
            divergence = (one.exp() * (one - other)).sum()
            assert divergence > 1e-3, "both passes drop the same"
            expected += float(smoothed + 5.0 * divergence / 2) / 2
        count += int(real.sum())
    assert loss_of(model, batch, 5.0) == (pytest.approx(expected, rel=1e-5), count)


def test_each_row_draws_from_its_own_seed(learner: Learner) -> None:
    model, batch = learner
    whole = loss_of(model, batch, 5.0)
    rows = [loss_of(model, PairBatch(*(p[i : i + 1] for p in batch)), 5.0, SEEDS[i : i + 1]) for i in range(len(SEEDS))]
    assert (sum(total for total, _ in rows), sum(count for _, count in rows)) == (pytest.approx(whole[0]), whole[1])


def test_without_dropout_the_loss_is_the_plain_one(learner: Learner) -> None:
    model, batch = learner
    model.eval()
    try:
        assert loss_of(model, batch, 5.0) == (
            pytest.approx(loss_of(model, batch, 0.0)[0], rel=1e-6),
            batch.target_tokens,
        )
    finally:
        model.train()
