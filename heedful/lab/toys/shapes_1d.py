"""One-dimensional pictures of two triangles and two boxes, and the networks that learn to average their heights (the
recipe of Fleuret's attentiontoy1d).

B pictures, L positions, C channels.
"""

from functools import cache
from itertools import pairwise
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from heedful.core import EVERYONE, attend, attention_weights
from heedful.core.embed import binary
from heedful.lab.learning import learn
from heedful.training.precision import choose_precision

LENGTH, CHANNELS, KERNEL, BITS = 100, 64, 5, 7
TRAIN, TEST = 25_000, 1_000
HEIGHTS, WIDTHS, NOISE, APART = (1.0, 25.0), (5.0, 11.0), 0.15, 4.0
Pairs = Literal["shape", "side"]


class Pictures(NamedTuple):
    """`source` and `target` (B, 1, L); the four shapes' centre, height and width (B, 4, 3), the triangles first."""

    source: Tensor
    target: Tensor
    shapes: Tensor


def pictures(count: int, pairs: Pairs, generator: torch.Generator) -> Pictures:
    """Pictures whose targets have the mean height of each pair: triangles and boxes ("shape"), or the two shapes on the
    left and those on the right ("side"). No shapes touch; the heights of a pair ("shape") or the means ("side") differ
    by more than `APART`."""
    kept: list[Pictures] = []
    while sum(len(some.source) for some in kept) < count:
        drawn = torch.rand(max(count, 200), 4, 3, generator=generator)
        centre = WIDTHS[1] / 2 + drawn[..., 0] * (LENGTH - WIDTHS[1])
        height, width = (
            low + share * (high - low)
            for share, (low, high) in zip(drawn[..., 1:].unbind(-1), (HEIGHTS, WIDTHS), strict=True)
        )
        if pairs == "shape":
            mates = torch.tensor([[0, 1], [2, 3]]).expand(len(drawn), -1, -1)
        else:
            mates = centre.argsort(dim=1).view(-1, 2, 2)
        own = height.gather(1, mates.flatten(1)).view(-1, 2, 2)
        mean = own.mean(-1)
        even = torch.empty_like(height).scatter_(1, mates.flatten(1), mean.repeat_interleave(2, dim=1))
        differ = (mean[:, 0] - mean[:, 1]).abs() if pairs == "side" else (own[..., 0] - own[..., 1]).abs().amin(1)
        source, apart = laid_out(centre, height, width)
        good = apart & (differ > APART)
        target, _ = laid_out(centre, even, width)
        shapes = torch.stack([centre, height, width], dim=-1)
        noisy = [each + NOISE * (2 * torch.rand(each.shape, generator=generator) - 1) for each in (source, target)]
        kept.append(Pictures(noisy[0][good][:, None], noisy[1][good][:, None], shapes[good]))
    return Pictures(*(torch.cat(parts)[:count] for parts in zip(*kept, strict=True)))


def laid_out(centre: Tensor, height: Tensor, width: Tensor) -> tuple[Tensor, Tensor]:
    """Draws the shapes (B, 4) into pictures (B, L), and tests whether they do not touch (B)."""
    off = (torch.arange(LENGTH) - centre[..., None]).abs()
    share = (off - 0.5).clamp(min=0) * 2 / width[..., None]
    triangles = (height[..., None] * (1 - share)).clamp(min=0)[:, :2]
    boxes = (height[..., None] * (off * 2 < width[..., None]))[:, 2:]
    both = torch.cat([triangles, boxes], dim=1)
    taken = nn.functional.max_pool1d((both > 0).float(), 3, stride=1, padding=1)
    return both.amax(1), taken.sum(1).amax(1) < 2


class OneHead(nn.Module):
    """Attention with one head as in the toy: three linear maps without biases, and unscaled scores."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(CHANNELS, CHANNELS, bias=False) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        """Maps (B, C, L) to (B, C, L), the layout of convolutions."""
        q, k, v = (part(x.mT)[:, None] for part in (self.query, self.key, self.value))
        return attend(q, k, v, mask=EVERYONE, scale=1.0)[:, 0].mT

    def weights(self, x: Tensor) -> Tensor:
        q, k = self.query(x.mT)[:, None], self.key(x.mT)[:, None]
        return attention_weights(q, k, mask=EVERYONE, scale=1.0)[:, 0]


class Net(nn.Module):
    """Convolutions of five positions with ReLU between; one of the inner ones may be attention. With `positions`, seven
    more channels hold each position as a binary number."""

    def __init__(self, *, attention: bool, positions: bool = False) -> None:
        super().__init__()
        widths = [BITS + 1 if positions else 1, CHANNELS, CHANNELS, CHANNELS, 1]
        layers: list[nn.Module] = []
        for number, (into, out) in enumerate(pairwise(widths)):
            layers += [nn.Conv1d(into, out, KERNEL, padding=KERNEL // 2), nn.ReLU()]
            if number == 1:
                layers += (
                    [OneHead()]
                    if attention
                    else [nn.Conv1d(CHANNELS, CHANNELS, KERNEL, padding=KERNEL // 2), nn.ReLU()]
                )
        self.layers = nn.Sequential(*layers[:-1])
        self.where = 2 * binary(torch.arange(LENGTH), BITS).T - 1 if positions else torch.zeros(0, LENGTH)
        self.mean, self.deviation = 0.0, 1.0

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(self.enter(x))

    def enter(self, x: Tensor) -> Tensor:
        where = self.where.expand(len(x), -1, -1)
        return torch.cat([(x - self.mean) / self.deviation, where], dim=1)

    def weights(self, x: Tensor) -> Tensor:
        """The attention weights (B, L, L). Raises ValueError for a net without attention."""
        x = self.enter(x)
        for layer in self.layers:
            if isinstance(layer, OneHead):
                return layer.weights(x)
            x = layer(x)
        raise ValueError("a net without attention has no weights")


@cache
def drawn(count: int, pairs: Pairs, seed: int) -> Pictures:
    return pictures(count, pairs, torch.Generator().manual_seed(seed))


class TrainedNet(NamedTuple):
    """A net, its training losses, its test pictures, and its test error over that of leaving all heights unchanged
    (`left`): 0 is perfect."""

    net: Net
    losses: list[float]
    left: float
    test: Pictures


def learnt(
    pairs: Pairs,
    *,
    attention: bool,
    positions: bool = False,
    steps: int,
    batch: int = 100,
    seed: int = 0,
    lr: float = 1e-3,
    quicker: bool = False,
) -> TrainedNet:
    """Trains a net. `quicker`: convolutions and matrix products in bf16, if that is faster on this CPU."""
    many = min(TRAIN, steps * batch)
    train, test = drawn(many, pairs, seed), drawn(TEST, pairs, seed + 1)
    torch.manual_seed(seed)
    net = Net(attention=attention, positions=positions)
    net.mean, net.deviation = float(train.source.mean()), float(train.source.std())
    order = torch.randint(many, (steps, batch), generator=torch.Generator().manual_seed(seed))
    bf16 = quicker and choose_precision(torch.device("cpu")).precision == "bf16"

    def loss(step: int) -> Tensor:
        rows = order[step]
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            found = net(train.source[rows])
        return nn.functional.mse_loss(found.float(), train.target[rows])

    losses = learn(net, loss, steps=steps, lr=lr)
    with torch.no_grad():
        left = nn.functional.mse_loss(net(test.source), test.target) / nn.functional.mse_loss(test.source, test.target)
    return TrainedNet(net, losses, float(left), test)
