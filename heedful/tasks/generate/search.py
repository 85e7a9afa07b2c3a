"""The most likely continuations: by beam search, or the best of several that were drawn."""

from collections.abc import Sequence
from typing import NamedTuple

import torch

from heedful.data.batches import pad
from heedful.data.tokenizer import Ids
from heedful.decode.contract import Hypothesis
from heedful.decode.draws import penalties
from heedful.decode.rows import in_halves
from heedful.decode.search import beam
from heedful.decode.settings import SHAPING, Sampling
from heedful.errors import InputError
from heedful.models.lm import LM
from heedful.tasks.generate.writer import window

DRAWN = (*SHAPING, "seed")  # what a search does not use


def refuse_drawing(given: Sequence[str], stop: str | Sequence[str], *, width: int, samples: int) -> None:
    """Raises InputError for what a beam search of this width cannot follow."""
    unused = [name for name in DRAWN if name in given] + (["stop"] if stop else [])
    if unused:
        raise InputError(f"{unused[0]} is not used by a beam search", fix="leave it out, or draw without a beam")
    if not 1 <= samples <= width:
        raise InputError(f"{samples} texts of a beam of {width}", fix="give a beam at least as wide as there are texts")


def refuse_unused_penalty(length_penalty: float, *, compares: bool) -> None:
    """Raises InputError for a length penalty where each text is drawn once."""
    if length_penalty != 1.0 and not compares:
        raise InputError("a length penalty compares texts, and one is drawn", fix="give a beam, or best_of")


class BeamPlan(NamedTuple):
    """The `n_best` of a beam `width`, of at most so many `tokens`, the end's not counted. `rows` are in work at a time,
    prompts times `width`; those of one prompt where a penalty is of its own tokens."""

    tokens: int
    width: int
    n_best: int
    length_penalty: float
    rows: int


@torch.inference_mode()
def searched(
    model: LM,
    begun: Sequence[Ids],
    plan: BeamPlan,
    how: Sampling,
    *,
    ends: Sequence[int],
    forbidden: tuple[int, ...],
    at_once: int | None = None,
) -> list[list[Hypothesis]]:
    """The continuations of each prompt, the best first, of as many tokens as the model's context has room for, with the
    penalties of `how`."""
    context, device = model.config.embed.context_length, model.embed.tokens.weight.device
    read = [window(ids, context) for ids in begun]
    found: list[list[Hypothesis]] = [[] for _ in read]
    order = sorted(range(len(read)), key=lambda i: len(read[i]))
    size = max(1, plan.rows // plan.width) if how.repetition_penalty == 1 else 1

    def search(group: Sequence[int]) -> list[list[Hypothesis]]:
        source, segments = (part.to(device) for part in pad([read[i][:-1] for i in group], after=()))
        return beam(
            model,
            source,
            segments,
            bos=torch.tensor([read[i][-1] for i in group], device=device),
            eos=ends,
            longest=[min(plan.tokens, context + 1 - len(read[i])) for i in group],
            beam=plan.width,
            n_best=plan.n_best,
            length_penalty=plan.length_penalty,
            forbidden=forbidden,
            rules=penalties(how, read[group[0]], on_log_probabilities=plan.width > 1),
            at_once=at_once,
        )

    for group in (order[i : i + size] for i in range(0, len(order), size)):
        for i, own in zip(group, in_halves(search, group), strict=True):
            found[i] = own
    return found


def likelihood_score(logprobs: Sequence[float], length_penalty: float) -> float:
    """What texts are compared by, as a beam search does: the sum over their tokens, their end counted, divided by
    their number to this power: 1 compares them token by token, and 0 as a whole."""
    return sum(logprobs) / max(1, len(logprobs)) ** length_penalty
