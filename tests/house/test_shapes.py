"""The annotations of heedful are executed while it is tested."""

import inspect
import random
import sys
from types import FunctionType
from typing import Any, TypeVar

import pytest
import torch
from beartype.roar import BeartypeCallHintViolation
from jaxtyping import Bool, Float, Int, Shaped
from jaxtyping._storage import get_shape_memo

import heedful.core
from heedful.core.attention import attention_weights
from heedful.core.mask import Mask
from heedful.data.text.pairs import Pairs
from shapes import ONE_CALL, axes, fits, in_full

WORDS = ("B", "T", "2", "3", "_", "#B", "#T", "#2", "*B", "*#B", "...", "*_", "_T")


def drawn(chance: random.Random) -> tuple[Any, torch.Tensor]:
    """An annotation and a tensor that may fit it."""
    words = chance.choices(WORDS, k=chance.randint(0, 3))
    few = [word for i, word in enumerate(words) if not i or word[0] not in "*."]  # of all the others one may be named
    sizes, dtype = chance.choices((1, 2, 3), k=chance.randint(0, 3)), chance.choice((torch.float32, torch.int64))
    return chance.choice((Float, Int, Bool, Shaped))[torch.Tensor, " ".join(few)], torch.zeros(sizes, dtype=dtype)


def test_a_glance_at_a_tensor_says_what_jaxtyping_says() -> None:
    chance, glances = random.Random(0), 0
    for _ in range(5000):
        call, found = [drawn(chance) for _ in range(3)], []
        for judge in (fits, in_full):
            with ONE_CALL:
                said = [judge(hint, tensor) for hint, tensor in call]
                found.append((said, *map(dict, get_shape_memo()[:2])))
        assert found[0] == found[1], call
        glances += sum(found[0][0]) if all(axes(hint) for hint, _ in call) else 0
    assert glances > 500


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
