"""The language model's state: rows of unequal length, that leave and are replaced, are what each is alone."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from heedful.core.attention import AttentionConfig
from heedful.core.block import Block, BlockConfig, Context, StackConfig
from heedful.core.embed import EmbedConfig
from heedful.core.position import Position, PositionConfig
from heedful.errors import InputError
from heedful.models.lm import LM, LMConfig, LMState
from loud import make_loud
from nearly import close

V, SIZE = 37, 16
SCHEMES = ["learned", "none", "rotary", "alibi", "buckets", "shaw", "shared alibi", "shared buckets"]


def loud(scheme: str, *, context_length: int = SIZE, n_layers: int = 2) -> LM:
    kind = scheme.removeprefix("shared ").replace("learned", "none")
    position = PositionConfig(kind=kind, buckets=8, furthest=6, two_sided=False)
    shared, own = (position, PositionConfig()) if "shared" in scheme else (PositionConfig(), position)
    attention = AttentionConfig(n_heads=4, kv_heads=2, position=own)
    block = BlockConfig(attention=attention, d_ff=24, order="pre")
    embeddings = "learned" if scheme == "learned" else "none"
    model = LM(
        LMConfig(
            d_model=16,
            embed=EmbedConfig(
                vocab_size=V, scaled=False, position_embeddings=embeddings, context_length=context_length
            ),
            stack=StackConfig(n_layers=n_layers, block=block, final_norm=True, shared_position=shared),
        )
    )
    return make_loud(model).eval()


def padded(texts: list[list[int]]) -> tuple[Tensor, Tensor]:
    longest = max(map(len, texts))
    segments = (torch.arange(longest) < torch.tensor([len(text) for text in texts])[:, None]).long()
    rows = [text + [0] * (longest - len(text)) for text in texts]
    return torch.tensor(rows, dtype=torch.int64).view(len(texts), longest), segments


def text(length: int) -> list[int]:
    return torch.randint(1, V, (length,)).tolist()


def step(model: LM, state: LMState, texts: list[list[int]]) -> LMState:
    """A random token more in every row, whose logits are those of the row alone, without a cache."""
    tokens = torch.randint(1, V, (len(texts),))
    logits, state = model.step(tokens, state)
    for row, (own, token) in enumerate(zip(texts, tokens.tolist(), strict=True)):
        own.append(token)
        close(logits[row], model(torch.tensor([own]))[0, -1])
    return state


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("lengths", [(5, 2, 4), (3, 3), (0, 0), (0, 4), (2,)])
def test_rows_come_and_go(scheme: str, lengths: tuple[int, ...]) -> None:
    """Steps after ragged prompts; then rows leave and are repeated, and others are put in their place."""
    model = loud(scheme)
    texts = [text(length) for length in lengths]
    with torch.inference_mode():
        state = model.start(*padded(texts), SIZE)
        for _ in range(2):
            state = step(model, state, texts)
        for chosen in ([len(texts) - 1, 0, 0], [1, 2, 0, 1]):
            state, texts = state.pick(torch.tensor(chosen)), [list(texts[row]) for row in chosen]
            state = step(model, state, texts)
        for rows, sizes in (([1, 3], (6, 1)), ([0], (0,)), ([2, 0, 1], (4, 3, 2))):
            newer = [text(length) for length in sizes]
            state = state.put(torch.tensor(rows), model.start(*padded(newer), max(1, *sizes)))
            for row, own in zip(rows, newer, strict=True):
                texts[row] = own
            for _ in range(2):
                state = step(model, state, texts)
        state, texts = state.pick(torch.tensor([3])), [texts[3]]
        state = step(model, state, texts)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("rows", [1, 3])
def test_several_steps_at_once(scheme: str, rows: int) -> None:
    """What was read too far is forgotten, and something else goes in its place."""
    model = loud(scheme)
    texts = torch.randint(1, V, (rows, 12))
    state = model.start(texts[:, :4], None, SIZE)
    guessed, _ = model.steps(torch.cat([texts[:, 4:6], texts[:, :5]], dim=1), state)
    close(guessed[:, :2], model(texts[:, :6])[:, 4:])
    state = state.keep(4)
    for first, last in ((4, 5), (5, 9), (9, 12)):
        logits, state = model.steps(texts[:, first:last], state)
        close(logits, model(texts[:, :last])[:, first:])
        ahead, other = model.steps(texts[:, :2], state)
        close(ahead, model(torch.cat([texts[:, :last], texts[:, :2]], dim=1))[:, -2:])
        state = other.keep(last)
    logits, _ = model.step(texts[:, 0], state)
    close(logits, model(torch.cat([texts, texts[:, :1]], dim=1))[:, -1])


def test_what_cannot_be() -> None:
    model = loud("rotary")
    with torch.inference_mode():
        fresh, read = (
            model.start(torch.zeros(2, 0, dtype=torch.int64)),
            model.start(torch.ones(1, 3, dtype=torch.int64)),
        )
        with pytest.raises(InputError, match="read nothing yet"):
            fresh.put(torch.tensor([0]), read)
        small = model.start(torch.ones(2, 1, dtype=torch.int64), None, 2)
        with pytest.raises(InputError, match="3 tokens do not fit a cache of 2"):
            small.put(torch.tensor([0]), read)
        _, small = model.step(torch.tensor([1, 1]), small)
        with pytest.raises(InputError, match="3 tokens do not fit a cache of 2"):
            model.step(torch.tensor([1, 1]), small)


class Largest(TorchDispatchMode):
    """The bytes of the largest tensor that any operation allocates."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        given = {one.untyped_storage().data_ptr() for one in args if isinstance(one, Tensor)}
        out = func(*args, **(kwargs or {}))
        for one in out if isinstance(out, tuple | list) else (out,):
            if isinstance(one, Tensor) and one.untyped_storage().data_ptr() not in given:
                self.bytes = max(self.bytes, one.untyped_storage().nbytes())
        return out


