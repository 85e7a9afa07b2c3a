"""The pretend accelerator itself: it refuses what CUDA refuses, takes what CUDA takes, and leaves nothing behind."""

import numpy
import pytest
import torch
from torch import nn

from accelerator import DEVICE, Away, pretended

REFUSED = {
    "a sum": lambda away, here: away + here,
    "a product": lambda away, here: away @ here,
    "one after another": lambda away, here: torch.cat([away, here]),
    "numbers side by side": lambda away, here: torch.stack([away[0], here[0]]),
    "indices": lambda away, here: here[away.long()],
    "chosen rows": lambda away, here: away.index_select(0, here.long()),
    "what is put in": lambda away, here: away.index_put((here.long(),), here),
    "an embedding": lambda away, here: nn.functional.embedding(here.long(), away[:, None]),
    "a mask": lambda away, here: away.masked_fill(here > 0, 0.0),
    "in place": lambda away, here: here.add_(away),
    "in inference": torch.inference_mode()(lambda away, here: nn.functional.linear(here, away[None])),
    "a generator": lambda away, here: torch.rand(3, device=away.device, generator=torch.Generator()),
    "numpy": lambda away, here: away.numpy(),
    "an array": lambda away, here: numpy.asarray(away),
    "a copy as of data": lambda away, here: torch.tensor(away),
}


@pytest.mark.parametrize("name", REFUSED)
def test_devices_do_not_meet(name):
    with pretended() as device:
        here, away = torch.ones(3), torch.ones(3, device=device)
        with pytest.raises((RuntimeError, TypeError, UserWarning)):
            REFUSED[name](away, here)


@pytest.mark.parametrize("context", [torch.inference_mode, torch.no_grad, torch.enable_grad])
def test_what_may_be_on_the_cpu(context):
    with pretended() as device, context():
        x = torch.tensor([1.0, 2.0, 3.0], device=device)
        made = [torch.arange(3, device=device), torch.as_tensor(1, device=device), torch.ones(3).to(x), x.new_zeros(3)]
        made += [x * torch.tensor(2.0), x[torch.tensor([0, 2])], x.to(device), torch.full_like(x, 1), x.flatten()[1:]]
        assert {tensor.device for tensor in made} == {DEVICE}
        assert all(isinstance(tensor, Away) for tensor in made)
        assert type(x.cpu()) is type(torch.ones(3).copy_(x)) is torch.Tensor
        assert x.tolist() == x.cpu().tolist() == [1.0, 2.0, 3.0]
        assert (float(x.sum()), int(x.argmax()), bool(x[0] == 1)) == (6.0, 2, True)


def test_tied_weights_stay_tied_and_gradients_come_back():
    def gradient(device):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Embedding(5, 4), nn.Linear(4, 5, bias=False))
        model[1].weight = model[0].weight
        model.to(device)
        assert model[0].weight is model[1].weight
        loss = nn.functional.cross_entropy(
            model(torch.tensor([1, 2], device=device)), torch.tensor([2, 3], device=device)
        )
        loss.backward()
        return model[0].weight.grad

    wanted = gradient("cpu")
    with pretended() as device:
        found = gradient(device)
        assert found.device == DEVICE
        torch.testing.assert_close(found.cpu(), wanted)


def test_nothing_is_left_behind():
    before = torch.__future__.get_swap_module_params_on_conversion(), torch._C._only_lift_cpu_tensors()
    with pytest.raises(ZeroDivisionError), pretended():
        raise ZeroDivisionError
    assert (torch.__future__.get_swap_module_params_on_conversion(), torch._C._only_lift_cpu_tensors()) == before
    with pytest.raises(NotImplementedError):
        torch.ones(1, device=DEVICE)
