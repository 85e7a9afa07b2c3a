"""What a stack is told by its configuration and by its context: a block for each layer, a window for each block, a
memory and its mask, losses on the side."""

from dataclasses import replace
from typing import Any, TypeVar

import pytest
import torch
from torch import Tensor, nn

from heedful.core.attention import AttentionConfig
from heedful.core.block import BLOCKS, Block, BlockConfig, Context, Memory, Stack, StackConfig
from heedful.core.cache import BlockCache
from heedful.core.config import from_json, to_json
from heedful.core.mask import EVERYONE, Mask
from heedful.core.position import PositionConfig
from heedful.errors import InputError
from loud import make_loud

B, T, S, C, H = 3, 9, 5, 16, 4
SCHEMES = ["none", "added", "rotary", "alibi", "buckets", "shaw"]


def config(position: str = "none", **more: object) -> BlockConfig:
    scheme = PositionConfig(kind=position, buckets=8, furthest=20)  # type: ignore[arg-type]
    attention = AttentionConfig(n_heads=H, kv_heads=2, position=scheme)
    return BlockConfig(attention=attention, d_ff=24, order="pre", **more)  # type: ignore[arg-type]


M = TypeVar("M", bound=nn.Module)


def loud(module: M) -> M:
    return make_loud(module).eval()


def close(ours: Tensor, theirs: Tensor) -> None:
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


def test_a_pattern_is_its_blocks_by_turns() -> None:
    a, b = config("rotary", window=3), config("shaw", activation="silu", gated=True)
    stack = loud(Stack(C, StackConfig(n_layers=5, block=a, pattern=(a, b), final_norm=True)))
    blocks: list[Any] = [*stack.blocks]
    assert [block.mlp.gate is None for block in blocks] == [True, False, True, False, True]
    x, positions = torch.randn(B, T, C), torch.arange(T)[None]
    y = x
    for i, block in enumerate(stack.blocks):
        alone = loud(Block(C, b if i % 2 else a))
        alone.load_state_dict(block.state_dict())
        mask = Mask(causal=True) if i % 2 else Mask(causal=True, window=3)
        y, _ = alone(y, Context(mask=mask, positions=positions))
    close(stack(x, Context(mask=Mask(causal=True), positions=positions)), stack.norm(y))


def test_without_a_pattern_all_layers_are_the_block() -> None:
    plain = StackConfig(n_layers=3, block=config())
    assert plain.layers == [config()] * 3
    assert replace(plain, pattern=(config(window=2), config())).layers == [config(window=2), config(), config(window=2)]
    turns = replace(plain, pattern=(config(window=2), config("alibi")))
    assert from_json(StackConfig, to_json(turns)) == turns


def test_an_unknown_kind_names_the_nearest() -> None:
    for stack in (
        StackConfig(n_layers=1, block=config(kind="transfomer")),
        StackConfig(n_layers=2, block=config(), pattern=(config(), config(kind="transfomer"))),
    ):
        with pytest.raises(InputError, match=r"block\.kind: unknown key 'transfomer'") as error:
            Stack(C, stack)
        assert error.value.fix == "did you mean 'transformer'?"


def test_a_model_may_bring_its_own_blocks() -> None:
    stack = Stack(C, StackConfig(n_layers=2, block=config(kind="tithe")), {**BLOCKS, "tithe": Tithe})
    assert all(isinstance(block, Tithe) for block in stack.blocks)


@pytest.mark.parametrize("kind", ["none", "rotary", "alibi", "buckets", "shaw", "shared alibi", "shared buckets"])
@pytest.mark.parametrize("causal", [True, False])
def test_a_window_is_a_mask_of_it(kind: str, causal: bool) -> None:
    """Of the layers that have one: each of them its own."""
    scheme = PositionConfig(kind=kind.removeprefix("shared "), buckets=8, furthest=20)  # type: ignore[arg-type]
    shared, own = (scheme, "none") if "shared" in kind else (PositionConfig(), kind)
    pattern = (config(own, window=2), config(own), config(own, window=4))
    stack = loud(Stack(C, StackConfig(n_layers=3, block=pattern[0], pattern=pattern, shared_position=shared)))
    x, positions = torch.randn(B, T, C), torch.arange(T)[None]
    valid = torch.arange(T) < torch.tensor([[T], [4], [6]])
    bias = stack.position.bias(None, positions, positions) if "shared" in kind else None
    y = x
    for block, window in zip(stack.blocks, (2, None, 4), strict=True):
        apart = torch.arange(T)[:, None] - torch.arange(T)
        near = torch.ones(T, T, dtype=torch.bool) if window is None else apart.abs() < window
        mask = Mask(causal=causal, valid=valid, allowed=near)
        y, _ = block(y, Context(mask=mask, positions=positions, bias=bias))
    told = Context(mask=Mask(causal=causal, valid=valid), positions=positions)
    close(stack(x, told), y)


def test_a_window_stays_inside_a_segment() -> None:
    """And counts positions in it, also where its tokens lie in two pieces."""
    stack = loud(Stack(C, StackConfig(n_layers=1, block=config("rotary", window=3))))
    segments = torch.tensor([[1, 1, 1, 2, 2, 1, 1, 2, 0]])
    positions = torch.tensor([[0, 1, 2, 0, 1, 3, 4, 2, 0]])
    x = torch.randn(1, T, C)
    whole = stack(x, Context(mask=Mask(segments=(segments, segments)), positions=positions))
    for segment in (1, 2):
        rows = (segments[0] == segment).nonzero()[:, 0]
        context = Context(mask=EVERYONE, positions=positions[:, rows])
        close(whole[:, rows], stack(x[:, rows], context))


