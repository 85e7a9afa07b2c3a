"""A picture to text: an encoder of any width, positions that begin as sines, and a decoder that steps as it reads."""

from dataclasses import replace

import pytest
import torch

from heedful.core.attention import Attention, AttentionConfig
from heedful.core.embed import sinusoidal_2d
from heedful.errors import InputError
from heedful.models import make_model
from heedful.models.vision_presets import DescribeSize, describe_config

ROW = DescribeSize(d_model=12, n_heads=2, encoder_layers=1, decoder_layers=2, patch=4, vocab_size=11, context_length=8)
PIXELS, TOKENS = torch.randn(2, 3, 8, 12), torch.randint(0, 11, (2, 5))


@pytest.mark.parametrize("changes", [{}, {"d_encoder": 8}, {"d_encoder": 20, "encoder_heads": 5, "style": "trocr"}])
def test_one_token_after_another_is_the_same_as_all_at_once(changes: dict[str, object]) -> None:
    model = make_model(describe_config(replace(ROW, **changes), size=(8, 12))).eval()
    whole, state = model(PIXELS, TOKENS), model.start(PIXELS)
    for t in range(TOKENS.shape[1]):
        logits, state = model.step(TOKENS[:, t], state)
        torch.testing.assert_close(logits, whole[:, t])
    assert not torch.equal(whole[0], model(PIXELS.flip(0), TOKENS)[0])


def test_patches_begin_with_the_sines_of_their_rows_and_columns() -> None:
    places = make_model(describe_config(ROW, size=(8, 12))).encoder.position_embeddings.table.weight
    rows, columns = torch.tensor([0.0, 0, 0, 1, 1, 1]), torch.tensor([0.0, 1, 2, 0, 1, 2])
    assert torch.equal(places[1:], sinusoidal_2d(rows, columns, 12))
    assert places[0].abs().max() < 0.2


def test_keys_and_values_of_another_width() -> None:
    attention = Attention(6, AttentionConfig(n_heads=2, d_memory=10))
    kv = attention.keys_values(torch.randn(1, 4, 10))
    assert attention(attention.queries(torch.randn(1, 3, 6)), kv, mask=torch.ones(3, 4, dtype=torch.bool)).shape == (
        1,
        3,
        6,
    )
    with pytest.raises(InputError, match="d_memory is 0"):
        AttentionConfig(n_heads=2, d_memory=0)
