"""A forward pass as hooks see it: nothing is changed, nothing counts twice, nothing is left out."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from heedful.core import EVERYONE, attend
from heedful.look.operations import counter
from heedful.look.passes import ModuleCall, watched
from heedful.look.passes_drawn import Passed, page, picture
from heedful.models import ViTConfig, make_model, preset
from heedful.models.vision_presets import (
    DETECTORS,
    SEGMENTERS,
    VISION_TRANSFORMERS,
    detr_config,
    segformer_config,
    vit_config,
)

TINY = {"d_model": 16, "n_heads": 2, "n_layers": 2}


def gpt() -> nn.Module:
    return make_model(preset("gpt-nano", vocab_size=50, changes=TINY)).eval()


def steps_of(model: nn.Module, *inputs: torch.Tensor) -> list[ModuleCall]:
    with watched(model) as steps:
        model(*inputs)
    return steps


def test_shapes_numbers_and_what_is_tied() -> None:
    model, tokens = gpt(), torch.randint(0, 50, (1, 7))
    steps = steps_of(model, tokens)
    by_name = {step.name: step for step in steps}
    assert by_name["embed.tokens"].reads == ((1, 7),)
    assert by_name["embed.tokens"].gives == (1, 7, 16)
    assert by_name["stack.blocks.1.self_attention.heads"].gives == (1, 2, 7, 8)
    logits = model(tokens)[0, -1]
    torch.testing.assert_close(torch.tensor(by_name["head"].numbers), logits[:4].detach())
    assert by_name["head"].parameters == 0  # the embedding had them
    assert sum(step.parameters for step in steps) == sum(own.numel() for own in model.parameters())
    assert steps[-1].name == "head"


def test_operations_are_those_of_the_products() -> None:
    """2 T N K for each map, and for the heads 2 T S D twice, of which a mask hides half but computes all."""
    T, C = 7, 16
    by_name = {step.name: step.operations for step in steps_of(gpt(), torch.randint(0, 50, (1, T)))}
    assert by_name["stack.blocks.0.self_attention.query"] == 2 * T * C * C
    assert by_name["stack.blocks.0.self_attention.heads"] == 2 * 2 * T * T * C
    assert by_name["stack.blocks.0.mlp.up"] == 2 * T * C * 4 * C
    assert by_name["head"] == 2 * T * C * 50
    assert sum(by_name.values()) == 2 * (2 * T * (4 * C * C + 8 * C * C) + 4 * T * T * C) + 2 * T * C * 50


@pytest.mark.parametrize("gradients", [True, False])
def test_operations_inside_of_a_fused_kernel_are_counted(gradients: bool) -> None:
    q, k, v = torch.randn(3, 2, 4, 5, 8).requires_grad_(gradients)
    with torch.set_grad_enabled(gradients), counter() as counting:
        attend(q, k, v, mask=EVERYONE, scale=1.0)
    assert counting.get_total_flops() == 2 * (2 * 2 * 4 * 5 * 5 * 8)


@pytest.mark.parametrize(
    "config",
    [
        vit_config(VISION_TRANSFORMERS["vit-nano28"], n_classes=3, size=(16, 16)),
        vit_config(VISION_TRANSFORMERS["deit-tiny-distilled"], n_classes=3, size=(32, 32)),
        vit_config(
            replace(VISION_TRANSFORMERS["swin-tiny"], d_model=8, n_heads=2, window=4, depths=(1,)), size=(32, 32)
        ),
        segformer_config(SEGMENTERS["segformer-nano"], n_classes=3),
        detr_config(DETECTORS["detr-nano-affine"], n_classes=3, n_queries=4),
    ],
    ids=["vit", "deit", "swin", "segformer", "detr"],
)
def test_all_parameters_of_a_model_of_pictures_are_counted(config: object) -> None:
    """Of a table of positions too, which is looked up without being called."""
    model = make_model(config).eval()
    steps = steps_of(model, torch.randn(1, config.patches.channels if isinstance(config, ViTConfig) else 3, 32, 32))
    assert sum(step.parameters for step in steps) == sum(own.numel() for own in model.parameters())


def test_the_model_is_as_it_was() -> None:
    model, tokens = gpt(), torch.randint(0, 50, (1, 7))
    before = model(tokens)
    with watched(model):
        inside = model(tokens)
    assert torch.equal(before, inside)
    assert not any(own._forward_hooks or own._forward_pre_hooks for own in model.modules())


def test_a_module_that_is_called_again_counts_its_parameters_once() -> None:
    sizes = dict.fromkeys(("d_embed", "d_align", "d_readout"), 8) | {"d_hidden": 12}
    model = make_model(preset("rnn-small", vocab_size=50, changes=sizes)).eval()
    steps = steps_of(model, torch.randint(0, 50, (1, 4)), torch.randint(0, 50, (1, 3)))
    cells = [step for step in steps if step.name == "cell"]
    assert [bool(step.parameters) for step in cells] == [True, False, False]
    assert len({step.operations for step in cells}) == 1
    assert sum(step.parameters for step in steps) == sum(own.numel() for own in model.parameters())


def test_drawn() -> None:
    steps = steps_of(gpt(), torch.randint(0, 50, (1, 7)))
    passed = Passed("LM: <run>", "a & b", "says c 0.5", steps, 1000, sum(step.operations for step in steps))
    made, drawn = page(passed), picture(passed, dark=True)
    assert "<h1>LM: &lt;run&gt;</h1>" in made
    assert "<script" not in made
    assert made.count("<tr>") == len(steps) + 1
    assert drawn == picture(passed, dark=True)
    assert b"a &amp; b" in drawn
