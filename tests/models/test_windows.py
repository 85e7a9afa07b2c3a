"""Attention in windows: its laws, and Hugging Face's layer."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from transformers import SwinConfig
from transformers.models.swin.modeling_swin import SwinLayer

from heedful.core.attention import AttentionConfig
from heedful.core.block import Block, BlockConfig, Context
from heedful.core.mask import EVERYONE
from heedful.errors import InputError
from heedful.look.record import record
from heedful.models.windows import WindowBlock, fold, unfold
from nearly import close
from pictures import loud

C, H = 12, 3
CONFIG = BlockConfig(attention=AttentionConfig(n_heads=H), d_ff=20, order="pre", activation="gelu")


def block(side: int, kind: str = "windows") -> WindowBlock:
    made = WindowBlock(C, replace(CONFIG, kind=kind, window=side)).eval()
    loud(made)
    return made


def on(grid: tuple[int, int]) -> Context:
    return Context(mask=EVERYONE, grid=grid)


def test_a_window_that_is_the_whole_picture_is_full_attention() -> None:
    windows, plain = block(4), Block(C, CONFIG).eval()
    nn.init.zeros_(windows.offsets.weight)
    plain.load_state_dict({key: value for key, value in windows.state_dict().items() if key != "offsets.weight"})
    x = torch.randn(2, 16, C)
    close(windows(x, on((4, 4)))[0], plain(x, on((4, 4)))[0])


def test_folding_is_undone() -> None:
    x = torch.randn(2, 4, 6, C)
    folded = fold(x, 2)
    assert folded.shape == (12, 4, C)
    assert torch.equal(folded[4], x[0, 2:4, 2:4].reshape(4, C))  # the second row of windows, the second of three
    assert torch.equal(folded[6 + 2], x[1, 0:2, 4:6].reshape(4, C))
    assert torch.equal(unfold(folded, 2, (4, 6)), x)


def seen(windows: WindowBlock, row: int, column: int) -> Tensor:
    """Which places of a grid of 6 x 9 the output at one place depends on."""
    x = torch.randn(1, 54, C, requires_grad=True)
    windows(x, on((6, 9)))[0][0, row * 9 + column].sum().backward()
    return x.grad[0].abs().sum(-1).reshape(6, 9) > 0


@pytest.mark.parametrize("kind", ["windows", "shifted_windows"])
def test_weights_over_the_picture_are_where_an_output_depends_on(kind: str) -> None:
    windows = block(3, kind)
    with record(windows) as recording, torch.no_grad():
        windows(torch.randn(1, 54, C), on((6, 9)))
    whole = windows.over_picture(recording.weights(recording.names[0]), (6, 9))
    close(whole.sum(-1), torch.ones(H, 54))
    for row, column in ((0, 0), (2, 4), (5, 8)):
        looks = (whole[0, row * 9 + column] > 0).view(6, 9)
        assert torch.equal(looks, seen(windows, row, column))


def rectangle(top: int, left: int, bottom: int, right: int) -> Tensor:
    out = torch.zeros(6, 9, dtype=torch.bool)
    out[top:bottom, left:right] = True
    return out


def test_a_place_sees_its_window_and_no_further() -> None:
    assert torch.equal(seen(block(3), 1, 4), rectangle(0, 3, 3, 6))
    assert torch.equal(seen(block(3), 5, 8), rectangle(3, 6, 6, 9))


def test_a_shift_passes_on_but_not_over_the_edge() -> None:
    windows = block(3, "shifted_windows")
    assert torch.equal(seen(windows, 3, 3), rectangle(1, 1, 4, 4))
    assert torch.equal(seen(windows, 5, 8), rectangle(4, 7, 6, 9))
    assert torch.equal(seen(windows, 0, 0), rectangle(0, 0, 1, 1))
    assert torch.equal(seen(windows, 0, 5), rectangle(0, 4, 1, 7))


def test_a_batch_is_its_pictures() -> None:
    windows, x = block(3, "shifted_windows"), torch.randn(3, 54, C)
    close(windows(x, on((6, 9)))[0], torch.cat([windows(one[None], on((6, 9)))[0] for one in x]))


@pytest.mark.parametrize(("kind", "shift"), [("windows", 0), ("shifted_windows", 2)])
def test_hugging_face_s_layer(kind: str, shift: int) -> None:
    config = SwinConfig(window_size=4, mlp_ratio=2.0, hidden_act="gelu")
    theirs = SwinLayer(config, C, (8, 12), H, drop_path_rate=0.0, shift_size=shift).eval()
    loud(theirs)
    ours = WindowBlock(C, replace(CONFIG, kind=kind, window=4, d_ff=24)).eval()
    names = {
        "attention.q_proj": "self_attention.query",
        "attention.k_proj": "self_attention.key",
        "attention.v_proj": "self_attention.value",
        "attention.o_proj": "self_attention.out",
        "layernorm_before": "self_residual.in_norm",
        "layernorm_after": "mlp_residual.in_norm",
        "mlp.fc1": "mlp.up",
        "mlp.fc2": "mlp.down",
        "attention.relative_position_bias.relative_position_bias_table": "offsets.weight",
    }
    weights = {}
    for name, value in theirs.named_parameters():
        their = next(key for key in names if name.startswith(key))
        weights[names[their] + name.removeprefix(their)] = value.detach()
    ours.load_state_dict(weights)
    x = torch.randn(2, 96, C)
    out = theirs(x, (8, 12))
    close(ours(x, on((8, 12)))[0], out[0] if isinstance(out, tuple) else out)


def test_what_windows_cannot_be() -> None:
    with pytest.raises(InputError, match="a block of shifted_windows without its size"):
        WindowBlock(C, replace(CONFIG, kind="shifted_windows"))
    with pytest.raises(InputError, match="6 x 8 patches in windows of 3"):
        block(3)(torch.randn(1, 48, C), on((6, 8)))