def largest_of(model: LM, rows: int, first: int, last: int) -> int:
    """Of the step at which a row has `last` tokens, after a prompt of `first`. The caches stay where they were made."""
    with torch.inference_mode():
        state = model.start(*padded([text(first + row) for row in range(rows)]), 2048)
        assert state.caches[0].past.buffer is not None
        made = [part.data_ptr() for part in state.caches[0].past.buffer.kv]
        for _ in range(last - first):
            _, state = model.step(torch.ones(rows, dtype=torch.int64), state)
        with Largest() as seen:
            _, state = model.step(torch.ones(rows, dtype=torch.int64), state)
        past = state.caches[0].past
        assert past.buffer is not None
        assert [part.data_ptr() for part in past.buffer.kv] == made
        assert past.length == last + rows
        assert seen.bytes < past.kv().key.untyped_storage().nbytes()
    return seen.bytes


@pytest.mark.parametrize("scheme", ["learned", "rotary", "shared buckets"])
@pytest.mark.parametrize("rows", [1, 3])
def test_a_long_text_takes_no_more_memory_a_token(scheme: str, rows: int) -> None:
    """What a step allocates grows by nothing but what has a number for each head and key: the scores."""
    model = loud(scheme, context_length=2048, n_layers=1)
    growth = largest_of(model, rows, 1990, 2000) - largest_of(model, rows, 5, 15)
    assert growth <= rows * 4 * (2000 - 15) * 4


@pytest.mark.full
def test_two_thousand_tokens_step_by_step() -> None:
    model = loud("learned", context_length=2048, n_layers=1)
    assert largest_of(model, 1, 5, 2005) - largest_of(model, 1, 5, 15) <= 4 * (2005 - 15) * 4


def test_a_growing_cache_would_be_found_out() -> None:
    kv = (
        loud("learned", context_length=600, n_layers=1).start(torch.ones(1, 500, dtype=torch.int64)).caches[0].past.kv()
    )
    with Largest() as seen:
        torch.cat([kv.key, kv.key[:, :, :1]], dim=2)
    assert seen.bytes == 501 * 2 * 4 * 4


class Nearness(Position):
    def bias(self, query: Any, query_positions: Any, key_positions: Any) -> torch.Tensor:
        return -(key_positions[:, None, None, :] - query_positions[:, None, :, None]).abs().sqrt()


class NearnessConfig(PositionConfig):
    def make(self, *, n_heads: int, head_dim: int, scale: float) -> Position:
        return Nearness()


class Twice(Block):
    def forward(self, x: torch.Tensor, context: Context, cache: Any = None) -> Any:
        return super().forward(self.mlp_residual(x, self.mlp), context, cache)


@torch.no_grad()
def test_blocks_and_positions_of_ones_own_are_handed_in() -> None:
    attention = AttentionConfig(n_heads=2, position=NearnessConfig())
    own = StackConfig(n_layers=2, block=BlockConfig(kind="twice", attention=attention, d_ff=32))
    embed = EmbedConfig(vocab_size=V, position_embeddings="none")
    model = make_loud(LM(LMConfig(d_model=16, embed=embed, stack=own), blocks={"twice": Twice})).eval()
    plain = LM(LMConfig(d_model=16, embed=embed, stack=replace(own, block=replace(own.block, kind="transformer"))))
    plain.load_state_dict(model.state_dict())
    tokens = torch.randint(V, (2, 6))
    full, state = model(tokens), model.start(tokens[:, :0])
    assert not torch.allclose(plain.eval()(tokens), full, atol=1e-2)
    for t in range(6):
        logits, state = model.step(tokens[:, t], state)
        close(logits, full[:, t])
    with pytest.raises(InputError, match="twice"):
        LM(LMConfig(d_model=16, embed=embed, stack=own))
