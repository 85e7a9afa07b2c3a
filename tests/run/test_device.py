"""Which device a word of the command line means, on machines with and without CUDA."""

import pytest
import torch

from heedful.errors import InputError
from heedful.run.device import best_device, chosen_device, known_device


@pytest.fixture
def two_gpus(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)


@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)


@pytest.mark.usefixtures("two_gpus")
def test_where_there_is_cuda():
    assert best_device() == torch.device("cuda")
    words = ("auto", "cpu", "cuda", "cuda:1")
    assert [chosen_device(word) for word in words] == ["cuda", "cpu", "cuda", "cuda:1"]
    assert chosen_device("auto", cpu_only="--weights int8") == chosen_device("cpu", cpu_only="--weights int8") == "cpu"
    with pytest.raises(InputError, match="--weights int8 is for a CPU") as found:
        chosen_device("cuda", cpu_only="--weights int8")
    assert found.value.fix == "leave it out, or take --device cpu"
    with pytest.raises(InputError, match="no cuda:2 is here, but cuda:0 to cuda:1"):
        chosen_device("cuda:2")


@pytest.mark.usefixtures("no_gpu")
def test_where_there_is_none():
    assert best_device() == torch.device("cpu")
    assert [chosen_device(word) for word in ("auto", "cpu")] == ["cpu", "cpu"]
    for word in ("cuda", "cuda:0"):
        with pytest.raises(InputError, match="no CUDA device is here") as found:
            chosen_device(word)
        assert found.value.fix == "take --device cpu"


@pytest.mark.parametrize("word", ["", "gpu", "cpu:0", "CUDA", "cuda:", "cuda:x", "cuda:-1", "meta"])
def test_other_words_are_refused(word):
    with pytest.raises(InputError, match="no device"):
        chosen_device(word)


@pytest.mark.usefixtures("two_gpus")
def test_what_there_is_is_named():
    with pytest.raises(InputError, match="no device 'gpu'") as found:
        chosen_device("gpu")
    assert found.value.fix == "choose auto, cpu, cuda:0, cuda:1"


@pytest.mark.usefixtures("no_gpu")
def test_a_model_in_python_is_put_on_a_device_that_is_here():
    given = ("auto", "cpu", torch.device("cpu"), "cpu:0", "meta")
    assert [known_device(device) for device in given] == ["cpu", "cpu", "cpu", "cpu:0", "meta"]
    for device in ("gpu", "GPU", "", "mps", 0, None, "cuda:x"):
        with pytest.raises(InputError, match="no device") as found:
            known_device(device)
        assert found.value.fix == "choose auto, cpu"
    with pytest.raises(InputError, match="no CUDA device is here"):
        known_device("cuda")
