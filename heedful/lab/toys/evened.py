"""Toys 1 to 3: average the heights within pairs of shapes; the pairs are given by shape or by position."""

from functools import cache
from typing import TYPE_CHECKING, Annotated

import torch
from pydantic import Field
from torch import Tensor

from heedful.lab.drawn import Drawing, curves, figure_of
from heedful.lab.exhibit import Claim, Says, Shown, beside, holds, unsaid
from heedful.lab.learning import smoothed
from heedful.lab.toys.shapes_1d import BITS, Net, Pairs, TrainedNet, learnt
from heedful.lab.whole_words import parameters

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FULL = (62_500, 100, 1e-3)  # steps, batch size, learning rate: 250 epochs over 25,000 pictures
ToySteps = Annotated[int, Field(le=FULL[0])] | None  # None: the default of the form
SHORT: dict[Pairs, tuple[int, int, float]] = {"shape": (800, 20, 2e-3), "side": (1100, 40, 2e-3)}
NOT_YET = "not in so few steps; run it without --short"
SOLVED = 0.15  # the largest error of a solution, over that of leaving all heights unchanged


@cache
def toy(pairs: Pairs, attention: bool, positions: bool, steps: int | None, short: bool) -> TrainedNet:
    many, batch, lr = SHORT[pairs] if short else FULL
    return learnt(
        pairs, attention=attention, positions=positions, steps=steps or many, batch=batch, lr=lr, quicker=not short
    )


def solved(says: Says, claim: str, found: TrainedNet, short: bool) -> Claim:
    """Whether a toy is solved. The shorter form can show that it is, and only the full one that it is not."""
    if short and found.left > SOLVED:
        return Claim(claim, says[claim], NOT_YET, "open")
    return holds(says, claim, found.left <= SOLVED, right=(found.left <= SOLVED) == says[claim])


def left(name: str, found: TrainedNet) -> list[Claim]:
    return unsaid({f"error that is left {name}": found.left})


def drawn(found: dict[str, TrainedNet]) -> Drawing:
    shown = {name: smoothed(one.losses) for name, one in found.items()}
    lines = {name: (range(20, 20 * len(each) + 1, 20), each) for name, each in shown.items()}
    return curves(lines, x="steps", y="squared error", logarithmic="xy", marker="")


def by_shape(says: Says, *, steps: ToySteps = None, short: bool = False) -> Shown:
    """Both triangles must get their mean height, and so must both boxes. A shape has to find its mate, wherever it is:
    convolutions of five positions do not reach that far."""
    found = {
        name: toy("shape", attention, False, steps, short)
        for name, attention in (("without attention", False), ("with attention", True))
    }
    counts = {f"parameters {name}": parameters(one.net) for name, one in found.items()}
    lines = beside(Says({claim: says[claim] for claim in counts}, says.why), counts)
    for name, one in found.items():
        lines.append(solved(says, f"{name} it is solved", one, short))
        lines += left(name, one)
    return Shown(lines, drawn(found))


def by_side(says: Says, *, steps: ToySteps = None, short: bool = False) -> Shown:
    """The two shapes on the left are a pair, and so are those on the right: a shape alone does not tell its pair."""
    found = toy("side", True, False, steps, short)
    lines = [solved(says, "with attention it is solved", found, short)]
    return Shown(lines + left("with attention", found), drawn({"with attention": found}))


def by_side_with_positions(says: Says, *, steps: ToySteps = None, short: bool = False) -> Shown:
    """The same with seven more channels: each position as a binary number, of -1 and 1. The original recipe divides
    them by the deviation of the heights, so they are small, and take many times the steps to be of use."""
    found = {"with positions": toy("side", True, True, steps, short), "without": toy("side", True, False, steps, short)}
    counts = {"parameters": parameters(Net(attention=True, positions=True)), "position channels": BITS}
    lines = beside(says.but("with positions it is solved"), counts)
    lines.append(solved(says, "with positions it is solved", found["with positions"], short))
    for name, one in found.items():
        lines += left(name, one)
    return Shown(lines, drawn(found))


def on_pair(weights: Tensor, shapes: Tensor) -> float:
    """The weight that the centres of two shapes (2, 3) give to the positions of both: a mean of two rows of (L, L)."""
    centre, _, width = shapes.T
    at = torch.arange(len(weights))
    covered = ((at - centre[:, None]).abs() <= width[:, None] / 2).any(0)
    return float(weights[centre.round().long()][:, covered].sum(1).mean())


def looked_into(says: Says, *, steps: ToySteps = None, short: bool = False, picture: int = 0) -> Shown:
    """One picture of the first toy: the input, the target, the output, and the attention weights."""
    found = toy("shape", True, False, steps, short)
    source, target = (part[picture : picture + 1] for part in found.test[:2])
    shapes = found.test.shapes[picture]
    centres = shapes[:, 0].round().int().tolist()
    with torch.no_grad():
        output, weights = found.net(source), found.net.weights(source)[0]
    seen = {
        f"weight on its own shape and its mate, {name}": round(on_pair(weights, two), 4)
        for name, two in (("triangle", shapes[:2]), ("box", shapes[2:]))
    }

    def fill(figure: "Figure") -> None:
        upper, lower = figure.subplots(2, 1, height_ratios=(1, 1.6))
        for name, each, style in (("input", source, ":"), ("target", target, "--"), ("output", output, "-")):
            upper.plot(each[0, 0].numpy(), style, label=name)
        upper.plot(centres[:2], [-2, -2], "^", color="0.5")
        upper.plot(centres[2:], [-2, -2], "s", color="0.5")
        upper.set(xlabel="position", ylabel="height")
        upper.legend(frameon=False)
        upper.spines[["top", "right"]].set_visible(False)
        lower.imshow(weights.numpy(), cmap="Blues", vmin=0, vmax=float(weights.max()))
        lower.set(xlabel="looked at", ylabel="position that looks")

    return Shown(beside(says, seen), figure_of((5.6, 7.0), fill))


def loss_curves(says: Says, *, steps: ToySteps = None, short: bool = False) -> Shown:
    """The loss curves of toy 1, without and with attention."""
    found = {
        "without attention": toy("shape", False, False, steps, short),
        "with attention": toy("shape", True, False, steps, short),
    }
    last = {f"last loss {name}": smoothed(one.losses)[-1] for name, one in found.items()}
    return Shown(beside(says, last), drawn(found))
