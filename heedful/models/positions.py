"""How attention gets positions: by embeddings, which are added to those of the tokens, or by a scheme of
`heedful.core.position`."""

from dataclasses import replace
from typing import Literal

from heedful.core.block import BlockConfig, StackConfig
from heedful.core.position import PositionConfig
from heedful.core.sparsity import Sparsity

Embedded = Literal["none", "sinusoidal", "learned", "binary"]
Positions = Literal[Embedded, "rotary", "alibi", "buckets", "shaw"]
EMBEDDED: tuple[Embedded, ...] = ("none", "sinusoidal", "learned", "binary")
FIXED: tuple[Embedded, ...] = ("sinusoidal", "binary")  # vectors of numbers up to 1, which nothing learns


def embedded(position: Positions) -> Embedded:
    """The position embeddings of the scheme; "none" for a scheme of attention."""
    return next((kind for kind in EMBEDDED if kind == position), "none")


def stack_of(block: BlockConfig, n_layers: int, position: Positions, *, causal: bool = False) -> StackConfig:
    """A stack of such blocks, whose self-attention gets positions by this scheme: by a bias that all blocks share where
    the scheme allows it. The output of post-norm blocks is already normed."""
    stack = StackConfig(n_layers=n_layers, block=block, final_norm=block.order != "post")
    match position:
        case "alibi" | "buckets":
            return replace(stack, shared_position=PositionConfig(kind=position, two_sided=not causal))
        case "rotary" | "shaw":
            attention = replace(block.attention, position=PositionConfig(kind=position))
            return replace(stack, block=replace(block, attention=attention))
        case _:
            return stack


def taking_turns(stack: StackConfig, compress: int | None) -> StackConfig:
    """Blocks whose keys are compressed by this factor (None: the stack as it is), by turns with the stack's own where
    those are sparse (Liu et al. 2018, section 4.2.4: local, compressed, local ...)."""
    if compress is None:
        return stack
    compressed = replace(stack.block, compress=compress, **vars(Sparsity()))
    return replace(stack, pattern=(stack.block, compressed) if stack.block.is_sparse else (compressed,))
