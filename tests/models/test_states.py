"""A decoding state is a value: what was continued once is not continued wrongly, and its rows can be picked."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from heedful.errors import InputError
from heedful.models import make_model, preset
from heedful.models.presets import LANGUAGE_MODELS, TRANSLATORS
from loud import make_loud
from nearly import close

V, STEPS = 20, 4
# One of each kind of model that decodes, small.
SMALL = {"d_model": 16, "n_heads": 2, "d_ff": 24, "d_embed": 8, "d_hidden": 8, "d_align": 8, "d_readout": 8}
NAMES = ["transformer-tiny", "decoder-tiny", "rnn-small", "gpt-nano", "llama-nano", "mixtral-nano"]

Start = Callable[[int | None], Any]


def started(name: str) -> tuple[Any, Start]:
    """A model of random weights, and what starts two texts, with room for so many tokens."""
    row = {**TRANSLATORS, **LANGUAGE_MODELS}[name]
    changes = {key: value for key, value in SMALL.items() if hasattr(row, key)}
    model = make_loud(make_model(preset(name, vocab_size=V, changes=changes))).eval()
    source = torch.tensor([[5, 6, 7], [8, 9, 10]])
    segments = torch.ones_like(source)
    if name.startswith("rnn"):
        return model, lambda size: model.start(source, segments)
    return model, lambda size: model.start(source, segments, size)


@pytest.mark.parametrize("picked", [False, True])
@pytest.mark.parametrize("size", [None, 16], ids=["growing", "fixed"])
@pytest.mark.parametrize("name", NAMES)
@torch.no_grad()
def test_branches_of_a_state_are_right_or_refused(name: str, size: int | None, picked: bool) -> None:
    """Two texts that begin alike are continued in turns from one state, or from its rows and itself."""
    model, start = started(name)
    tokens = torch.randint(4, V, (2, STEPS, 2))
    tokens[1, 0] = tokens[0, 0]
    _, root = model.step(tokens[0, 0], start(size))
    states = {0: root, 1: root.pick(torch.arange(2)) if picked else root}
    out = dict[tuple[int, int], torch.Tensor]()
    for step in range(1, STEPS):
        for branch in [*states]:
            try:
                out[branch, step], states[branch] = model.step(tokens[branch, step], states[branch])
            except InputError as error:
                if "continued already" not in str(error):
                    raise
                del states[branch]
    assert 0 in states
    assert 1 in states or not picked
    for branch in states:
        _, state = model.step(tokens[branch, 0], start(size))
        for step in range(1, STEPS):
            logits, state = model.step(tokens[branch, step], state)
            close(out[branch, step], logits)
