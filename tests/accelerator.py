"""An accelerator: the machine's own where it has one, else a pretend one, which computes on the CPU, and where tensors
of two devices never meet, as with CUDA.

The pretend one borrows torch's device "lazy", which nothing stands behind here: gradients on it are computed in the
thread that asks for them, and nothing is registered, so that tests beside do not notice.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

DEVICE = torch.device("lazy:0")
THERE = torch.device("cuda:0") if torch.cuda.is_available() else DEVICE
MOVES = {"_to_copy", "copy_", "_foreach_copy_"}  # from one device to another
PACKED = {"_pack_padded_sequence", "_pad_packed_sequence", "_pack_padded_sequence_backward"}  # with lengths on the CPU
INDEXED = {"index", "index_put", "index_put_", "_unsafe_index", "_unsafe_index_put"}  # by indices from any device


class Away(Tensor):
    """A tensor of the pretend device; `inner` is the one on the CPU that stands for it."""

    inner: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor, requires_grad: bool = False) -> "Away":
        layout: dict[str, Any] = {"strides": inner.stride(), "storage_offset": inner.storage_offset()}
        with torch.inference_mode(False):  # the wrapper may be a view of one that was made outside
            made = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device=DEVICE, **layout)
        made.inner = inner.inner if isinstance(inner, Away) else inner
        return made

    def __init__(self, inner: Tensor, requires_grad: bool = False) -> None: ...

    def __repr__(self, **words: Any) -> str:
        return f"Away({self.inner})"

    def tolist(self) -> Any:
        return self.inner.tolist()

    def data_ptr(self) -> int:
        return self.inner.data_ptr()

    def numpy(self, **words: Any) -> Any:
        raise TypeError("can't convert a tensor of an accelerator to numpy. Use Tensor.cpu() first")

    def __array__(self, *words: Any) -> Any:
        return self.numpy()

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with _Placed():
            return func(*args, **(kwargs or {}))


class _Placed(TorchDispatchMode):
    """Sees every operation, those that make something on the pretend device out of nothing too."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        leaves = _leaves(args, kwargs)
        if not any(map(_concerned, leaves)):
            return func(*args, **kwargs)
        if _is_composite(func):  # in inference mode what consists of others comes as a whole
            with self:
                return func.decompose(*args, **kwargs)
        return _computed(func, args, kwargs)


@cache
def _is_composite(func: Any) -> bool:
    return bool(func._can_decompose())


def _computed(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What the operation gives, on the device where it would be. Raises RuntimeError where two devices meet."""
    given = _leaves(args, kwargs)
    tensors = [leaf for leaf in given if isinstance(leaf, Tensor)]
    away = [tensor for tensor in tensors if isinstance(tensor, Away)]
    target = kwargs.get("device")
    name = func.overloadpacket.__name__
    if away and (wrong := _misplaced(func, args, kwargs)):
        raise RuntimeError(f"{func}: expected all tensors to be on {DEVICE}, but {len(wrong)} are on the CPU")
    goes = bool(away) if target is None else torch.device(target).type == DEVICE.type
    if goes and any(isinstance(leaf, torch.Generator) for leaf in given):
        raise RuntimeError(f"{func}: expected a generator of {DEVICE}, found one of the CPU")
    if target is not None:
        kwargs = kwargs | {"device": torch.device("cpu") if goes else target}
    words = {key: _each(_inner, value) for key, value in kwargs.items()}
    out = func(*(_each(_inner, value) for value in args), **words)
    known = {id(_inner(tensor)): tensor for tensor in tensors}  # an operation in place hands back what it was given

    def placed(value: Any) -> Any:
        if not isinstance(value, Tensor) or not goes:
            return value
        same = known.get(id(value))
        if same is None:
            return Away(value)
        assert (same.shape, same.stride()) == (value.shape, value.stride()), f"{name}: the wrapper has another shape"
        return same

    return (placed(out[0]), out[1]) if name in PACKED and isinstance(out, tuple) else _each(placed, out)


def _leaves(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """All that an operation is given, out of the lists that it is in."""
    found: list[Any] = []
    for value in (*args, *kwargs.values()):
        found.extend(value if isinstance(value, list | tuple) else (value,))
    return found


def _each(function: Callable[[Any], Any], value: Any) -> Any:
    """The value with the function applied to each leaf of its lists."""
    return type(value)([function(leaf) for leaf in value]) if isinstance(value, list | tuple) else function(value)


def _concerned(value: Any) -> bool:
    return isinstance(value, Away) or (isinstance(value, torch.device) and value.type == DEVICE.type)


def _inner(value: Any) -> Any:
    return value.inner if isinstance(value, Away) else value


def _misplaced(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
    """The tensors on the CPU that CUDA would not let an operation on its own take: numbers alone may be there, and of
    an indexed tensor the indices."""
    name = func.overloadpacket.__name__
    if name in MOVES | PACKED:
        return []
    if name in INDEXED:
        own, _, *values = args
        return [x for x in (own, *values[:1]) if not isinstance(x, Away) and (x is own or x.dim())]
    here = [x for x in _leaves(args, kwargs) if isinstance(x, Tensor) and not isinstance(x, Away)]
    if torch.Tag.pointwise in func.tags or name.startswith("_foreach"):
        return [x for x in here if x.dim()]
    return here


def accelerator() -> AbstractContextManager[str]:
    """Within it tensors and modules can be on an accelerator, which has the name that it gives."""
    return nullcontext("cuda") if torch.cuda.is_available() else pretended()


@contextmanager
def pretended() -> Iterator[str]:
    """Within it tensors and modules can be on the pretend device, which has the name that it gives."""
    swaps, lifts = torch.__future__.get_swap_module_params_on_conversion(), torch._C._only_lift_cpu_tensors()
    torch.__future__.set_swap_module_params_on_conversion(True)  # keeps tied weights tied, as CUDA does
    torch._C._set_only_lift_cpu_tensors(True)  # what `torch.tensor` makes of numbers is seen when it moves
    fused = "torch.optim.optimizer._get_fused_kernels_supported_devices"
    try:
        with mock.patch(fused, return_value=["cpu", DEVICE.type]), _Placed():
            yield DEVICE.type
    finally:
        torch.__future__.set_swap_module_params_on_conversion(swaps)
        torch._C._set_only_lift_cpu_tensors(lifts)
