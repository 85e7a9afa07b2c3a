"""Forced decoding: the log-probabilities of given continuations.

Sizes: B sources, S their length, R rows (continuations still under way), T longest continuation, V vocabulary.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from heedful.decode.contract import Generator, StateType
from heedful.decode.rows import refuse_nan


@torch.inference_mode()
def log_probabilities(
    model: Generator[StateType],
    source: Int[Tensor, "B S"],
    segments: Int[Tensor, "B S"] | None = None,
    *,
    bos: int | Int[Tensor, "B"],
    continuations: Sequence[Sequence[Sequence[int]]],
) -> list[list[list[float]]]:
    """The log-probability (nats) of each token of each source's continuations, given all tokens before it.

    A source is read once, and what the model remembers of it is copied to its continuations. `bos` is what the first
    step is given, as in `decode.search`. Raises NonFiniteError for logits that are NaN or +inf.
    """
    device = source.device
    forced = [torch.tensor(ids, dtype=torch.int64) for own in continuations for ids in own]
    if not forced:
        return [[] for _ in continuations]
    tokens = pad_sequence(forced, batch_first=True).to(device)
    lengths = torch.tensor([len(ids) for ids in forced], device=device)
    found = torch.zeros(tokens.shape, device=device)
    # `rows` are those under way, and row i is at place `at[i]` of the state: at first, where its source is
    rows = torch.arange(len(forced), device=device)
    at = torch.tensor([i for i, own in enumerate(continuations) for _ in own], device=device)
    state, newest = model.start(source, segments), torch.as_tensor(bos, device=device).expand(len(source))
    for t in range(tokens.shape[1]):
        logits, state = model.step(newest, state)
        found[rows, t] = logits.float().log_softmax(-1)[at, tokens[rows, t]]
        going = lengths[rows] > t + 1
        rows, at = rows[going], at[going]
        if t == 0 or len(rows) < len(going):  # else all stay where they are, and a copy would be for nothing
            state, at = state.pick(at), torch.arange(len(rows), device=device)
        newest = tokens[rows, t]
    refuse_nan(found)
    listed = iter(row[:length] for row, length in zip(found.tolist(), lengths.tolist(), strict=True))
    return [[next(listed) for _ in own] for own in continuations]
