"""The set loss of DETR (Carion et al. 2020, section 3.1): predictions and objects are matched so that they fit best,
and each pair is compared; the predictions that are left over should be "nothing".

Boxes are centre x and y, width and height, as shares of the picture. L decoder layers, B pictures, Q queries, K classes
(the last is "nothing"), N and M boxes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from heedful.training.loss import Loss


@dataclass(frozen=True, kw_only=True)
class SetConfig:
    """The weights of the parts (appendix A): for matching, and in the loss."""

    pair_class: float = 1.0
    pair_distance: float = 5.0
    pair_overlap: float = 2.0
    distance: float = 5.0
    overlap: float = 2.0
    nothing: float = 0.1  # the weight of a query without an object, of which there are many


class Target(NamedTuple):
    """The objects in one picture."""

    classes: Int[Tensor, "N"]
    boxes: Float[Tensor, "N 4"]


def corners(boxes: Float[Tensor, "*N 4"]) -> Float[Tensor, "*N 4"]:
    """Left, upper, right and lower edge."""
    x, y, width, height = boxes.unbind(-1)
    return torch.stack([x - width / 2, y - height / 2, x + width / 2, y + height / 2], dim=-1)


def overlap(boxes: Float[Tensor, "*#N 4"], others: Float[Tensor, "*#N 4"]) -> Float[Tensor, "*N"]:
    """The generalized intersection over union of boxes, from -1 (far apart) to 1 (the same): Rezatofighi et al. 2019,
    algorithm 1. Leading axes broadcast."""
    one, other = corners(boxes), corners(others)

    def area(upper_left: Tensor, lower_right: Tensor) -> Tensor:
        return (lower_right - upper_left).clamp(min=0).prod(dim=-1)

    common = area(torch.maximum(one[..., :2], other[..., :2]), torch.minimum(one[..., 2:], other[..., 2:]))
    around = area(torch.minimum(one[..., :2], other[..., :2]), torch.maximum(one[..., 2:], other[..., 2:]))
    union = area(one[..., :2], one[..., 2:]) + area(other[..., :2], other[..., 2:]) - common
    return common / union - (around - union) / around


@torch.no_grad()
def pair(
    logits: Float[Tensor, "B Q K"], boxes: Float[Tensor, "B Q 4"], targets: Sequence[Target], config: SetConfig
) -> tuple[Int[Tensor, "N"], Int[Tensor, "N"], Int[Tensor, "N"]]:
    """Matches the queries of each picture with its objects, one object a query, at the lowest total cost (Kuhn 1955).
    Returns the picture and the query of each pair, and the number of its object among all of the batch. A cost that is
    NaN counts as the highest."""
    from scipy.optimize import linear_sum_assignment

    classes, there = together(targets)
    cost = -config.pair_class * logits.float().softmax(-1)[:, :, classes]
    cost = cost + config.pair_distance * torch.cdist(boxes.float(), there.float(), p=1)
    cost = cost - config.pair_overlap * overlap(boxes[:, :, None].float(), there.float())
    highest = torch.finfo(cost.dtype).max
    costs, first, found = cost.nan_to_num(highest, highest, highest).cpu().numpy(), 0, []
    for picture, target in enumerate(targets):
        own = costs[picture, :, first : first + len(target.classes)]
        found += [(picture, query, first + thing) for query, thing in zip(*linear_sum_assignment(own), strict=True)]
        first += len(target.classes)
    pictures, queries, things = torch.tensor(found, dtype=torch.int64, device=boxes.device).view(-1, 3).unbind(1)
    return pictures, queries, things


def together(targets: Sequence[Target]) -> Target:
    """The objects of all pictures, one after another."""
    return Target(torch.cat([one.classes for one in targets]), torch.cat([one.boxes for one in targets]))


def set_loss(
    logits: Float[Tensor, "L B Q K"],
    boxes: Float[Tensor, "L B Q 4"],
    targets: Sequence[Target],
    config: SetConfig = SetConfig(),
) -> Loss:
    """Summed over the layers, each with a matching of its own: the weighted mean cross-entropy over the batch's
    queries, and the distances and overlaps of the pairs divided by the number of objects.

    `count` is the number of objects, or 1 if there is none, and `total` the loss times that: in a sum of batches each
    counts by its objects, as in the paper. The model answers with the last layer: the others are `extra`.
    """
    things = max(1, sum(len(target.classes) for target in targets))
    total = extra = boxes.new_zeros((), dtype=torch.float32)
    for layer_logits, layer_boxes in zip(logits, boxes, strict=True):
        extra = total
        classes, distance, lost = _parts(layer_logits, layer_boxes, targets, config)
        total = total + things * classes + config.distance * distance + config.overlap * lost
    return Loss(total, things, extra=extra)


def _parts(
    logits: Float[Tensor, "B Q K"], boxes: Float[Tensor, "B Q 4"], targets: Sequence[Target], config: SetConfig
) -> tuple[Float[Tensor, ""], Float[Tensor, ""], Float[Tensor, ""]]:
    """The weighted mean of the cross-entropy, and the sums over pairs of the distance and of 1 - overlap."""
    K = logits.shape[-1]
    classes, there = together(targets)
    pictures, queries, things = pair(logits, boxes, targets, config)
    wanted = torch.full(logits.shape[:2], K - 1, device=logits.device)
    wanted[pictures, queries] = classes[things]
    found, right = boxes[pictures, queries].float(), there[things].float()
    distance, lost = (found - right).abs().sum(), (1 - overlap(found, right)).sum()
    weight = torch.ones(K, device=logits.device)
    weight[-1] = config.nothing
    return F.cross_entropy(logits.flatten(0, 1).float(), wanted.flatten(), weight), distance, lost
