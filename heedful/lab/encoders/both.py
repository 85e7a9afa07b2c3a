"""BART and T5: which words each side attends to; and the inputs of GPT-1's tasks."""

import torch
from torch import Tensor

from heedful.lab.claims.models import small_translator
from heedful.lab.drawn import grids
from heedful.lab.drawn_words import Strip, strips
from heedful.lab.exhibit import Says, Shown, beside, holds, unsaid


def reached(out: Tensor, entered: Tensor) -> Tensor:
    """Which rows of the input (1, S, C) each row of the output (T, D) depends on, as bools (T, S)."""
    return torch.stack([torch.autograd.grad(row[0], entered, retain_graph=True)[0][0].abs().sum(-1) > 0 for row in out])


def denoisers(says: Says, *, seed: int = 0) -> Shown:
    """Gradients show which words each position of an encoder and of a decoder depends on. And what the two families
    learn to restore: BART the whole text, T5 the missing spans."""
    model = small_translator(seed)
    source, target = torch.tensor([[1, 2, 3, 4, 5]]), torch.tensor([[0, 1, 2, 3, 4]])
    entered: list[Tensor] = []
    handles = [
        part.register_forward_hook(lambda module, given, out: entered.append(out))
        for part in (model.source, model.target)
    ]
    logits = model(source, target)[0]
    memory = model.encode(source)[0]
    for handle in handles:
        handle.remove()
    seen = {"encoder": reached(memory, entered[2]), "decoder": reached(logits, entered[1])}
    sides = {
        name: "both sides" if grid.all() else "left side" if torch.equal(grid, torch.ones_like(grid).tril()) else "?"
        for name, grid in seen.items()
    }
    lines = [holds(says, f"{name} sees", side, right=side == says[f"{name} sees"]) for name, side in sides.items()]
    text = "Thank you for inviting me to your party last week"
    lines += unsaid({"BART restores": text, "T5 restores": "<X> for inviting <Y> last <Z>"})
    return Shown(lines, grids(seen, columns=2))


def task_heads(says: Says) -> Shown:
    """How GPT-1 gets each task as one sequence (Radford et al. 2018, figure 1), and where its answer is read."""
    start, text, delim, extract = ("start", "mark"), ("text", "text"), ("delim", "mark"), ("extract", "read here")
    premise, hypothesis = ("premise", "text"), ("hypothesis", "second text")
    rows = [
        Strip("classification", [start, text, extract]),
        Strip("entailment", [start, premise, delim, hypothesis, extract]),
        Strip("similarity", [start, ("text 1", "text"), delim, ("text 2", "second text"), extract]),
        Strip("", [start, ("text 2", "second text"), delim, ("text 1", "text"), extract]),
        Strip("multiple choice", [start, ("context", "text"), delim, ("answer 1", "second text"), extract]),
        Strip("", [start, ("context", "text"), delim, ("answer 2", "second text"), extract]),
    ]
    named = [row.name for row in rows if row.name]
    return Shown(
        beside(says, {"tasks": named}),
        strips(rows, title="Both orders are summed; a softmax is over the choices"),
    )
