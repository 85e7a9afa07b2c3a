"""The training loop of the exhibits that train small models."""

from collections.abc import Callable

from torch import Tensor, nn

from heedful.training.optimizers import AdamW


def learn(
    model: nn.Module,
    loss: Callable[[int], Tensor],
    *,
    steps: int,
    lr: float = 1e-3,
    warmup: int = 50,
    decays: bool = True,
    weight_decay: float = 0.0,
) -> list[float]:
    """Trains a model with Adam on `loss` of each step, and returns the losses of all steps. The learning rate warms up
    and, with `decays`, falls to zero. The model is in eval mode afterwards."""
    optimizer = AdamW(model.parameters(), lr=lr, betas=(0.9, 0.98), weight_decay=weight_decay)
    losses = []
    model.train()
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = lr * min(1.0, (step + 1) / warmup) * (1 - step / steps if decays else 1.0)
        value = loss(step)
        optimizer.zero_grad()
        value.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(value.item())
    model.eval()
    return losses


def smoothed(losses: list[float], window: int = 20) -> list[float]:
    """The means of successive windows of steps, for plotting a noisy curve."""
    return [sum(losses[i : i + window]) / len(losses[i : i + window]) for i in range(0, len(losses), window)]
