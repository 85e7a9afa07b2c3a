"""Dropout with one random byte an element: the chance, the mean, the zeros, and that every byte is used."""

import pytest
import torch

from heedful.core.dropout import Dropout, dropout, rows
from heedful.errors import InputError

COUNT = 400_000


@pytest.mark.parametrize("p", [0.1, 0.25, 0.5, 0.9])
def test_rate_mean_and_zeros(p: float) -> None:
    x = torch.ones(COUNT)
    out = dropout(x, p)
    chance = round(p * 256) / 256
    bound = 5 * (chance * (1 - chance) / COUNT) ** 0.5  # five standard deviations
    assert abs(float((out == 0).float().mean()) - chance) < bound
    assert abs(float(out.double().mean()) - 1) < bound / (1 - chance)
    kept = out[out != 0]
    torch.testing.assert_close(kept, torch.full_like(kept, 1 / (1 - chance)))


def test_every_byte_of_the_random_words_decides_alike() -> None:
    p = 0.25
    lanes = (dropout(torch.ones(COUNT), p) == 0).float().view(-1, 8).mean(0)
    bound = 5 * (p * (1 - p) / (COUNT / 8)) ** 0.5
    assert ((lanes - p).abs() < bound).all()


def test_neighbours_are_independent() -> None:
    dropped = (dropout(torch.ones(COUNT), 0.5) == 0).float() - 0.5
    for step in (1, 2, 4, 7, 8, 16):
        assert abs(float((dropped[:-step] * dropped[step:]).mean()) * 4) < 5 / COUNT**0.5


def test_the_mean_of_any_input_stays() -> None:
    x = torch.randn(8)
    assert torch.allclose(dropout(x.expand(50_000, 8), 0.3).mean(0), x, atol=0.05)


def test_no_chance_is_identity() -> None:
    x = torch.randn(3, 5)
    before = torch.get_rng_state()
    assert dropout(x, 0.0) is x
    assert Dropout(0.5).eval()(x) is x
    assert torch.equal(torch.get_rng_state(), before), "what drops nothing draws nothing"


def test_a_seed_makes_it_again() -> None:
    x = torch.randn(7, 13)
    torch.manual_seed(5)
    first, second = dropout(x, 0.5), dropout(x, 0.5)
    torch.manual_seed(5)
    assert torch.equal(dropout(x, 0.5), first)
    assert not torch.equal(first, second)


def test_rows_that_do_not_divide_are_refused() -> None:
    """Their numbers would be those of the global generator, and depend on what else draws from it."""
    with rows([1, 2]):
        assert dropout(torch.ones(4, 3), 0.5).shape == (4, 3)
        with pytest.raises(InputError, match="each of 2 rows draws its own"):
            dropout(torch.ones(3, 4), 0.5)


def test_the_gradient_passes_where_the_value_did() -> None:
    x = torch.randn(999, requires_grad=True)
    out = dropout(x, 0.4)
    (gradient,) = torch.autograd.grad(out.sum(), x)
    assert torch.equal(gradient == 0, out == 0)
    torch.testing.assert_close(gradient * x, out)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (7,), (9,), (3, 5), (2, 3, 5, 7)])
def test_any_shape(shape: tuple[int, ...]) -> None:
    assert dropout(torch.randn(shape), 0.5).shape == shape


def test_what_is_not_contiguous() -> None:
    x = torch.randn(40, 30).T
    out = dropout(x, 0.5)
    assert torch.equal(out[out != 0], 2 * x[out != 0])
    assert 0.4 < (out == 0).float().mean() < 0.6


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_the_dtype_stays(dtype: torch.dtype) -> None:
    out = dropout(torch.ones(1000, dtype=dtype), 0.5)
    assert out.dtype == dtype
    assert set(out.tolist()) == {0.0, 2.0}


@pytest.mark.parametrize("p", [-0.1, 0.999, 1.0, 1.5])
def test_what_is_no_chance_is_refused(p: float) -> None:
    with pytest.raises(InputError, match=f"dropout with chance {p}"):
        dropout(torch.ones(8), p)


def test_the_module_drops_in_training_only() -> None:
    module, x = Dropout(0.5), torch.ones(1000)
    assert 300 < int((module(x) == 0).sum()) < 700
    assert repr(module) == "Dropout(p=0.5)"
