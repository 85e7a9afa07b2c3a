"""Zero, one and few examples in a prompt: no weight changes, and the answers improve (Brown et al. 2020, figure 2.1; a
toy that only shows the mechanism)."""

from functools import cache
from random import Random

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from heedful.lab.drawn import curves
from heedful.lab.drawn_words import Strip, strips
from heedful.lab.exhibit import Draws, Says, Shown, Steps, beside, holds, unsaid
from heedful.lab.learning import learn
from heedful.models.lm import LM
from heedful.models.presets import LMSize, lm_config

LETTERS, TASKS, MOST, STEPS = 10, 8, 6, 500
GRAMMAR = [
    ("I eated the purple berries.", "I ate the purple berries."),
    ("Thank you for picking me.", "Thank you for choosing me."),
]


def tasks() -> list[list[int]]:
    """The tasks: each is a different permutation that renames ten letters."""
    draw = Random(7)
    return [draw.sample(range(LETTERS), LETTERS) for _ in range(TASKS)]


def prompts(draw: Random, count: int) -> Tensor:
    """Rows of letters and their new names, by one task for each row: (count, 2 (MOST + 1))."""
    rows = []
    for _ in range(count):
        names = draw.choice(tasks())
        letters = draw.sample(range(LETTERS), MOST + 1)
        rows.append([token for letter in letters for token in (letter, LETTERS + names[letter])])
    return torch.tensor(rows)


@cache
def model(steps: int) -> LM:
    torch.manual_seed(0)
    size = LMSize(n_layers=2, d_model=64, n_heads=4, activation="gelu")
    made, draw = LM(lm_config(size, vocab_size=2 * LETTERS, context_length=2 * MOST + 2)), Random(0)

    def loss(step: int) -> Tensor:
        rows = prompts(draw, 64)
        return cross_entropy(made(rows)[:, 0::2].flatten(0, 1), rows[:, 1::2].flatten())  # only the answers

    learn(made, loss, steps=steps, lr=4e-3)
    return made


def examples_in_the_prompt(says: Says, *, steps: Steps = STEPS, asked: Draws = 400) -> Shown:
    """A model was trained on eight ways to rename letters; only the examples tell it which of them is meant."""
    learnt = model(steps)
    before = torch.cat([weight.flatten() for weight in learnt.parameters()]).clone()
    rows = prompts(Random(1), asked)
    with torch.no_grad():
        right = (learnt(rows)[:, 0::2].argmax(-1) == rows[:, 1::2]).float().mean(0).tolist()
    change = not torch.equal(before, torch.cat([weight.flatten() for weight in learnt.parameters()]))
    lines = [holds(says, "weights change", change, right=change == says["weights change"])]
    named = {"zero": right[0], "one": right[1], "few (6)": right[MOST]}
    lines += unsaid({f"right with {name}": share for name, share in named.items()})
    drawn = {"examples in the prompt": (range(MOST + 1), right)}
    return Shown(lines, curves(drawn, x="examples in the prompt", y="right", title=f"{TASKS} tasks; no weight changes"))


def layouts(says: Says) -> Shown:
    """A prompt with no example, with one, and with several: `<Input><Delimiter><Answer>`, repeated."""
    task = ("Correct the English.", "what to do")
    solved = [[(bad, "input"), ("->", "delimiter"), (good, "the answer")] for bad, good in GRAMMAR]
    question = [("I had went there.", "input"), ("->", "delimiter"), ("...", "what the model writes")]
    rows = [Strip("zero", [task]), Strip("", question), Strip("one", [task]), Strip("", solved[0]), Strip("", question)]
    rows += [Strip("few", [task]), *(Strip("", one) for one in solved), Strip("", question)]
    return Shown(beside(says, {"examples": [0, 1, len(GRAMMAR)]}), strips(rows, title="Zero, one and few examples"))
