"""CLIP's own laws; against Hugging Face's it stands in tests/parity."""

from dataclasses import replace

import pytest
import torch

from heedful.errors import InputError
from heedful.models import config_of, model_from
from heedful.models.clip import CLIP
from heedful.models.vision_presets import ClipSize, clip_config
from loud import make_loud

END = 19
ROW = ClipSize(
    d_common=8,
    image_width=16,
    image_layers=2,
    image_heads=2,
    patch=4,
    text_width=12,
    text_layers=2,
    text_heads=3,
    size=8,
    vocab_size=20,
    context_length=9,
)


@pytest.fixture
def model() -> CLIP:
    model = CLIP(clip_config(ROW)).eval()
    return make_loud(model)


def test_what_follows_the_end_of_a_text_says_nothing(model: CLIP) -> None:
    tokens = torch.randint(0, END, (2, 7))
    tokens[0, 3], tokens[1, 5] = END, END
    other = tokens.clone()
    other[0, 4:], other[1, 6:] = torch.tensor([END, 0, 7]), torch.tensor([END])
    assert torch.equal(model.encode_text(tokens), model.encode_text(other))
    torch.testing.assert_close(model.encode_text(tokens)[:1], model.encode_text(tokens[:1, :4]))


def test_a_text_without_an_end_is_refused(model: CLIP) -> None:
    with pytest.raises(InputError, match="a text without its last token 19"):
        model.encode_text(torch.tensor([[1, END, 3], [1, 2, 3]]))


def test_a_text_with_more_tokens_than_places_is_refused(model: CLIP) -> None:
    with pytest.raises(InputError, match="10 tokens, but the model has 9 positions"):
        model.encode_text(torch.full((1, 10), END))


def test_similarity_is_a_cosine_over_a_temperature(model: CLIP) -> None:
    pixels, tokens = torch.randn(3, 3, 8, 12), torch.tensor([[4, END], [7, END]])
    images, texts = model.encode_image(pixels), model.encode_text(tokens)
    torch.testing.assert_close(images.norm(dim=-1), torch.ones(3))
    torch.testing.assert_close(texts.norm(dim=-1), torch.ones(2))
    with torch.no_grad():
        model.log_scale.copy_(torch.tensor(2.0).log())
    torch.testing.assert_close(model(pixels, tokens), 2 * images @ texts.T)


def test_it_begins_with_the_paper_s_temperature() -> None:
    assert float(CLIP(clip_config(ROW)).log_scale.detach().exp()) == pytest.approx(1 / 0.07, rel=1e-4)


def test_towers_have_no_classes() -> None:
    config = clip_config(ROW)
    with pytest.raises(InputError, match="a picture's tower with 5 classes"):
        CLIP(replace(config, image=replace(config.image, n_classes=5)))


def test_as_a_file(model: CLIP) -> None:
    assert model_from(config_of(model)).config == model.config
