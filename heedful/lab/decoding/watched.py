"""Decoding, step by step: one word for each pass, its likeliest words, and the hypotheses of a beam search."""

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch

from heedful.decode.search import beam
from heedful.decode.trace import Traced
from heedful.lab.decoding.student import STEPS, STUDENT, learnt
from heedful.lab.drawn import Drawing, panels_of
from heedful.lab.drawn_words import Branch, tree
from heedful.lab.exhibit import NOTHING_SAID, Rows, Says, Shown, Steps, beside, holds, unsaid
from heedful.lab.whole_words import BEGIN, END, Learnt

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST, TOP = 12, 5


@torch.no_grad()
def passes(found: Learnt, source: str) -> list[list[tuple[str, float]]]:
    """The likeliest words of each pass with their probabilities; the first is the output, until the end."""
    state, token = found.model.start(found.words.rows([source], end=True)[0]), torch.tensor([BEGIN])
    every: list[list[tuple[str, float]]] = []
    while len(every) < MOST and (not every or every[-1][0][0] != "EOS"):
        logits, state = found.model.step(token, state)
        chances, numbers = logits[0].softmax(-1).topk(TOP)
        token = numbers[:1]
        names = ["EOS" if number == END else found.words.words[number] for number in numbers.tolist()]
        every.append([*zip(names, chances.tolist(), strict=True)])
    return every


def student(says: Says, *, sentence: str = STUDENT[0], steps: Steps = STEPS) -> Shown:
    """Translates "Je suis étudiant" by a model trained on such sentences: five passes, and the five likeliest words of
    each."""
    every = passes(learnt(steps), sentence)
    said = [each[0][0] for each in every]
    own = says if sentence == STUDENT[0] else NOTHING_SAID
    rows = [
        f"  pass {number}: " + "  ".join(f"{word} {chance:.3f}" for word, chance in each)
        for number, each in enumerate(every, 1)
    ]
    return Shown(beside(own, {"passes": len(every), "said": said}), by_pass(every), "\n".join(rows))


def by_pass(every: list[list[tuple[str, float]]]) -> Drawing:
    """A panel for each pass: bars of the likeliest words, with the output first."""

    def make() -> "Figure":
        figure, panels = panels_of(len(every), 3, (2.1, 2.2))
        said: list[str] = []
        for axes, each in zip(panels, every, strict=True):
            words, chances = [word for word, _ in each], [chance for _, chance in each]
            axes.barh(range(len(words)), chances, color=["C0"] + ["C4"] * (len(words) - 1))
            axes.set(yticks=range(len(words)), xlim=(0, 1), xlabel="probability")
            axes.set_yticklabels(words)
            axes.invert_yaxis()
            axes.set_title(" ".join([*said, "..."]), fontsize=9, loc="left")
            axes.spines[["top", "right"]].set_visible(False)
            said.append(words[0])
        return figure

    return make


def animated(says: Says, *, sentence: str = STUDENT[0], steps: Steps = STEPS) -> Shown:
    """Each pass adds one word, which the next pass reads: the frames of an animation."""
    every = passes(learnt(steps), sentence)
    grown = [" ".join(each[0][0] for each in every[:number]) for number in range(1, len(every) + 1)]
    one = all(len(after.split()) == len(before.split()) + 1 for before, after in pairwise(grown))
    lines = [holds(says, "a pass gives", "one word" if one else "several", right=one)]
    return Shown([*lines, *unsaid({"after each pass": grown})], by_pass(every), "\n".join(grown))


def frames(says: Says, *, sentence: str = STUDENT[0], steps: Steps = STEPS) -> Shown:
    """The cross-attention of each output word, with one row more in each frame."""
    found = learnt(steps)
    said = [each[0][0] for each in passes(found, sentence)]
    weights = found.cross_attention(sentence, " ".join(said[:-1]))[-1].mean(0)
    columns = [*sentence.split(), "<end>"]

    def make() -> "Figure":
        figure, panels = panels_of(len(said), 3, (1.9, 2.2))
        for frame, axes in enumerate(panels, 1):
            shown = torch.full_like(weights, float("nan"))
            shown[:frame] = weights[:frame]
            axes.imshow(shown.numpy(), cmap="Blues", vmin=0, vmax=1, aspect="auto")
            axes.set_xticks(range(len(columns)), columns, rotation=60, ha="right", fontsize=8)
            axes.set_yticks(range(len(said)), [*said[:frame], *[""] * (len(said) - frame)], fontsize=8)
            axes.set_title(f"pass {frame}", fontsize=9, loc="left")
            axes.tick_params(length=0)
        return figure

    return Shown(beside(says, {"frames": len(said), "said": " ".join(said)}), make)


def until_the_end(says: Says, *, sentence: str = STUDENT[0], width: Rows = 3, steps: Steps = STEPS) -> Shown:
    """Greedy decoding, until the end token; and beam search, which keeps several hypotheses."""
    found = learnt(steps)
    last = passes(found, sentence)[-1][0][0]
    source, segments = found.words.rows([sentence], end=True)
    traced = Traced[Any](found.model)
    (kept,) = beam(traced, source, segments, bos=BEGIN, eos=END, longest=MOST, beam=width, n_best=width)
    nodes = traced.tree(kept, eos=END)
    chosen: set[int] = set()
    at: int | None = next((place for place, node in enumerate(nodes) if node.rank == 0), None)
    while at is not None:
        chosen.add(at)
        at = nodes[at].parent
    branches = [
        Branch(node.parent, "EOS" if node.token == END else found.words.words[node.token], node.total, place in chosen)
        for place, node in enumerate(nodes)
    ]
    lines = [holds(says, "decoding ends at", last, right=last == "EOS")]
    lines += unsaid({"greedy says": found.translate([sentence])[0]})
    lines += unsaid({f"a beam of {width} finds": [found.words.text(one.tokens) for one in kept]})
    lines += unsaid({"with log-probabilities": [one.log_probability for one in kept]})
    return Shown(lines, tree(branches, title=f"A beam of {width}: beginnings and their log-probabilities"))
