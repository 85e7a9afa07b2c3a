"""Blocks computed twice: the same numbers and gradients to the last bit, and less that is kept."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks

import heedful
from heedful.apply.checkpointed import checkpoint_blocks
from heedful.core import dropout
from heedful.errors import InputError
from heedful.models import make_model
from heedful.models.presets import LMSize, TransformerSize, lm_config, translator_config

SIZES: dict[str, Any] = {"d_model": 32, "n_heads": 4, "dropout": 0.3}
BOTH = TransformerSize(d_ff=64, encoder_layers=3, decoder_layers=3, order="pre", **SIZES)
CONFIGS = {
    "decoder": (lm_config(LMSize(n_layers=4, vocab_size=37, context_length=24, **SIZES)), 1),
    "both": (translator_config(BOTH, source_vocab=37, target_vocab=37, joint=True), 2),
}


def trained(model: nn.Module, inputs: list[Tensor], *, by_rows: bool) -> tuple[Tensor, list[Tensor], int]:
    """What comes out, the gradients, and how many numbers were kept for them."""
    kept: set[int] = set()
    count = 0

    def keep(saved: Tensor) -> Tensor:
        nonlocal count
        if saved.untyped_storage().data_ptr() not in kept:
            kept.add(saved.untyped_storage().data_ptr())
            count += saved.numel()
        return saved

    torch.manual_seed(3)
    seeds = range(len(inputs[0])) if by_rows else ()
    with saved_tensors_hooks(keep, lambda saved: saved), dropout.rows(seeds):
        out = model(*inputs)
    out.square().sum().backward()  # outside of the block, as a training's is
    return out, [parameter.grad for parameter in model.parameters() if parameter.grad is not None], count


@pytest.mark.parametrize("by_rows", [True, False])
@pytest.mark.parametrize("name", CONFIGS)
def test_the_same_to_the_last_bit_from_less(name: str, by_rows: bool) -> None:
    config, count = CONFIGS[name]
    plain = make_model(config).train()
    other = copy.deepcopy(plain)
    checkpoint_blocks(other)
    assert [*other.state_dict()] == [*plain.state_dict()]
    inputs = [torch.randint(1, 37, (3, 11)) for _ in range(count)]
    first, second = (trained(model, inputs, by_rows=by_rows) for model in (plain, other))
    assert torch.equal(first[0], second[0])
    assert len(first[1]) == len(second[1])
    assert all(map(torch.equal, first[1], second[1]))
    assert second[2] < 0.5 * first[2]
    with torch.no_grad():
        assert torch.equal(plain.eval()(*inputs), other.eval()(*inputs))


def test_what_rows_draw_is_drawn_again_and_changes_nothing_after() -> None:
    x = torch.ones(4, 64)
    with dropout.rows(range(4)):
        dropout.dropout(x, 0.5)
        again = dropout.drawn_again()
        first = dropout.dropout(x, 0.5)
        with again:
            assert torch.equal(dropout.dropout(x, 0.5), first)
        after = dropout.dropout(x, 0.5)
    with dropout.rows(range(4)):
        wanted = [dropout.dropout(x, 0.5) for _ in range(3)]
    assert torch.equal(wanted[1], first)
    assert torch.equal(wanted[2], after)


def test_a_training_is_the_same_to_the_last_bit(tmp_path: Any) -> None:
    text = tmp_path / "text.txt"
    text.write_text("the cat sat on the mat and the dog ran.\n" * 40)
    settings = ["train.steps=3", "train.precision=fp32", "model.n_layers=2", "model.d_model=32", "model.n_heads=2"]
    settings += ["model.dropout=0.2", "model.context_length=32", "data.vocab_size=300", "train.tokens=256"]
    runs = [tmp_path / "plain", tmp_path / "twice"]
    for run, own in zip(runs, ([], ["train.checkpointing=true"]), strict=True):
        heedful.train("generate", run, data=text, settings=[*settings, *own])
    one, two = (run / "model.safetensors" for run in runs)
    assert one.read_bytes() == two.read_bytes()


def test_compiled_as_well_is_refused(tmp_path: Any) -> None:
    text = tmp_path / "text.txt"
    text.write_text("the cat sat on the mat and the dog ran.\n" * 40)
    settings = ["train.compile=true", "train.checkpointing=true", "train.steps=1"]
    with pytest.raises(InputError, match=r"train\.compile and train\.checkpointing"):
        heedful.train("generate", tmp_path / "run", data=text, settings=settings)
