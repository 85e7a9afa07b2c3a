"""Sampling: what top-k and top-p keep of a distribution, and what caching keys and values saves."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from heedful.decode.rules import TopK, TopP
from heedful.decode.search import greedy, sample
from heedful.decode.settings import Sampling
from heedful.lab.complexity.measured import operations
from heedful.lab.drawn import figure_of
from heedful.lab.exhibit import Rows, Says, Shown, Steps, holds, unsaid
from heedful.lab.language.book import STEPS, Book, book
from heedful.lab.whole_words import END

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PROMPT = "a chapter about"


def kept_and_not(found: Book, prompt: str, count: int) -> tuple[list[int], list[int], int, int]:
    """The greedy tokens with a cache of keys and values, those with everything recomputed for each word, and the
    operations of both."""
    ids = torch.tensor([found.words.ids(prompt)])
    model = found.model

    def kept() -> list[int]:
        (one,) = greedy(model, ids[:, :-1], bos=int(ids[0, -1]), eos=-1, longest=count)
        return list(one.tokens)

    def anew() -> list[int]:
        row = ids
        for _ in range(count):
            row = torch.cat([row, model(row)[:, -1:].argmax(-1)], dim=1)
        return row[0, ids.shape[1] :].tolist()

    texts: list[list[int]] = []
    costs = [operations(lambda run=run: texts.append(run())) for run in (kept, anew)]  # type: ignore[misc]
    return texts[0], texts[1], costs[0], costs[1]


def sampling(
    says: Says, *, prompt: str = PROMPT, top_k: int = 3, top_p: float = 0.8, words: Rows = 24, steps: Steps = STEPS
) -> Shown:
    """The next word of a small model of synthetic text: its whole distribution, the `top_k` likeliest words, and those
    that together have `top_p`; three sampled texts; and the operations with and without a cache."""
    found = book(steps)
    ids = torch.tensor([found.words.ids(prompt)])
    with torch.no_grad():
        logits = found.model(ids)[:, -1]
    nothing = ids[:, :0]
    left: dict[str, Tensor] = {
        "all": logits.softmax(-1)[0],
        f"top-k, k = {top_k}": TopK(top_k)(nothing, logits)[0].softmax(-1),
        f"top-p, p = {top_p:g}": TopP(top_p)(nothing, logits)[0].softmax(-1),
    }
    one, other, kept, anew = kept_and_not(found, prompt, words)
    drawn = sample(
        found.model, ids[:, :-1], bos=int(ids[0, -1]), eos=END, longest=words, samples=3, sampling=Sampling(top_p=top_p)
    )
    lines = [holds(says, "keys and values can be kept", one == other, right=one == other and kept < anew)]
    facts = {f"words that may follow, {name}": int((chances > 1e-4).sum()) for name, chances in left.items()}
    facts |= {f"operations for {words} words, all read anew": anew, "with keys and values kept": kept}
    lines += unsaid(facts)
    text = "\n".join(f"  drawn: {prompt} {found.words.text(each.tokens)}" for each in drawn[0])
    order = left["all"].topk(12).indices
    names = [found.words.words[number] for number in order.tolist()]

    def fill(figure: "Figure") -> None:
        for axes, (name, chances) in zip(figure.subplots(1, 3, sharey=True), left.items(), strict=True):
            axes.barh(range(len(names)), chances[order].tolist(), color="C0")
            axes.set(title=name, xlabel="probability", yticks=range(len(names)))
            axes.set_yticklabels(names)
            axes.spines[["top", "right"]].set_visible(False)
        figure.axes[0].invert_yaxis()

    return Shown(lines, figure_of((6.4, 3.0), fill), text)
