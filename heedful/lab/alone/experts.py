"""A mixture of experts (Shazeer et al. 2017, section 2.1): many MLPs, and each token uses two of them."""

import torch
from torch import Tensor

from heedful.core.attention import AttentionConfig
from heedful.core.block import MLP, BlockConfig
from heedful.core.experts import dispatched
from heedful.lab.complexity.measured import operations
from heedful.lab.drawn import curves
from heedful.lab.exhibit import NOTHING_SAID, Draws, Rows, Says, Shown, beside, unsaid
from heedful.lab.whole_words import parameters
from heedful.training.optimizers import Adam

USED = 2  # experts for each token
RATE = 0.02  # learning rate of the gate


def routed(x: Tensor, gate: Tensor, noise: float = 0.0) -> tuple[Tensor, Tensor]:
    """The experts of each token (N, USED) and their weights: a softmax over the chosen ones."""
    scores, chosen = (x @ gate + noise * torch.randn(len(x), gate.shape[1])).topk(USED, dim=-1)
    return chosen, scores.softmax(-1)


def balanced(x: Tensor, gate: Tensor, steps: int) -> Tensor:
    """The gate, trained only on the balancing loss (their equation 6, with noisy gating as in section 2.1): the squared
    coefficient of variation of the experts' total weights over all tokens."""
    gate = gate.clone().requires_grad_()
    optimizer = Adam([gate], lr=RATE)
    for _ in range(steps):
        chosen, shares = routed(x, gate, noise=1.0)
        asked = torch.zeros(gate.shape[1]).index_add(0, chosen.flatten(), shares.flatten())
        loss = asked.var() / asked.mean() ** 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return gate.detach()


def experts_of(says: Says, *, experts: Rows = 256, width: Rows = 16, tokens: Draws = 2048, seed: int = 0) -> Shown:
    """Parameters grow with the number of experts, the operations for a token do not. Without a balancing loss, the gate
    uses few experts."""
    torch.manual_seed(seed)
    config = BlockConfig(attention=AttentionConfig(n_heads=1), d_ff=4 * width)
    made = [MLP(width, config) for _ in range(experts)]
    x = torch.randn(tokens, width) + 2 * torch.randn(width)  # the tokens share a large component
    gate = torch.randn(width, experts) * width**-0.5
    counts = [2**power for power in range(2, experts.bit_length())]
    some = x[:256]
    work = []
    for count in counts:
        chosen, shares = routed(some, gate[:, :count])
        work.append(operations(lambda: dispatched(some, shares, chosen, made)) / len(some))  # noqa: B023 - called here
    sizes = [sum(parameters(one) for one in made[:count]) for count in counts]
    loads = {}
    for name, own in (("as it begins", gate), ("balanced", balanced(x, gate, 300))):
        chosen, _ = routed(x, own)
        loads[name] = chosen.flatten().bincount(minlength=experts).sort(descending=True).values
    facts = {
        "parameters of the experts": sizes[-1],
        "operations of a token in its experts, of 4 and of all": [work[0], work[-1]],
    }
    facts |= {f"experts that are asked, {name}": int((load > 0).sum()) for name, load in loads.items()}
    facts |= {f"share of the busiest, {name}": float(load[0] / load.sum()) for name, load in loads.items()}
    own = says if experts == 256 else NOTHING_SAID
    drawn = {name: (range(1, experts + 1), load.tolist()) for name, load in loads.items()}
    return Shown(
        beside(own, {"experts": experts}) + unsaid(facts),
        curves(drawn, x="expert, the busiest first", y=f"of {tokens} tokens x {USED}", marker=""),
    )