@pytest.mark.parametrize("per_row", [False, True])
@pytest.mark.parametrize("kind", ["none", "rotary", "alibi", "buckets", "shaw", "shared alibi", "shared buckets"])
def test_in_a_window_cached_is_full(kind: str, per_row: bool) -> None:
    shared, kind = "shared" in kind, kind.removeprefix("shared ")
    scheme = PositionConfig(kind=kind, buckets=8, furthest=6, two_sided=False)  # type: ignore[arg-type]
    wide = config("none" if shared else kind)
    plan = StackConfig(n_layers=4, block=wide, shared_position=scheme if shared else PositionConfig())
    stack = loud(Stack(C, replace(plan, pattern=(replace(wide, window=3), wide))))
    without = Stack(C, plan).eval()
    without.load_state_dict(stack.state_dict())
    x = torch.randn(B, T, C)
    first = torch.tensor([[0], [4], [11]]) if per_row else torch.tensor([[0]])
    positions = None if kind == "none" else first + torch.arange(T)

    def told(start: int, end: int) -> Context:
        return Context(
            mask=Mask(causal=True),
            positions=None if positions is None else positions[:, start:end],
        )

    with torch.no_grad():
        full = stack(x, told(0, T))
        assert not torch.allclose(full, without(x, told(0, T)), atol=1e-2), "the window hides something"
        for ends in ([*range(1, T + 1)], [3, 4, T], [1, T]):
            for size in (None, T):
                caches, out, start = stack.start(size=size), [], 0
                for end in ends:
                    y, caches = stack.step(x[:, start:end], told(start, end), caches)
                    out.append(y)
                    start = end
                close(torch.cat(out, 1), full)


class Tithe(Block):
    """A block that wants the tenth of the squares of what it is given to be small."""

    def forward(self, x: Tensor, context: Context, cache: BlockCache | None = None) -> tuple[Tensor, BlockCache | None]:
        if context.losses is not None:
            context.losses.append(0.1 * x.square().sum())
        return super().forward(x, context, cache)


def test_blocks_leave_losses_where_they_are_asked_for() -> None:
    turns = (config(kind="tithe"), config())
    stack = loud(Stack(C, StackConfig(n_layers=4, block=turns[0], pattern=turns), {**BLOCKS, "tithe": Tithe}))
    seen: list[Tensor] = []
    for block in stack.blocks:
        block.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    x = torch.randn(B, T, C)
    plain = stack(x, Context(mask=EVERYONE))
    collected: list[list[Tensor]] = [[], []]
    for losses, given in zip(collected, (x, 2 * x), strict=True):
        seen.clear()
        out = stack(given, Context(mask=EVERYONE, losses=losses))
        assert torch.stack(losses).tolist() == [(0.1 * one.square().sum()).item() for one in seen[::2]]
        assert given is not x or torch.equal(out, plain), "whoever asks for losses changes nothing else"
    assert all(one.item() != other.item() for one, other in zip(*collected, strict=True))
    collected[0][1].backward()
    blocks: list[Any] = [*stack.blocks]
    assert blocks[0].mlp.up.weight.grad is not None
    assert blocks[2].mlp.up.weight.grad is None


@pytest.mark.parametrize("T", [1, 3])
@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("kind", SCHEMES)
def test_rows_that_share_a_memory_are_as_if_each_had_its_own(kind: str, each: bool, T: int) -> None:
    """As the hypotheses of a beam share a source."""
    beams = 4
    cross = AttentionConfig(n_heads=H, kv_heads=2, gate=True, position=config(kind).attention.position)
    block = loud(Block(C, config(cross=cross)))
    x, x_memory, rows = torch.randn(beams * B, T, C), torch.randn(B, S, C), beams * B if each else 1
    valid = torch.arange(S) < torch.tensor([[5], [3], [1]])
    embeddings = torch.randn(1, S, C) if kind == "added" else None
    memory = Memory(x_memory, Mask(valid=valid), torch.arange(S)[None], embeddings)
    shared = Context(
        mask=EVERYONE,
        positions=torch.randint(0, 9, (rows, T)),
        position_embeddings=torch.randn(rows, T, C) if kind == "added" else None,
        memory=memory,
    )
    repeated = x_memory.repeat_interleave(beams, 0), Mask(valid=valid.repeat_interleave(beams, 0))
    own = replace(shared, memory=replace(memory, x=repeated[0], mask=repeated[1]))
    close(block(x, shared)[0], block(x, own)[0])


def test_a_memory_is_given_to_each_block_that_looks_at_one() -> None:
    stack = loud(Stack(C, StackConfig(n_layers=1, block=config(cross=AttentionConfig(n_heads=H)))))
    x, memory = torch.randn(B, T, C), Memory(torch.randn(B, S, C), EVERYONE)
    told = Context(mask=EVERYONE, memory=memory)
    stack(x, told)
    for missing in (None, replace(memory, x=None)):
        with pytest.raises(InputError, match="cross-attention without a memory"):
            stack(x, replace(told, memory=missing))
    stack.step(x, replace(told, memory=replace(memory, x=None)), stack.start(memory))
    for missing, caches in ((None, stack.start(memory)), (memory, stack.start())):
        with pytest.raises(InputError, match="cross-attention without a memory"):
            stack.step(x, replace(told, memory=missing), caches)
    with pytest.raises(TypeError, match="mask"):
        Memory(memory.x)  # type: ignore[call-arg]
