"""Presets by their names."""

import pytest
import torch

from heedful.core.init import uninitialised
from heedful.errors import InputError
from heedful.models import DETR, PRESETS, make_model, preset
from heedful.models.counts import PARAMETERS


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_the_model_that_info_tells_of(name: str) -> None:
    with torch.device("meta"), uninitialised():
        model = make_model(name)
    standing_still = [*model.buffers()] if isinstance(model, DETR) else []
    sizes = [tensor.numel() for tensor in (*model.parameters(), *standing_still)]
    assert sum(sizes) == PARAMETERS[name]


def test_its_sizes_can_be_changed() -> None:
    config = preset("llama-nano", vocab_size=300, changes={"d_model": 64, "n_heads": 2, "kv_heads": 2, "d_ff": 96})
    assert (config.d_model, config.embed.vocab_size) == (64, 300)
    assert preset("transformer-tiny", vocab_size=300).target.vocab_size == 300
    assert preset("vit-nano28", n_classes=7).n_classes == 7


def test_what_is_not_known_is_told() -> None:
    with pytest.raises(InputError, match="unknown key 'llama-nan'") as error:
        make_model("llama-nan")
    assert "'llama-nano'" in error.value.fix
    with pytest.raises(InputError, match="unknown key 'd_modle'") as error:
        preset("llama-nano", changes={"d_modle": 64})
    assert "'d_model'" in error.value.fix


@pytest.mark.parametrize(("name", "words"), [("llama-nano", {"n_classes": 3}), ("vit-nano28", {"vocab_size": 9})])
def test_what_a_family_does_not_use_is_refused(name: str, words: dict[str, int]) -> None:
    (unused,) = words
    with pytest.raises(InputError, match=f"{unused}=. is not used by {name}"):
        preset(name, **words)
