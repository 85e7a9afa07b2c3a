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
        return self.stack(x, Context(mask=Mask(causal=True, valid=valid), memory_mask=None, positions=positions))[0]

model, T = Model().eval(), torch.export.Dim("T", min=2, max=64)
for grad in (True, False):
    with torch.set_grad_enabled(grad):
        given = torch.randn(2, 5, 8), torch.ones(2, 5, dtype=torch.bool)
        made = torch.export.export(model, given, dynamic_shapes={"x": {1: T}, "valid": {1: T}}).module()
        longer = torch.randn(2, 9, 8), torch.arange(9) < torch.tensor([[9], [4]])
        print(torch.allclose(made(*longer), model(*longer), atol=1e-5))
"""


SCRIPTS = (NUMBERS, WORDS, EXPORTED)


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
