"""Weights under another project's names: a family has one table of rules, and this engine applies it both ways.

Every tensor on both sides must be accounted for. A name that no rule knows, or that no tensor fills, is an
error and never passed over: a layer that keeps its random weights is found months later, or not at all.
"""

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Literal, TypeVar

import torch
from torch import Tensor

from heedful.errors import InputError

Config = TypeVar("Config")
T = TypeVar("T")


@dataclass(frozen=True)
class Rule:
    """Their tensor is ours. `{i}` in both names stands for the number of a layer.

    Several of theirs may be one of ours: tied matrices, which they store under every name and we under one.
    """

    theirs: str
    ours: str | None  # None: not a weight, we compute it
    # row: theirs is a matrix of one row (or a batch of one), ours that row; token: theirs is a batch of one such;
    # stack: theirs is a batch of matrices, and ours these one below the other
    how: Literal["copy", "transpose", "row", "token", "stack"] = "copy"
    part: tuple[int, int] = (0, 1)  # (i, n): theirs, turned, is n of ours one below the other, and this is the i-th
    unused: int = 0  # theirs begins with so many rows that nothing looks up: left out here, and zeros there
    written: bool = True  # False: a name that old files have, read and never written
    heads: int = 0  # of so many heads' features, theirs has those next to each other that rotate together
    more: float = 0.0  # theirs is ours and so much more


@dataclass(frozen=True)
class Recast(Generic[Config]):
    """Another model that computes the same, which a family can hold where it cannot hold ours."""

    config: Config
    tensors: Callable[[Mapping[str, Tensor]], dict[str, Tensor]]  # its own, by name, of ours

    def then(self, further: "Callable[[Config], Recast[Config]]") -> "Recast[Config]":
        """The same, recast once more."""
        other = further(self.config)
        return Recast(other.config, lambda tensors: other.tensors(self.tensors(tensors)))


def inside(theirs: str, ours: str, names: Mapping[str, str]) -> dict[str, str]:
    """Their names and ours of what is inside a module of theirs and ours."""
    return {f"{theirs}.{their}": f"{ours}.{our}" for their, our in names.items()}


def modules(
    names: Mapping[str, str], how: Literal["copy", "transpose"] = "copy", *, kinds: Sequence[str] = ("weight", "bias")
) -> Iterator[Rule]:
    """The weights and biases of linear maps and norms."""
    return (Rule(f"{theirs}.{kind}", f"{ours}.{kind}", how) for theirs, ours in names.items() for kind in kinds)


def within(part: str, rules: Iterable[Rule]) -> Iterator[Rule]:
    """The rules of a model that is this part of ours."""
    return (rule if rule.ours is None else replace(rule, ours=f"{part}.{rule.ours}") for rule in rules)


def always(value: T) -> Callable[[object], T]:
    """The same for all models of a family: its rules, or the class that loads them."""
    return lambda config: value


def to_ours(
    rules: Iterable[Rule], theirs: Mapping[str, Tensor], wanted: Mapping[str, Tensor], *, where: str = ""
) -> dict[str, Tensor]:
    """Their tensors under our names. `wanted` are our model's own, by name: what must come out, in which shapes.

    Raises InputError for a tensor on either side that is not accounted for, a shape that is not the wanted one, or
    tied matrices that differ.
    """
    rules, found = list(rules), dict[str, Tensor]()
    for name, tensor in theirs.items():
        matches = [(rule, layer) for rule in rules if (layer := layer_of(rule.theirs, name)) is not None]
        if not matches:
            fix = "take a model of this family without that part, and train one of your own --from it"
            raise InputError(
                f"no rule for their tensor {name!r}, which is of a part that is not read", where=where, fix=fix
            )
        for rule, layer in matches:
            if rule.ours is None:
                continue
            ours, value = rule.ours.replace("{i}", layer), _turn(rule, tensor, back=False)
            i, n = rule.part
            value = value if n == 1 else value.chunk(n)[i]
            value = value[rule.unused :] if rule.unused else value
            if ours not in wanted:
                raise InputError(f"their tensor {name!r} would be our {ours!r}, which the model has not", where=where)
            if value.shape != wanted[ours].shape:
                shapes = f"has shape {tuple(tensor.shape)}, our {ours!r} {tuple(wanted[ours].shape)}"
                raise InputError(f"their tensor {name!r} {shapes}", where=where)
            if ours in found and not found[ours].equal(value):
                raise InputError(f"their tensor {name!r} differs from another that is our {ours!r} too", where=where)
            found[ours] = value
    missing = sorted(wanted.keys() - found.keys())
    if missing:
        raise InputError(f"nothing of theirs for our tensor {missing[0]!r} ({len(missing)} in all)", where=where)
    return found


def to_theirs(rules: Iterable[Rule], ours: Mapping[str, Tensor], *, where: str = "") -> dict[str, Tensor]:
    """Our tensors under their names, tied matrices under every one. Raises InputError for a tensor without a rule, or
    a rule without a tensor."""
    found, parts = dict[str, Tensor](), dict[str, dict[int, tuple[Rule, Tensor]]]()
    unused = [rule for rule in rules if rule.ours is not None and rule.written]
    rules = list(unused)
    for name, tensor in ours.items():
        matches = [(rule, layer) for rule in rules if rule.ours and (layer := layer_of(rule.ours, name)) is not None]
        if not matches:
            raise InputError(f"no rule for our tensor {name!r}", where=where)
        for rule, layer in matches:
            parts.setdefault(rule.theirs.replace("{i}", layer), {})[rule.part[0]] = (rule, tensor)
        unused = [rule for rule in unused if rule not in [match for match, _ in matches]]
    if unused:
        raise InputError(f"nothing of ours for their tensor {unused[0].theirs!r}", where=where)
    for name, own in parts.items():
        whole = torch.cat([own[i][1] for i in range(len(own))]) if len(own) > 1 else own[0][1]
        rule = own[0][0]
        whole = torch.cat([whole.new_zeros(rule.unused, *whole.shape[1:]), whole]) if rule.unused else whole
        found[name] = _turn(rule, whole, back=True)
    return found


def layer_of(pattern: str, name: str) -> str | None:
    """The layer's number in `name`, "" where the pattern has none; None where the name is another."""
    match = _pattern(pattern).fullmatch(name)
    return None if match is None else "".join(match.groups())


@functools.cache
def _pattern(written: str) -> re.Pattern[str]:
    return re.compile(re.escape(written).replace(r"\{i\}", r"(\d+)"))


def _turn(rule: Rule, tensor: Tensor, *, back: bool) -> Tensor:
    if rule.more:
        tensor = tensor + (rule.more if back else -rule.more)
    if rule.heads:
        sizes = (2, -1) if back else (-1, 2)
        tensor = tensor.unflatten(0, (rule.heads, *sizes)).transpose(1, 2).flatten(0, 2)
    match rule.how:
        case "copy":
            return tensor
        case "transpose":
            return tensor.mT.contiguous() if tensor.dim() == 2 else tensor
        case "row":
            return tensor.unsqueeze(0) if back else tensor.squeeze(0)
        case "token":
            return tensor[None, None] if back else tensor.squeeze(0).squeeze(0)
        case "stack":
            return tensor.unflatten(0, (rule.part[1], -1)) if back else tensor.flatten(0, 1)
