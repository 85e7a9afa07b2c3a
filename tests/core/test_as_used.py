"""What shows only where annotations are not executed, which is how the core is used: in a process of its own."""

from as_used import printed

NUMBERS = """
import torch
from heedful.core import Mask
from heedful.errors import InputError
for field in ("valid", "allowed"):
    for dtype in (torch.float32, torch.int64):
        try:
            Mask(**{field: torch.ones(2, 5, dtype=dtype)})
        except InputError as error:
            print(field, error, "-", error.fix)
"""
WORDS = """
from heedful.core import AttentionConfig, BlockConfig, EmbedConfig, PositionConfig
from heedful.core.rotary import RotaryScaling
from heedful.errors import InputError
attention = AttentionConfig(n_heads=1)
for make in (
    lambda: PositionConfig(kind="rope"),
    lambda: RotaryScaling(kind="dynamic", factor=2.0),
    lambda: EmbedConfig(vocab_size=5, position_embeddings="rope"),
    lambda: AttentionConfig(n_heads=1, norm="batch"),
    lambda: BlockConfig(attention=attention, d_ff=4, order="prenorm"),
    lambda: BlockConfig(attention=attention, d_ff=4, activation="swish"),
):
    try:
        make()
    except InputError as error:
        print(str(error).partition(" is not one of ")[0])
"""
EXPORTED = """
import torch
from torch import nn
from heedful.core import AttentionConfig, BlockConfig, Context, Mask, PositionConfig, Stack, StackConfig

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        attention = AttentionConfig(n_heads=2, position=PositionConfig(kind="rotary"))
        self.stack = Stack(8, StackConfig(n_layers=2, block=BlockConfig(attention=attention, d_ff=8, window=3)))

    def forward(self, x, valid):
        positions = torch.arange(x.shape[1])[None]
        return self.stack(x, Context(mask=Mask(causal=True, valid=valid), positions=positions))

model, T = Model().eval(), torch.export.Dim("T", min=2, max=64)
for grad in (True, False):
    with torch.set_grad_enabled(grad):
        given = torch.randn(2, 5, 8), torch.ones(2, 5, dtype=torch.bool)
        made = torch.export.export(model, given, dynamic_shapes={"x": {1: T}, "valid": {1: T}}).module()
        longer = torch.randn(2, 9, 8), torch.arange(9) < torch.tensor([[9], [4]])
        print(torch.allclose(made(*longer), model(*longer), atol=1e-5))
"""
SIZES = """
import torch
from heedful.core import Mask, attend, attention_weights
from heedful.errors import InputError

def told(make):
    try:
        make()
    except InputError as error:
        print(error, "-", error.fix)

q, k = torch.randn(2, 4, 5, 8), torch.randn(2, 2, 6, 8)
yes = lambda *shape: torch.ones(shape, dtype=torch.bool)
ones = lambda *shape: torch.ones(shape, dtype=torch.int64)
for mask in (
    yes(4, 4),
    yes(5, 1),
    yes(3, 5, 6),
    yes(2, 3, 5, 6),
    Mask(valid=yes(3, 6)),
    Mask(causal=True, valid=yes(2, 5)),
    Mask(causal=True, prefix=ones(3)),
    Mask(segments=(ones(2, 5), ones(2, 5))),
    Mask(window=2, positions=(ones(2, 6), ones(2, 6))),
    torch.ones(5, 6).numpy(),
    None,
):
    for gradients in (True, False):
        with torch.set_grad_enabled(gradients):
            told(lambda: attend(q, k, k, mask=mask, scale=1.0))
    told(lambda: attention_weights(q, k, mask=mask, scale=1.0))
told(lambda: Mask(segments=ones(2, 5)))
told(lambda: Mask(causal=True, prefix=2))
told(lambda: Mask(causal=True, window=2.5))
told(lambda: attend(q, k, k[:, :, :4], mask=Mask(causal=True), scale=1.0))
"""


SCRIPTS = (NUMBERS, WORDS, EXPORTED, SIZES)


def test_a_mask_of_numbers_is_refused() -> None:
    """Filled in, they would be an error of torch; given to its fused kernel they would be added to the scores."""
    told = "a mask of torch.{} - give a bool tensor, True where a query may attend"
    kinds = ("float32", "int64")
    assert printed(*SCRIPTS)[0] == [f"{field} {told.format(kind)}" for field in ("valid", "allowed") for kind in kinds]


def test_a_word_that_is_not_understood_is_named() -> None:
    """Passed over, "prenorm" would be a block without norms."""
    assert printed(*SCRIPTS)[1] == [
        "PositionConfig.kind: 'rope'",
        "RotaryScaling.kind: 'dynamic'",
        "EmbedConfig.position_embeddings: 'rope'",
        "AttentionConfig.norm: 'batch'",
        "BlockConfig.order: 'prenorm'",
        "BlockConfig.activation: 'swish'",
    ]


def test_a_stack_is_exported_for_any_length() -> None:
    assert printed(*SCRIPTS)[2] == ["True", "True"]


def test_a_mask_of_another_size_is_told_in_one_line() -> None:
    """Of both shapes; and what torch's fused kernel takes without a word, and reads beyond, is no answer."""
    here = "for 2 rows of 5 queries and 6 keys - give the shape"
    masks = [
        f"a mask of the shape (4, 4) (allowed), {here} (5, 6)",
        f"a mask of the shape (5, 1) (allowed), {here} (5, 6)",
        f"a mask of the shape (3, 5, 6) (allowed), {here} (2, 5, 6)",
        f"a mask of the shape (2, 3, 5, 6) (allowed), {here} (2, 4, 5, 6)",
        f"a mask of the shape (3, 6) (valid), {here} (2, 6)",
        f"a mask of the shape (2, 5) (valid), {here} (2, 6)",
        f"a mask of the shape (3,) (prefix), {here} (2,)",
        f"a mask of the shape (2, 5) (segments of keys), {here} (2, 6)",
        f"a mask of the shape (2, 6) (positions of queries), {here} (2, 5)",
        "a mask of ndarray - give a bool tensor, True where a query may attend",
        "a mask of NoneType - give a bool tensor, True where a query may attend",
    ]
    assert printed(*SCRIPTS)[3] == [
        *(line for line in masks for _ in range(3)),
        "segments that are no pair - give two tensors, of the queries and of the keys",
        "a prefix of 2 - give a tensor, with a number for each row",
        "a window of 2.5 keys - give 1 or more; 1 is a token itself",
        "6 keys and 4 values - give as many values as keys",
    ]
