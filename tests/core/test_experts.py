"""A mixture of experts against its definition, written out a token at a time, and the loss that keeps them busy."""

import pytest
import torch
from torch import Tensor, nn

from heedful.core.attention import AttentionConfig
from heedful.core.block import MLP, BlockConfig, Context, Stack, StackConfig
from heedful.core.experts import Experts, ExpertsConfig, balance_loss
from heedful.core.mask import Mask
from heedful.errors import InputError
from loud import make_loud

C = 8


def block(experts: ExpertsConfig) -> BlockConfig:
    return BlockConfig(attention=AttentionConfig(n_heads=2), d_ff=12, gated=True, order="pre", experts=experts)


def made(**own: int | float | bool) -> Experts:
    config = ExpertsConfig(**{"number": 5, **own})
    return make_loud(Experts(C, config, lambda: MLP(C, block(config))), norm=1.0)


@pytest.mark.parametrize("normalised", [True, False])
@pytest.mark.parametrize("used", [1, 2, 5])
def test_each_token_goes_through_the_experts_with_the_highest_scores(used: int, normalised: bool) -> None:
    experts = made(used=used, normalised=normalised).requires_grad_(False)
    x = torch.randn(2, 3, C)
    found = experts(x)
    for token, own in zip(x.flatten(0, 1), found.flatten(0, 1), strict=True):
        scores = experts.router.weight @ token
        best = sorted(range(5), key=lambda n: -float(scores[n]))[:used]
        weights = {n: float(scores[n].exp() / (scores[best] if normalised else scores).exp().sum()) for n in best}
        expected = sum(weight * experts.experts[n](token[None, None])[0, 0] for n, weight in weights.items())
        torch.testing.assert_close(own, expected)


def test_a_token_gets_the_same_among_others_to_the_last_digits() -> None:
    experts, x = made(), torch.randn(3, 4, C)
    with torch.no_grad():
        alone = torch.cat([torch.cat([experts(x[i : i + 1, t : t + 1]) for t in range(4)], 1) for i in range(3)])
        torch.testing.assert_close(experts(x), alone)


def test_a_graph_of_fixed_sizes_computes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    experts, x = made(), torch.randn(3, 4, C)
    expected = experts(x)
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    monkeypatch.setattr("heedful.core.experts.dispatched", None)
    torch.testing.assert_close(experts(x), expected)


def test_every_expert_has_a_gradient_whether_chosen_or_not() -> None:
    experts = made(number=9, used=1, normalised=False)
    experts(torch.randn(1, 2, C)).sum().backward()
    learnt = 0
    for expert in experts.experts:
        gradients = [weight.grad for weight in expert.parameters()]
        assert all(gradient is not None for gradient in gradients)
        learnt += any(bool(gradient.any()) for gradient in gradients)
    assert 1 <= learnt <= 2


def test_the_balance_loss_by_hand() -> None:
    scores = torch.tensor([[[2.0, 1.0, 0.0], [0.0, 3.0, 1.0]]])
    chosen = scores.topk(2).indices
    share = torch.tensor([1 / 4, 2 / 4, 1 / 4])
    probability = scores[0].softmax(-1).mean(0)
    expected = 2 * 3 * float((share * probability).sum())  # of two tokens
    assert float(balance_loss(scores, chosen)) == pytest.approx(expected, rel=1e-6)
    assert float(balance_loss(torch.zeros(2, 6, 3), torch.arange(12).view(2, 6, 1) % 3)) == pytest.approx(12)


def test_the_balance_loss_is_a_sum_over_rows_without_their_padding() -> None:
    scores = torch.randn(3, 5, 4)
    chosen = scores.topk(2).indices
    valid = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [0, 0, 0, 0, 0]]).bool()
    whole = balance_loss(scores, chosen, valid)
    alone = balance_loss(scores[:1], chosen[:1]) + balance_loss(scores[1:2, :2], chosen[1:2, :2])
    torch.testing.assert_close(whole, alone)


def test_blocks_leave_their_losses_where_they_are_asked_for() -> None:
    stack = Stack(C, StackConfig(n_layers=3, block=block(ExpertsConfig(number=4))))
    x, segments = torch.randn(2, 6, C), torch.tensor([[1, 1, 1, 2, 2, 0], [1, 1, 1, 1, 1, 1]])
    mask = Mask(causal=True, segments=(segments, segments))
    losses: list[Tensor] = []
    stack(x, Context(mask=mask, losses=losses))
    assert len(losses) == 3
    assert all(float(loss.detach()) > 0.99 * 0.01 * 11 for loss in losses)  # of eleven tokens
    x[0, 5] = 9.0  # padding
    again: list[Tensor] = []
    stack(x, Context(mask=mask, losses=again))
    torch.testing.assert_close(losses, again)
    none = Stack(C, StackConfig(n_layers=1, block=block(ExpertsConfig(number=4, balance=0.0))))
    none(x, Context(mask=mask, losses=(nothing := [])))
    assert not nothing


def test_the_balance_loss_spreads_tokens_over_experts() -> None:
    router = nn.Linear(C, 8, bias=False)
    x = torch.randn(1, 256, C) + 2 * torch.randn(C)  # tokens have much in common

    def busiest() -> float:
        return float(router(x).topk(2).indices.flatten().bincount(minlength=8).max()) / 512

    before = busiest()
    optimizer = torch.optim.Adam(router.parameters(), lr=0.02)
    for _ in range(200):
        scores = router(x)
        optimizer.zero_grad()
        balance_loss(scores, scores.topk(2).indices).backward()
        optimizer.step()
    assert busiest() < 0.25 < before


@pytest.mark.parametrize(
    ("own", "message"), [({"used": 0}, "0 of 5"), ({"used": 6}, "6 of 5"), ({"balance": -1.0}, "weight -1.0")]
)
def test_what_cannot_be_is_refused(own: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        made(**own)
