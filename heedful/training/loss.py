"""A loss is a sum and its weight, never a mean: so accumulation and several ranks equal one big batch.

N tokens, C model width, V vocabulary, B pairs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.core.attention import soft_capped

CHUNK = {"cpu": 1 << 20, "cuda": 1 << 27}  # how many logits exist at a time; on a CPU, as many as its caches hold
ALIGNED = {"cuda": 64}  # a vocabulary is padded to a multiple of this: tensor cores need aligned rows
LOW = -1e4  # the logit of padding: its probability is 0, and it is finite in every precision
FEWEST = 256  # rows of logits at a time: every chunk reads and writes the whole gradient of the weight


@dataclass(frozen=True)
class Sum:
    """A further quantity of a batch, besides the loss: a sum, and the number of its terms."""

    total: float
    count: int

    def __add__(self, other: "Sum") -> "Sum":
        return Sum(self.total + other.total, self.count + other.count)

    @property
    def mean(self) -> float:
        return self.total / max(1, self.count)


@dataclass(frozen=True)
class Loss:
    total: Float[Tensor, ""]  # the sum, in nats
    count: int  # what to divide by: tokens, for text
    beside: Mapping[str, Sum] = field(
        default_factory=dict
    )  # further sums, by the names of their means in metrics.jsonl
    extra: Float[Tensor, ""] | float = 0.0  # the part of the total that is trained, but not reported as the loss


def with_auxiliary(loss: Loss, auxiliary: Sequence[Tensor] | None) -> Loss:
    """With the losses that blocks left beside it, such as the load balancing of experts."""
    if not auxiliary:
        return loss
    extra = torch.stack([*auxiliary]).sum()
    return Loss(loss.total + extra, loss.count, extra=extra.detach())


def added(one: Mapping[str, Sum], other: Mapping[str, Sum]) -> dict[str, Sum]:
    """The sums of both, by name."""
    both = {**one, **other}
    return {name: one[name] + other[name] if name in one and name in other else own for name, own in both.items()}


def contrastive(similarity: Float[Tensor, "B B"], same: Bool[Tensor, "B B"] | None = None) -> Loss:
    """Each row must find its own column among all, and each column its own row (Radford et al. 2021, figure 3): the
    mean of both cross-entropies, in float32. Where `same`, row and column match too, and are left out of the choice."""
    own = torch.arange(len(similarity), device=similarity.device)
    if same is not None:
        others = same & (own[:, None] != own)
        similarity = similarity.float().masked_fill(others, -torch.inf)
    rows, columns = (F.cross_entropy(x.float(), own, reduction="sum") for x in (similarity, similarity.mT))
    return Loss((rows + columns) / 2, len(similarity))


def linear_cross_entropy(
    hidden: Float[Tensor, "N C"],
    weight: Float[Tensor, "V C"],
    bias: Float[Tensor, "V"] | None,
    target: Int[Tensor, "N"],
    *,
    smoothing: float = 0.0,
    softcap: float | None = None,
    agreement: float = 0.0,
) -> Float[Tensor, ""]:
    """The summed cross-entropy of `hidden @ weight.T + bias`, whose logits never exist all at once; with a `softcap`,
    of `softcap * tanh(logits / softcap)`.

    `smoothing` is the share of the target spread evenly over the vocabulary (Szegedy et al. 2016, section 7). Softmax
    and sums are in float32. The gradients are computed in the same pass, chunk by chunk: a chunk stays in the caches,
    where the logits of a whole batch would have to be loaded six times.

    With `agreement`, rows 2i and 2i + 1 are one token under two draws of dropout, and the mean of their two KL
    divergences, times `agreement`, is added (Liang et al. 2021, R-Drop, equation 4).
    """
    return _LinearCrossEntropy.apply(hidden, weight.to_dense(), bias, target, smoothing, softcap, agreement)


def head_cross_entropy(
    head: nn.Module,
    hidden: Float[Tensor, "N C"],
    target: Int[Tensor, "N"],
    *,
    smoothing: float = 0.0,
    softcap: float | None = None,
) -> Float[Tensor, ""]:
    """`linear_cross_entropy` of a linear map; without gradients if its weights have fewer bits
    (`heedful.apply.inference`)."""
    if isinstance(head, nn.Linear):
        return linear_cross_entropy(hidden, head.weight, head.bias, target, smoothing=smoothing, softcap=softcap)
    total = torch.zeros((), device=hidden.device)
    for x, y in zip(hidden.split(FEWEST), target.split(FEWEST), strict=True):
        logits = head(x).float()
        logits = logits if softcap is None else soft_capped(logits, softcap)
        total += F.cross_entropy(logits, y, reduction="sum", label_smoothing=smoothing)
    return total


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        target: Tensor,
        smoothing: float,
        softcap: float | None,
        agreement: float,
    ) -> Tensor:
        N, V = hidden.shape[0], weight.shape[0]
        more = -V % ALIGNED.get(hidden.device.type, 1)
        if more:
            weight = F.pad(weight, (0, 0, 0, more))
            bias = None if bias is None else F.pad(bias, (0, more))
        rows = max(FEWEST, CHUNK.get(hidden.device.type, CHUNK["cuda"]) // V) // 2 * 2  # the rows of a token together
        even = smoothing / V  # of the target, on every token; added to the sums at the end, not to each logit
        wanted = any(ctx.needs_input_grad[:3])
        grad_hidden = torch.empty_like(hidden)
        grad_weight = torch.zeros_like(weight, dtype=torch.float32)
        grad_bias = torch.zeros(V + more, dtype=torch.float32, device=hidden.device)
        total = torch.zeros((), dtype=torch.float32, device=hidden.device)
        for i in range(0, N, rows):
            x, y = hidden[i : i + rows], target[i : i + rows, None]
            logits = F.linear(x, weight, bias)
            if softcap is not None:
                logits = softcap * (logits / softcap).tanh()
            logits[:, V:] = LOW
            error = logits.softmax(dim=-1, dtype=torch.float32)
            log_sum = logits.amax(-1).float() - error.amax(-1).log()  # the log-sum-exp; a largest share is never 0
            total += log_sum.sum() - (1 - smoothing) * logits.gather(1, y).float().sum()
            apart = None
            if agreement:
                apart, divergence = _disagreement(error, logits.float() - log_sum[:, None])
                total += agreement * divergence
            if wanted:
                error.scatter_add_(1, y, error.new_full(y.shape, smoothing - 1))
                if apart is not None:
                    error.add_(apart, alpha=agreement)
                if softcap is not None:
                    error = (error - even) * (1 - (logits / softcap).square())
                if bias is not None:
                    grad_bias += error.sum(0)
                error = error.to(hidden.dtype)
                torch.mm(error, weight, out=grad_hidden[i : i + rows])
                grad_weight += error.T @ x
            if softcap is not None:
                total -= even * logits[:, :V].float().sum()
        if smoothing and softcap is None:
            tokens, words = hidden.sum(0, dtype=torch.float32), weight.sum(0, dtype=torch.float32)
            total -= even * (tokens @ words + (0 if bias is None else N * bias.float().sum()))
            grad_hidden -= (even * words).to(hidden.dtype)
            grad_weight -= even * tokens
            grad_bias -= even * N
        ctx.save_for_backward(grad_hidden, grad_weight[:V], None if bias is None else grad_bias[:V])
        ctx.dtype = weight.dtype
        return total

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        (grad,) = grad_outputs
        hidden, weight, bias = ctx.saved_tensors
        return (
            hidden * grad.to(hidden.dtype),
            (weight * grad).to(ctx.dtype),
            None if bias is None else (bias * grad).to(ctx.dtype),
            None,
            None,
            None,
            None,
        )


def _disagreement(
    shares: Float[Tensor, "N V"], logs: Float[Tensor, "N V"]
) -> tuple[Float[Tensor, "N V"], Float[Tensor, ""]]:
    """The gradient by the logits, and the value, of the summed mean of both KL divergences between rows 2i and 2i + 1.
    `shares` are probabilities, `logs` their logarithms."""
    pairs = shares.unflatten(0, (-1, 2))
    difference = logs[0::2] - logs[1::2]
    difference = torch.stack((difference, -difference), 1)  # of each row's logarithms from its partner's
    divergences = (pairs * difference).sum(-1, keepdim=True)
    grad = pairs * (difference - divergences + 1) - pairs.flip(1)
    return grad.flatten(0, 1) / 2, divergences.sum() / 2
