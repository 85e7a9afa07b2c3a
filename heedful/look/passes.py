"""Traces a forward pass with hooks: the input, the output and the cost of each module.

    with watched(model) as steps:
        model(source, target)

The model's output does not change. Operations are torch's own count: for each matrix product and each convolution, a
multiplication and an addition for each of its terms.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence
from torch.utils.flop_counter import FlopCounterMode

from heedful.look.operations import counter

NUMBERS = 4  # of an output's last vector, that are kept
Shape = tuple[int, ...]


@dataclass(frozen=True)
class ModuleCall:
    """One call of one module. `parameters` counts those that no earlier step had, so that tied or reused ones count
    once; `operations` leaves out those of modules inside. `numbers` are the first few of the output's last vector,
    `mean` and `deviation` those of the whole output."""

    name: str
    kind: str
    reads: tuple[Shape, ...]
    gives: Shape
    numbers: tuple[float, ...]
    mean: float
    deviation: float
    parameters: int
    operations: int


@dataclass
class _Watch:
    counter: FlopCounterMode
    steps: list[ModuleCall] = field(default_factory=list)
    open: list[tuple[int, list[int]]] = field(default_factory=list)  # operations before the call, and of its parts
    seen: set[int] = field(default_factory=set)

    def begin(self, module: nn.Module, arguments: tuple[Any, ...]) -> None:
        self.open.append((self.counter.get_total_flops(), []))

    def end(self, name: str, module: nn.Module, arguments: tuple[Any, ...], output: Any) -> None:
        before, parts = self.open.pop()
        spent = self.counter.get_total_flops() - before
        if self.open:
            self.open[-1][1].append(spent)
        fresh = [own for own in module.parameters() if id(own) not in self.seen]  # also of parts that are not called
        self.seen.update(map(id, fresh))
        own, given = spent - sum(parts), _tensor_of(output)
        inner = any(True for _ in module.children())
        read = [tensor for one in arguments if (tensor := _tensor_of(one)) is not None]
        changed = given is not None and all(given is not tensor for tensor in read)
        if given is None or not (own or fresh or (changed and not inner)):
            return
        values = given.detach().float()
        last = values.reshape(-1, values.shape[-1])[-1] if values.ndim else values[None]
        self.steps.append(
            ModuleCall(
                name=name,
                kind=type(module).__name__,
                reads=tuple(tuple(tensor.shape) for tensor in read),
                gives=tuple(given.shape),
                numbers=tuple(last[:NUMBERS].tolist()),
                mean=float(values.mean()),
                deviation=float(values.std(unbiased=False)),
                parameters=sum(parameter.numel() for parameter in fresh),
                operations=own,
            )
        )


@contextmanager
def watched(model: nn.Module) -> Iterator[list[ModuleCall]]:
    """Records the calls of modules inside the `with` block, in the order in which they ended. Calls that compute
    nothing themselves are left out."""
    with torch.no_grad(), counter() as counting:  # so that parts that only serve the gradient are not called
        watch = _Watch(counting)
        handles = []
        for name, module in model.named_modules():
            handles.append(module.register_forward_pre_hook(watch.begin))

            def end(own: nn.Module, arguments: tuple[Any, ...], output: Any, name: str = name) -> None:
                watch.end(name, own, arguments, output)

            handles.append(module.register_forward_hook(end))
        try:
            yield watch.steps
        finally:
            for handle in handles:
                handle.remove()


def _tensor_of(value: Any) -> Tensor | None:
    """The first tensor in a module's input or output; None if there is none."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, PackedSequence):
        return value.data
    if isinstance(value, tuple | list):
        return next((found for each in value if (found := _tensor_of(each)) is not None), None)
    return None
