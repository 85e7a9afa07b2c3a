"""CLIP against Hugging Face's, with loud weights: N(0, 0.4) in every matrix, bias and token, N(1, 0.4) in every norm.

"Close" means: no element differs by more than 1e-5 of the tensor's largest in single precision, and 1e-9 in double,
in which gradients are compared. Names are those of the files that they save, which are the Hub's.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor
from transformers import CLIPConfig, CLIPModel

from heedful.errors import InputError
from heedful.exchange.hf import clip
from heedful.exchange.hf.clip import RULES, config_from_hf, config_to_hf
from heedful.exchange.hf.rules import to_ours
from heedful.models.clip import CLIP
from heedful.models.vision_presets import PAIRS, clip_config
from heedful.training.loss import contrastive
from nearly import close, close_gradients, copy_weights
from pictures import check_names, check_there_and_back, loud, saved

V = 41
TEXT = {
    "vocab_size": V,
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "max_position_embeddings": 12,
    "bos_token_id": 3,
    "pad_token_id": 1,
    "eos_token_id": 5,
}
VISION = {
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 40,
    "image_size": 24,
    "patch_size": 6,
}


def theirs_of(text: dict[str, Any], vision: dict[str, Any], **whole: Any) -> CLIPConfig:
    return CLIPConfig(text_config=TEXT | text, vision_config=VISION | vision, projection_dim=20, **whole)


VARIANTS = {
    "plain": theirs_of({}, {}),
    "other numbers": theirs_of(
        {"hidden_act": "gelu", "layer_norm_eps": 1e-3},
        {"num_channels": 1, "hidden_act": "gelu_new", "layer_norm_eps": 1e-2},
        logit_scale_init_value=1.5,
    ),
    "an end of old": theirs_of({"eos_token_id": 2}, {}),
}


class Pair(NamedTuple):
    theirs: CLIPModel
    ours: CLIP


@pytest.fixture(params=sorted(VARIANTS))
def pair(request: pytest.FixtureRequest) -> Pair:
    theirs = CLIPModel(VARIANTS[request.param]).eval()
    loud(theirs)
    ours = CLIP(config_from_hf(theirs.config.to_dict())).eval()
    copy_weights(ours, RULES, saved(theirs, theirs.state_dict()))
    return Pair(theirs, ours)


def inputs(pair: Pair, *size: int) -> tuple[Tensor, Tensor, Tensor]:
    """Pictures, texts of three lengths padded behind their end, and which tokens are real."""
    config = pair.ours.config
    pixels = torch.randn(4, config.image.patches.channels, *(size or (24, 24)))
    lengths = torch.tensor([9, 3, 6])
    tokens = torch.randint(6, V - 1, (3, 11))
    valid = torch.arange(11) < lengths[:, None]
    tokens = tokens.masked_fill(~valid, 1)
    tokens[torch.arange(3), lengths - 1] = config.text.end
    return pixels, tokens, valid


def test_similarity(pair: Pair) -> None:
    pixels, tokens, valid = inputs(pair)
    theirs = pair.theirs(input_ids=tokens, attention_mask=valid.long(), pixel_values=pixels)
    images, texts = pair.ours.encode_image(pixels), pair.ours.encode_text(tokens)
    close(images, theirs.image_embeds)
    close(texts, theirs.text_embeds)
    close(pair.ours(pixels, tokens), theirs.logits_per_image)
    close(pair.ours.similarity(images, texts), theirs.logits_per_text.T)


def test_hidden_states(pair: Pair) -> None:
    pixels, tokens, valid = inputs(pair)
    text = pair.theirs.text_model(input_ids=tokens, attention_mask=valid.long())
    close(pair.ours.text.hidden(tokens)[valid], text.last_hidden_state[valid])
    close(pair.ours.text(tokens), text.pooler_output)
    image = pair.theirs.vision_model(pixel_values=pixels)
    close(pair.ours.image.hidden(pixels), pair.theirs.vision_model.post_layernorm(image.last_hidden_state))
    close(pair.ours.image(pixels), image.pooler_output)


@pytest.mark.parametrize("size", [(36, 36), (12, 30)])
def test_pictures_of_other_sizes(pair: Pair, size: tuple[int, int]) -> None:
    pixels, _, _ = inputs(pair, *size)
    theirs = pair.theirs.get_image_features(pixel_values=pixels, interpolate_pos_encoding=True).pooler_output
    close(pair.ours.encode_image(pixels), theirs / theirs.norm(dim=-1, keepdim=True))


def test_gradients_of_every_parameter(pair: Pair) -> None:
    """Of the contrastive loss, which is theirs too."""
    for model in pair:
        model.double()
    pixels, tokens, valid = inputs(pair)
    pixels = pixels[:3].double()
    ours = contrastive(pair.ours(pixels, tokens))
    theirs = pair.theirs(input_ids=tokens, attention_mask=valid.long(), pixel_values=pixels, return_loss=True)
    torch.testing.assert_close((ours.total / ours.count).double(), theirs.loss, rtol=1e-6, atol=0)
    similarity = pair.ours(pixels, tokens)
    (similarity.log_softmax(0).trace() + similarity.log_softmax(1).trace()).div(-6).backward()
    theirs.loss.backward()
    own = dict(pair.ours.named_parameters())
    gradients = {name: weight.grad for name, weight in pair.theirs.named_parameters()}
    expected = to_ours(RULES, saved(pair.theirs, gradients), own)
    close_gradients(own, expected)


def test_names_are_those_of_their_files(pair: Pair, tmp_path: Path) -> None:
    check_names(pair.theirs, tmp_path)


def test_there_and_back(pair: Pair) -> None:
    theirs = config_to_hf(pair.ours.config, start=3, pad=1)
    check_there_and_back(pair.theirs, pair.ours, RULES, config_from_hf, theirs)
    again = CLIPModel(CLIPConfig.from_dict(theirs)).eval()
    again.load_state_dict(pair.theirs.state_dict())
    pixels, tokens, _ = inputs(pair)
    close(pair.ours(pixels, tokens), again(input_ids=tokens, pixel_values=pixels).logits_per_image)


def test_old_files_hold_the_places_numbers(pair: Pair) -> None:
    numbers = {f"{side}.embeddings.position_ids": torch.arange(9)[None] for side in ("text_model", "vision_model")}
    weights, own = saved(pair.theirs, pair.theirs.state_dict()), dict(pair.ours.named_parameters())
    assert to_ours(RULES, weights | numbers, own).keys() == own.keys()


def test_what_they_leave_out_is_their_default() -> None:
    assert config_from_hf({"model_type": "clip"}) == config_from_hf(CLIPConfig().to_dict())


def test_what_is_not_accounted_for_is_refused(pair: Pair) -> None:
    config = pair.theirs.config.to_dict()
    with pytest.raises(InputError, match="unknown key 'n_towers'"):
        config_from_hf(config | {"n_towers": 3})
    with pytest.raises(InputError, match=r"config\.json: vision_config: unknown key 'n_registers'"):
        config_from_hf(config | {"vision_config": config["vision_config"] | {"n_registers": 4}})
    own, weights = dict(pair.ours.named_parameters()), saved(pair.theirs, pair.theirs.state_dict())
    table = RULES
    with pytest.raises(InputError, match=r"no rule for their tensor 'text_model\.extra'"):
        to_ours(table, weights | {"text_model.extra": torch.zeros(1)}, own)
    with pytest.raises(InputError, match="nothing of theirs for our tensor 'log_scale'"):
        to_ours(table, {key: value for key, value in weights.items() if key != "logit_scale"}, own)


@pytest.mark.parametrize(
    ("whole", "side", "change", "message"),
    [
        ({"model_type": "siglip"}, "text", {}, "model_type is 'siglip': only 'clip' can be read"),
        ({}, "text", {"model_type": "clip_vision_model"}, "text_config: model_type is 'clip_vision_model'"),
        ({}, "vision", {"hidden_act": "mish"}, "vision_config: hidden_act 'mish' is not one of"),
        ({}, "vision", {"dropout": 0.1}, "vision_config: dropout is 0.1: only 0.0 can be read"),
        ({}, "text", {"eos_token_id": [5, 6]}, r"text_config: eos_token_id \[5, 6\] of vocab_size 41"),
        ({}, "text", {"is_decoder": True}, "text_config: is_decoder is True: only False"),
        ({"text_config_dict": {"hidden_size": 8}}, "text", {}, "text_config says hidden_size = 16, text_config_dict 8"),
        ({"vision_config_dict": 4}, "text", {}, "vision_config_dict 4: expected objects"),
        ({"logit_scale_init_value": "2"}, "text", {}, "log_scale: expected float, found '2'"),
    ],
)
def test_what_we_cannot_build_is_refused(whole: dict, side: str, change: dict, message: str) -> None:
    config = VARIANTS["plain"].to_dict()
    key = f"{side}_config"
    with pytest.raises(InputError, match=message):
        config_from_hf(config | {key: config[key] | change} | whole)


def test_what_old_files_say_twice_is_read_once() -> None:
    config = VARIANTS["plain"].to_dict()
    twice = {"text_config_dict": {"hidden_size": 16}, "vision_config_dict": None}
    assert config_from_hf(config | twice) == config_from_hf(config)
    only = {"model_type": "clip", "projection_dim": 20, "text_config": None, "text_config_dict": TEXT}
    assert config_from_hf(only | {"vision_config_dict": VISION}) == config_from_hf(config)


@pytest.mark.parametrize("side", ["text", "vision"])
def test_every_key_that_is_read_makes_a_difference(side: str) -> None:
    base = VARIANTS["plain"].to_dict()
    for key in (clip.TEXT_TABLE if side == "text" else clip.VISION_TABLE).keys:
        other = {"hidden_act": "relu", "attention_dropout": 0.5, "layer_norm_eps": 0.1}.get(key, 11)
        changed = base | {f"{side}_config": base[f"{side}_config"] | {key: other}}
        assert config_from_hf(changed) != config_from_hf(base), key
    assert config_from_hf(base | {"projection_dim": 8}) != config_from_hf(base)
    assert config_from_hf(base | {"logit_scale_init_value": 1.0}) != config_from_hf(base)


def test_presets_have_their_names_there() -> None:
    for row in PAIRS.values():
        assert config_to_hf(clip_config(row), start=0, pad=1)["model_type"] == "clip"
    config = clip_config(PAIRS["clip-b32"])
    with pytest.raises(InputError, match=r"CLIP cannot hold model\.image\.input_norm = False"):
        config_to_hf(replace(config, image=replace(config.image, input_norm=False)), start=0, pad=1)
    with pytest.raises(InputError, match=r"CLIP cannot hold model\.text\.end = 2"):
        config_to_hf(clip_config(PAIRS["clip-b32"], end=2), start=0, pad=1)
