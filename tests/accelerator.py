"""An accelerator for tests: the machine's own if it has one, otherwise a simulated one, which computes on the CPU, but
rejects operations on tensors of two devices, like CUDA.

The simulated one uses torch's device "lazy", which has no backend here: its gradients are computed in the thread that
asks for them, and nothing is registered, so that other tests are not affected.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache, partial
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

DEVICE = torch.device("lazy:0")
THERE = torch.device("cuda:0") if torch.cuda.is_available() else DEVICE
MOVES = {"_to_copy", "copy_", "_foreach_copy_"}  # between devices
PACKED = {"_pack_padded_sequence", "_pad_packed_sequence", "_pack_padded_sequence_backward"}  # take lengths on the CPU
INDEXED = {"index", "index_put", "index_put_", "_unsafe_index", "_unsafe_index_put"}  # take indices on any device


class Away(Tensor):
    """A tensor of the simulated device; `inner` is the tensor on the CPU that holds its values."""

    inner: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor, requires_grad: bool = False) -> "Away":
        layout: dict[str, Any] = {"strides": inner.stride(), "storage_offset": inner.storage_offset()}
        # Not in inference mode: the wrapper may be a view of one that was made outside.
        with torch.inference_mode(False) if torch.is_inference_mode_enabled() else nullcontext():
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
    """Intercepts every operation, including those that create tensors on the simulated device."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # nothing is compiled here, and the default check takes as long as many an operation

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if Away not in types and not any(map(_is_there, _leaves(args, kwargs))):
            return func(*args, **kwargs)
        rules = _rules(func)
        if rules.composite:  # in inference mode composite operations are not split
            with self:
                return rules.composite(*args, **kwargs)
        return _computed(func, rules, args, kwargs)


@dataclass(frozen=True)
class _Rules:
    """What is checked for an operation, whatever its arguments."""

    name: str
    composite: Callable[..., Any] | None  # its decomposition, if it has one
    free: bool  # may take tensors of both devices
    indexed: bool
    numbers: bool  # may take scalars on the CPU
    drawn: bool  # may take a generator


@cache
def _rules(func: Any) -> _Rules:
    name = func.overloadpacket.__name__
    return _Rules(
        name=name,
        composite=_composite(func),
        free=name in MOVES | PACKED,
        indexed=name in INDEXED,
        numbers=torch.Tag.pointwise in func.tags or name.startswith("_foreach"),
        drawn=any("Generator" in str(argument.type) for argument in func._schema.arguments),
    )


def _composite(func: Any) -> Callable[..., Any] | None:
    if not func._can_decompose():
        return None
    key = torch._C.DispatchKey.CompositeImplicitAutograd
    written = torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), key)  # in C++, as run on an accelerator
    return partial(func._op_dk, key) if written else func.decompose


def _computed(func: Any, rules: _Rules, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Computes the operation, with the result on the device where it would be. Raises RuntimeError for tensors of two
    devices."""
    given = _leaves(args, kwargs)
    tensors = [leaf for leaf in given if isinstance(leaf, Tensor)]
    here = [tensor for tensor in tensors if type(tensor) is not Away]
    target = kwargs.get("device")
    if len(here) < len(tensors) and here and (wrong := _misplaced(rules, args, here)):
        raise RuntimeError(f"{func}: expected all tensors to be on {DEVICE}, but {len(wrong)} are on the CPU")
    goes = len(here) < len(tensors) if target is None else torch.device(target).type == DEVICE.type
    if goes and rules.drawn and any(isinstance(leaf, torch.Generator) for leaf in given):
        raise RuntimeError(f"{func}: expected a generator of {DEVICE}, found one of the CPU")
    words = {key: _bare(value) for key, value in kwargs.items()}
    if target is not None:
        words["device"] = torch.device("cpu") if goes else target
    out = func(*map(_bare, args), **words)
    if not goes:
        return out

    def placed(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        for same in tensors:  # an operation in place returns its argument
            if (same.inner if type(same) is Away else same) is value:
                shapes = (same.shape, same.stride()), (value.shape, value.stride())
                assert shapes[0] == shapes[1], f"{rules.name}: the wrapper has another shape"
                return same
        return Away(value)

    if rules.name in PACKED and isinstance(out, tuple):
        return placed(out[0]), out[1]
    return type(out)(map(placed, out)) if isinstance(out, list | tuple) else placed(out)


def _leaves(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """All arguments of an operation, including the items of lists."""
    found: list[Any] = []
    for value in (*args, *kwargs.values()) if kwargs else args:
        if isinstance(value, list | tuple):
            found.extend(value)
        else:
            found.append(value)
    return found


def _is_there(value: Any) -> bool:
    return isinstance(value, torch.device) and value.type == DEVICE.type


def _bare(value: Any) -> Any:
    """The value, or the list, with each tensor of the simulated device replaced by its tensor on the CPU."""
    if type(value) is Away:
        return value.inner
    return type(value)(map(_bare, value)) if isinstance(value, list | tuple) else value


def _misplaced(rules: _Rules, args: tuple[Any, ...], here: list[Tensor]) -> list[Tensor]:
    """The tensors on the CPU that CUDA would reject in an operation: only scalars may be there, and the indices of an
    indexed tensor."""
    if rules.free:
        return []
    if rules.indexed:
        own, _, *values = args
        return [x for x in (own, *values[:1]) if type(x) is not Away and (x is own or x.dim())]
    return [x for x in here if x.dim()] if rules.numbers else here


def accelerator() -> AbstractContextManager[str]:
    """Within this context, tensors and modules can be on an accelerator, whose name it yields."""
    return nullcontext("cuda") if torch.cuda.is_available() else pretended()


@contextmanager
def pretended() -> Iterator[str]:
    """Within this context, tensors and modules can be on the simulated device, whose name it yields."""
    swaps, lifts = torch.__future__.get_swap_module_params_on_conversion(), torch._C._only_lift_cpu_tensors()
    torch.__future__.set_swap_module_params_on_conversion(True)  # keeps tied weights tied, as on CUDA
    torch._C._set_only_lift_cpu_tensors(True)  # so that tensors made by `torch.tensor` are intercepted when they move
    fused = "torch.optim.optimizer._get_fused_kernels_supported_devices"
    try:
        with mock.patch(fused, return_value=["cpu", DEVICE.type]), _Placed():
            yield DEVICE.type
    finally:
        torch.__future__.set_swap_module_params_on_conversion(swaps)
        torch._C._set_only_lift_cpu_tensors(lifts)
