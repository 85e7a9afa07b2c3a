"""What the core asks of a device."""

import torch

import heedful.core


def test_float32_is_float32_in_convolutions_and_recurrent_layers_too() -> None:
    assert heedful.core.Attention
    assert not torch.backends.cudnn.allow_tf32
    assert torch.get_float32_matmul_precision() == "highest"
