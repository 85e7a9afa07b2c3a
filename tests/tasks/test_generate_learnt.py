"""A mask of learnt tokens: the loss of a language model counts those alone, wherever they stand in a row."""

import pytest
import torch
from torch import Tensor

from heedful.core.seeds import shuffled
from heedful.data.batches import TextBatch, pack_texts
from heedful.data.stored import Text
from heedful.data.tokenizer import BOS, EOS
from heedful.models.lm import LM
from heedful.models.presets import LMSize, lm_config
from heedful.tasks.generate.losses import next_token_loss
from heedful.training.loop import rows_of
from heedful.training.loss import Loss
from loud import make_loud

V = 40
EACH = pytest.mark.parametrize("smoothing", [0.0, 0.1])


@pytest.fixture(scope="module")
def model() -> LM:
    torch.manual_seed(2)
    row = LMSize(style="llama", n_layers=2, d_model=16, n_heads=2, d_ff=32, vocab_size=V, context_length=24)
    model = LM(lm_config(row))
    return make_loud(model)


def texts(count: int = 12) -> list[Text]:
    generator = torch.Generator().manual_seed(5)
    found = []
    for _ in range(count):
        length = int(torch.randint(1, 12, (), generator=generator))
        ids = torch.randint(4, V, (length,), generator=generator).tolist()
        learnt = (torch.rand(length, generator=generator) < 0.5).tolist()
        found.append(Text([BOS, *ids, EOS], [False, *learnt, learnt[-1]]))
    return found


def rows(learnt: Tensor | None = None) -> TextBatch:
    tokens = torch.randint(0, V, (3, 13), generator=torch.Generator().manual_seed(3))
    return TextBatch(tokens[:, :-1], tokens[:, 1:], torch.ones(3, 12, dtype=torch.int64), learnt)


def gradients(model: LM, batch: TextBatch, smoothing: float) -> tuple[Tensor, int, tuple[Tensor, ...]]:
    loss = next_token_loss(model, batch, across=False, smoothing=smoothing)
    return loss.total.detach(), loss.count, torch.autograd.grad(loss.total, [*model.parameters()])


def nats(loss: Loss) -> tuple[float, int]:
    return float(loss.total.detach()), loss.count


@EACH
def test_where_all_are_learnt_nothing_changes(model: LM, smoothing: float) -> None:
    """Not by one bit: neither the loss nor a gradient."""
    plain, masked = (gradients(model, rows(all_), smoothing) for all_ in (None, torch.ones(3, 12, dtype=torch.bool)))
    assert (float(plain[0]), plain[1]) == (float(masked[0]), masked[1])
    assert all(torch.equal(*both) for both in zip(plain[2], masked[2], strict=True))


@EACH
def test_the_loss_is_that_of_the_learnt_tokens_alone(model: LM, smoothing: float) -> None:
    learnt = torch.rand(3, 12, generator=torch.Generator().manual_seed(4)) < 0.4
    batch = rows(learnt)
    logits = model(batch.tokens, batch.segments)
    each = torch.nn.functional.cross_entropy(logits.mT, batch.following, reduction="none", label_smoothing=smoothing)
    loss = next_token_loss(model, batch, across=False, smoothing=smoothing)
    assert loss.count == int(learnt.sum()) > 0
    torch.testing.assert_close(loss.total, each[learnt].sum(), rtol=1e-5, atol=1e-5)
    other = batch._replace(following=torch.where(learnt, batch.following, 0))
    assert nats(next_token_loss(model, other, across=False, smoothing=smoothing)) == nats(loss)


def test_padding_never_counts(model: LM) -> None:
    """Whatever is said of it."""
    (batch,) = pack_texts(texts(4), range(4), row=24, rows=6)
    assert (batch.segments == 0).any()
    assert batch.learnt is not None
    rash = batch._replace(learnt=batch.learnt | (batch.segments == 0))
    one, other = (next_token_loss(model, each, across=False) for each in (batch, rash))
    assert nats(one) == nats(other)
    assert one.count == int(batch.learnt.sum())


def test_packed_texts_lose_as_much_as_each_alone(model: LM) -> None:
    given = texts()
    packed = list(pack_texts(given, shuffled(len(given), 0, 1), row=24, rows=4))
    alone = [batch for text in given for batch in pack_texts([text], [0], row=len(text.ids) - 1, rows=1)]
    assert len(packed) < len(alone)
    losses = [[next_token_loss(model, batch, across=False) for batch in batches] for batches in (packed, alone)]
    assert sum(loss.count for loss in losses[0]) == sum(loss.count for loss in losses[1]) > 0
    totals = [torch.stack([loss.total for loss in own]).sum() for own in losses]
    torch.testing.assert_close(*totals, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("across", [True, False])
def test_the_balance_of_experts_is_learnt_beside_the_loss_and_not_told_as_it(across: bool) -> None:
    size = {"n_layers": 2, "d_model": 16, "n_heads": 2, "d_ff": 32, "vocab_size": V, "context_length": 24}
    model = LM(lm_config(LMSize(style="llama", **size, experts=3, experts_balance=0.5)))
    (batch,) = pack_texts(texts(6), range(6), row=24, rows=4)
    measured = next_token_loss(model.eval(), batch, across=across)
    learnt = next_token_loss(model.train(), batch, across=across)
    assert not measured.extra
    tokens = batch.tokens.numel() if across else int((batch.segments > 0).sum())
    assert float(learnt.extra) > 0.9 * 2 * 0.5 * tokens  # of two blocks
    torch.testing.assert_close(learnt.total - learnt.extra, measured.total)
    parts = [next_token_loss(model, rows_of(batch, rank, 2), across=across) for rank in range(2)]
    torch.testing.assert_close(parts[0].total + parts[1].total, learnt.total)


def test_ranks_share_what_is_learnt(model: LM) -> None:
    (batch,) = pack_texts(texts(6), range(6), row=24, rows=4)
    whole = next_token_loss(model, batch, across=False)
    parts = [next_token_loss(model, rows_of(batch, rank, 2), across=False) for rank in range(2)]
    assert sum(part.count for part in parts) == whole.count
    torch.testing.assert_close(parts[0].total + parts[1].total, whole.total)
