"""SegFormer's own laws; against Hugging Face's it stands in tests/parity."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from heedful.core import dropout
from heedful.core.attention import AttentionConfig
from heedful.core.block import BlockConfig
from heedful.errors import InputError
from heedful.look.record import record
from heedful.models import config_of, model_from
from heedful.models.pyramid import DropPath, MixBlock, Pyramid, PyramidConfig, StageConfig, as_map, as_row
from loud import make_loud

CONFIG = PyramidConfig(
    stages=(
        StageConfig(d_model=8, n_layers=2, n_heads=1, d_ff=16, patch=7, stride=4, shorten=4),
        StageConfig(d_model=16, n_layers=1, n_heads=2, d_ff=16),
    ),
    d_head=12,
    n_classes=5,
)


def loud(config: PyramidConfig) -> Pyramid:
    return make_loud(Pyramid(config), norm=1.0)


@pytest.mark.parametrize("norm", ["batch", "group"])
def test_a_batch_is_its_pictures_also_in_training(norm: str) -> None:
    """No norm looks at the batch, and none remembers it."""
    model, pixels = loud(replace(CONFIG, head_norm=norm)).train(), torch.randn(3, 3, 32, 48)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    whole = model(pixels)
    torch.testing.assert_close(whole, torch.cat([model(one[None]) for one in pixels]), rtol=1e-4, atol=1e-4)
    whole.sum().backward()
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())


def test_maps_and_their_sizes() -> None:
    model = loud(CONFIG).eval()
    features = model.features(torch.randn(2, 3, 33, 48))
    assert [tuple(x.shape) for x in features] == [(2, 8, 9, 12), (2, 16, 5, 6)]
    assert model(torch.randn(2, 3, 33, 48)).shape == (2, 5, 9, 12)
    x = torch.randn(2, 6, 3)
    assert torch.equal(as_row(as_map(x, (2, 3))), x)
    assert torch.equal(as_map(x, (2, 3))[1, :, 1, 0], x[1, 3])


def test_keys_are_as_many_as_squares() -> None:
    model = loud(CONFIG).eval()
    with record(model, "*") as recording:
        model(torch.randn(1, 3, 32, 48))
    assert recording.weights("stages.0.blocks.1.self_attention").shape == (1, 1, 8 * 12, 2 * 3)
    assert recording.weights("stages.1.blocks.0.self_attention").shape == (1, 2, 4 * 6, 4 * 6)


def test_a_square_of_one_shortens_nothing() -> None:
    """With a map that is the identity, and no norm, all places are keys."""
    block = BlockConfig(attention=AttentionConfig(n_heads=2), d_ff=8, order="pre")
    plain, short = (MixBlock(8, block, shorten=ratio, drop_path=0.0) for ratio in (1, 2))
    short.shorten.map = nn.Conv2d(8, 8, 1)
    nn.init.dirac_(short.shorten.map.weight)
    nn.init.zeros_(short.shorten.map.bias)
    short.shorten.norm = nn.Identity()
    short.load_state_dict(plain.state_dict(), strict=False)
    x = torch.randn(2, 12, 8)
    torch.testing.assert_close(short(x, (3, 4)), plain(x, (3, 4)))


def test_a_small_picture_is_refused() -> None:
    with pytest.raises(InputError, match="3 x 8 positions in squares of 4"):
        loud(CONFIG)(torch.randn(1, 3, 12, 32))


def test_a_path_is_dropped_for_whole_rows() -> None:
    path, x = DropPath(0.25).train(), torch.ones(400, 2, 3)
    out = path(x)
    kept = out[:, 0, 0] != 0
    assert torch.equal(
        out, torch.where(kept[:, None, None], torch.tensor(1 / 0.75), torch.tensor(0.0)).expand(400, 2, 3)
    )
    assert 0.65 < kept.float().mean() < 0.85
    assert path.eval()(x) is x


def test_a_row_draws_its_own_paths() -> None:
    path, x = DropPath(0.5).train(), torch.ones(8, 2, 3)

    def drawn(seeds: list[int]) -> Tensor:
        with dropout.rows(seeds):
            return path(x[: len(seeds)])

    assert torch.equal(drawn(list(range(8)))[2:4], drawn([2, 3]))


def test_the_chance_grows_from_block_to_block() -> None:
    model = Pyramid(replace(CONFIG, drop_path=0.2))
    chances = [block.drop_path.p for stage in model.stages for block in stage.blocks]
    assert chances == pytest.approx([0.0, 0.1, 0.2])


def test_as_a_file() -> None:
    assert model_from(config_of(Pyramid(CONFIG))).config == CONFIG
