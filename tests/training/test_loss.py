"""The loss that never builds its logits, against the one that does."""

import math

import pytest
import torch
import torch.nn.functional as F

from heedful.training import loss
from heedful.training.loss import contrastive, linear_cross_entropy

N, V, C = 70, 301, 16


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("cap", [None, 5.0])
@pytest.mark.parametrize("agreement", [0.0, 5.0])
@pytest.mark.parametrize("aligned", [1, 64])  # as on a CPU and on a GPU
def test_equals_cross_entropy_of_the_logits(monkeypatch, biased, smoothing, cap, agreement, aligned):
    monkeypatch.setitem(loss.ALIGNED, "cpu", aligned)
    monkeypatch.setitem(loss.CHUNK, "cpu", 20 * V)  # several chunks, the last one smaller
    monkeypatch.setattr(loss, "FEWEST", 20)
    leaves = [3 * torch.randn(N, C), torch.randn(V, C), *([torch.randn(V)] if biased else [])]
    leaves = [leaf.requires_grad_() for leaf in leaves]
    target = torch.randint(V, (N,))
    hidden, weight, *bias = leaves
    logits = F.linear(hidden, weight, *bias)
    logits = logits if cap is None else cap * (logits / cap).tanh()
    plain = F.cross_entropy(logits, target, label_smoothing=smoothing, reduction="sum")
    one, other = logits[0::2].log_softmax(-1), logits[1::2].log_softmax(-1)
    kl = [F.kl_div(p, q, reduction="sum", log_target=True) for p, q in ((one, other), (other, one))]
    plain = plain + agreement * sum(kl) / 2  # Liang et al. 2021, equations 2 to 4
    own = bias[0] if bias else None
    ours = linear_cross_entropy(hidden, weight, own, target, smoothing=smoothing, softcap=cap, agreement=agreement)
    torch.testing.assert_close(ours, plain, rtol=1e-6, atol=0)
    for one, other in zip(
        torch.autograd.grad(0.3 * ours, leaves), torch.autograd.grad(0.3 * plain, leaves), strict=True
    ):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def test_a_hopeless_token_has_a_finite_loss():
    hidden = torch.tensor([[200.0]], requires_grad=True)
    total = linear_cross_entropy(hidden, torch.tensor([[1.0], [-1.0]]), None, torch.tensor([1]))
    assert total.item() == pytest.approx(400.0)


def test_without_gradients_only_the_loss_is_made():
    hidden, weight, target = torch.randn(N, C), torch.randn(V, C), torch.randint(V, (N,))
    plain = F.cross_entropy(hidden @ weight.T, target, reduction="sum")
    torch.testing.assert_close(linear_cross_entropy(hidden, weight, None, target), plain)


def test_bf16_is_close_to_float32():
    hidden, weight, target = torch.randn(N, C), torch.randn(V, C), torch.randint(V, (N,))
    half = linear_cross_entropy(hidden.bfloat16(), weight.bfloat16(), None, target, smoothing=0.1)
    full = linear_cross_entropy(hidden, weight, None, target, smoothing=0.1)
    torch.testing.assert_close(half, full, rtol=1e-2, atol=0)


def test_contrastive_by_hand():
    similarity = torch.tensor([[2.0, 0.0], [1.0, -1.0]])
    rows = math.log(1 + math.exp(-2)) + math.log(1 + math.exp(2))
    columns = math.log(1 + math.exp(-1)) + math.log(1 + math.exp(1))
    found = contrastive(similarity)
    assert found.total.item() == pytest.approx((rows + columns) / 2)
    assert found.count == 2
    assert contrastive(similarity.T).total.item() == pytest.approx(found.total.item())
