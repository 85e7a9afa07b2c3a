"""The annotations of heedful are executed while it is tested."""

import inspect
import sys
from contextlib import nullcontext
from types import FunctionType
from typing import TypeVar

import pytest
import torch
from beartype.roar import BeartypeCallHintViolation, BeartypeException
from jaxtyping import Float
from torch import Tensor

import heedful.core
from heedful.core.attention import attention_weights
from heedful.core.mask import Mask
from heedful.data.text.pairs import Pairs
from shapes import checked


def test_a_wrong_shape_a_wrong_type_and_a_letter_of_two_sizes_are_errors() -> None:
    q, k = torch.randn(2, 3, 4, 8), torch.randn(2, 3, 5, 8)
    assert attention_weights(q, k, mask=Mask(), scale=1.0).shape == (2, 3, 4, 5)
    for wrong in (k[0], k[:1], k[..., :4], k.long(), None):
        with pytest.raises(BeartypeCallHintViolation):
            attention_weights(q, wrong, mask=Mask(), scale=1.0)
    with pytest.raises(BeartypeCallHintViolation):
        Mask(valid=torch.ones(2, 3))
    with pytest.raises(BeartypeCallHintViolation):
        Pairs(["one"], "another", "a name")


def test_what_differs_from_an_earlier_call_is_checked_in_every_one() -> None:
    right, wide, whole = torch.ones(3, 2), torch.ones(4, 2), torch.ones(3, 2, dtype=torch.int64)
    returned = [right] * 200 + [wide, right, whole, wide]

    @checked
    def function(x: Float[Tensor, "A B"]) -> Float[Tensor, "A _"]:
        return returned.pop(0)

    given = torch.ones(3, 7)
    for _ in range(200):
        function(given)
    for wrong in (True, False, True, True):
        with pytest.raises(BeartypeException) if wrong else nullcontext():
            function(given)
    for other in (given[0], given.long()):
        with pytest.raises(BeartypeException):
            function(other)


def said(function: FunctionType) -> set[str]:
    """Without what is in quotes, which is not always there at run time, and what stands for any type."""
    return {hint.__name__ for hint in function.__annotations__.values() if not isinstance(hint, str | TypeVar)}


def test_every_function_is_held_to_its_annotations() -> None:
    free = []
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == heedful.__name__:
            classes = [each for each in vars(module).values() if inspect.isclass(each) and each.__module__ == name]
            functions = [each for owner in (module, *classes) for each in vars(owner).values()]
            own = [each for each in functions if inspect.isfunction(each) and each.__module__ == name]
            written = [each for each in own if inspect.getsourcefile(each) == module.__file__]
            loose = [each for each in written if not hasattr(each, "__wrapped__")]
            free += [each.__qualname__ for each in loose if not said(each) <= {"Any", "object"}]
    assert not free
