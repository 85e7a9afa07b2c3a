"""Which weights are pruned, and that zeros stay zeros, whatever the optimizer."""

from typing import Literal

import pytest
import torch
from torch import Tensor, nn

from heedful.errors import InputError
from heedful.models import make_model
from heedful.models.presets import LANGUAGE_MODELS, lm_config
from heedful.training.optim import Average, OptimConfig, Optimizer, block_matrices
from heedful.training.pruning import masks_by_pattern, masks_by_share
from loud import make_loud


def model_of() -> nn.Module:
    model = make_model(lm_config(LANGUAGE_MODELS["llama-nano"], vocab_size=300))
    make_loud(model, std=0.3)
    return model


def sizes(model: nn.Module, masks: dict[str, Tensor], *, kept: bool) -> Tensor:
    weights = dict(model.named_parameters())
    return torch.cat([weights[name].detach().abs()[mask == kept] for name, mask in masks.items()])


@pytest.mark.parametrize("share", [0.25, 0.5, 0.9])
def test_by_share_the_smallest_of_all_maps_in_blocks_go(share: float) -> None:
    model = model_of()
    masks = masks_by_share(model, share)
    assert masks.keys() == block_matrices(model)
    gone, kept = sizes(model, masks, kept=False), sizes(model, masks, kept=True)
    assert len(gone) == round(share * (len(gone) + len(kept)))
    assert gone.max() <= kept.min()


def test_a_share_is_exact_where_weights_are_alike() -> None:
    model = model_of()
    for weight in model.parameters():
        weight.data.zero_()
    masks = masks_by_share(model, 0.3)
    count = sum(map(torch.numel, masks.values()))
    assert sum(int((~mask).sum()) for mask in masks.values()) == round(0.3 * count)


@pytest.mark.parametrize(("pattern", "keep", "among"), [("2:4", 2, 4), ("1:8", 1, 8), ("3:4", 3, 4)])
def test_by_pattern_the_largest_of_each_group_of_each_row_stay(pattern: str, keep: int, among: int) -> None:
    model = model_of()
    weights = dict(model.named_parameters())
    for name, mask in masks_by_pattern(model, pattern).items():
        for row, stays in zip(weights[name].detach().abs(), mask, strict=True):
            for at in range(0, len(row), among):
                group, own = row[at : at + among], stays[at : at + among]
                assert own.sum() == keep
                assert group[own].min() >= group[~own].max()


def test_what_cannot_be_pruned_is_refused() -> None:
    for pattern in ("4:4", "4:2", "0:4", "2-4", "2:4 ", "half"):
        with pytest.raises(InputError, match="is no pattern"):
            masks_by_pattern(model_of(), pattern)
    with pytest.raises(InputError, match=r"blocks\.0\.self_attention\.query\.weight has 128 inputs, .* groups of 7"):
        masks_by_pattern(model_of(), "2:7")
    with pytest.raises(InputError, match="without linear maps in blocks"):
        masks_by_share(nn.Sequential(nn.Linear(3, 4)), 0.5)


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_zeros_stay_zeros(optimizer: Literal["adam", "muon"], dtype: torch.dtype) -> None:
    """In the weights, their float32 masters and their average, with momentum and decay; all others learn."""
    model = model_of()
    masks = masks_by_share(model, 0.5)
    for name, weight in model.named_parameters():
        if name in masks:
            weight.data.masked_fill_(~masks[name], 0.0)
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    model = model.to(dtype)
    average = Average(model, 0.9)
    learns = Optimizer(model, OptimConfig(optimizer=optimizer, lr=0.1, weight_decay=0.1))
    learns.keep_zeros(masks)
    for step in range(1, 4):
        for weight in model.parameters():
            weight.grad = torch.randn_like(weight)
        learns.collect()
        learns.step(1.0, 1.0, 1)
        average.update(learns.masters, step)
    for held in (dict(model.named_parameters()), learns.named_masters(), average.weights(frozen=False)):
        for name, mask in masks.items():
            assert not held[name][~mask].any()
            assert (held[name][mask] != before[name][mask].to(held[name].dtype)).float().mean() > 0.5
