"""The recurrent model is one over words: its probabilities sum to one, and its state is all it needs of the past."""

import pytest
import torch

from benchmarks import lstm_lm
from benchmarks.lstm_lm import LSTM, Stretches, nats
from loud import make_loud

VOCABULARY, WIDTH = 40, 32


@pytest.fixture
def model() -> LSTM:
    model = LSTM(VOCABULARY, width=WIDTH).eval()
    return make_loud(model)


def test_probabilities_sum_to_one() -> None:
    model = LSTM(12000, width=WIDTH).eval()  # enough words for both tails
    following = torch.arange(12000)[:, None]
    with torch.no_grad():
        found, _ = model(torch.full_like(following, 11000), following, [])
    assert float(found.exp().sum()) == pytest.approx(1, abs=1e-4)


def test_a_text_is_read_piece_by_piece(model: LSTM, monkeypatch: pytest.MonkeyPatch) -> None:
    text = torch.randint(VOCABULARY, (50,))
    whole = nats(model, text)
    monkeypatch.setattr(lstm_lm, "SCORED", 7)
    assert nats(model, text) == pytest.approx(whole, rel=1e-5)
    begun = torch.cat([torch.zeros(1, dtype=torch.int64), text])[None]
    with torch.no_grad():
        assert -float(model(begun[:, :-1], begun[:, 1:], [])[0].sum()) == pytest.approx(whole, rel=1e-5)


def test_stretches_go_on_where_the_last_one_ended(model: LSTM) -> None:
    text = torch.randint(VOCABULARY, (64,))
    task = Stretches(text, rows=3, length=5)
    batches = task.batches(0, None)
    assert torch.cat([batch.words for batch in batches], 1).flatten().tolist() == text[:63].tolist()
    assert torch.cat([batch.following for batch in batches], 1).flatten().tolist() == text[1:].tolist()
    with torch.no_grad():
        each = [task.loss(model, batch) for batch in batches]
        whole = Stretches(text, rows=3, length=100)
        (batch,) = whole.batches(0, None)
        assert float(sum(loss.total for loss in each)) == pytest.approx(float(whole.loss(model, batch).total), rel=1e-5)
    assert sum(loss.count for loss in each) == 63
