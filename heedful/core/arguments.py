"""Checks the arguments of public functions against their annotations: a value of a wrong type is an error in one line,
instead of one deep inside, or a wrong result."""

import functools
import inspect
import json
import re
import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, Unpack, cast, get_args, get_origin

from heedful.core.config import unknown_key
from heedful.errors import HeedError, InputError

F = TypeVar("F", bound=Callable[..., Any])
WORDS = {str: "string", Path: "path", int: "whole number", float: "number"}
SHOWN = 60  # characters of a value
COMMAND = re.compile(r"heed (?!train\b)[a-z-]+")  # and all that follows
CONTINUES = re.compile(r"heed train(?: [a-z_]+)? --resume --out (\S+)")
RENAMED = {"from": "start_from", "set": "settings"}
SETTING = re.compile(r"(?<![\w-])--set ([a-z_.]+)=([\w.+-]*\w)")
# Perhaps with a value, such as PATH or 10.
OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]*[a-z])(?:[ =]([A-Z0-9][\w.:>]*\w?|cpu))?")


def checks_arguments(function: F) -> F:
    """Makes a function raise InputError for an argument that does not fit its annotation, and for an unknown
    argument."""

    @functools.wraps(function)
    def called(*given: Any, **words: Any) -> Any:
        bound_to(function, given, words)
        return function(*given, **words)

    return cast("F", called)


def names_arguments(keys: Callable[[], Mapping[str, str]]) -> Callable[[F], F]:
    """Makes the errors of a function name its arguments, where they name options of the command line. `keys`: those of
    a recipe, by options that are no arguments."""

    def wrapped(function: F) -> F:
        @functools.wraps(function)
        def called(*given: Any, **words: Any) -> Any:
            try:
                return function(*given, **words)
            except HeedError as error:
                error.reword(lambda text: as_arguments(text, keys()))
                raise

        return cast("F", called)

    return wrapped


def as_arguments(text: str, keys: Mapping[str, str]) -> str:
    """The text with arguments in place of options, such as `minutes=10` and `settings={"train.steps": 3}`. Other
    commands than `heed train` stay as they are."""
    ours, command, other = COMMAND.search(text), "", ""
    if ours is not None:
        text, command, other = text[: ours.start()], ours[0], text[ours.end() :]
    text = CONTINUES.sub(r'heedful.train(TASK, "\1", resume=True)', text)
    text = SETTING.sub(lambda found: f'settings={{"{found[1]}": {_as_python(found[2])}}}', text)
    text = text.replace("heed train", "train")
    return OPTION.sub(lambda found: _as_argument(found[1], found[2] or "", keys), text) + command + other


def _as_argument(option: str, value: str, keys: Mapping[str, str]) -> str:
    """An argument, and what is said of its value, if anything."""
    name = RENAMED.get(option, option.replace("-", "_"))
    if name not in keys:
        return f"{name}={_as_python(value)}" if value else name
    return f'settings={{"{keys[name]}": {_as_python(value)}}}' if value else f'settings["{keys[name]}"]'


def _as_python(value: str) -> str:
    """A value of the command line, or the word in capitals that stands for one, as Python has it."""
    try:
        return repr(json.loads(value))
    except ValueError:
        return value if value.isupper() else json.dumps(value)


def bound_to(
    function: Callable[..., Any], given: Sequence[object], words: Mapping[str, object], *, but: Collection[str] = ()
) -> inspect.BoundArguments:
    """Binds the arguments of a function, and checks them against their annotations, except those named in `but`. Raises
    InputError as described in `checks_arguments`."""
    signature, kinds, settings = _annotations(function)
    known = [name for name in (*signature.parameters, *settings) if name not in ("self", "cls")]
    if settings or not any(each.kind is each.VAR_KEYWORD for each in signature.parameters.values()):
        for name in words:
            if name not in known:
                raise unknown_key(name, known, where=function.__name__, what="argument")
    bound = signature.bind(*given, **words)
    for name, value in bound.arguments.items():
        if name in kinds and name not in but:
            refuse_other(name, value, kinds[name], where=function.__name__)
    for name, kind in settings.items():
        if name in words:
            refuse_other(name, words[name], kind, where=function.__name__)
    return bound


@functools.cache
def _annotations(function: Callable[..., Any]) -> tuple[inspect.Signature, dict[str, Any], dict[str, Any]]:
    """A function's signature, the types of its arguments, and those of its `**settings: Unpack[...]`. Quoted
    annotations are ignored where they name something that is not imported."""
    plain = inspect.unwrap(function)
    try:
        hints = inspect.get_annotations(plain, eval_str=True)
    except NameError:
        hints = {name: kind for name, kind in inspect.get_annotations(plain).items() if not isinstance(kind, str)}
    signature, settings = inspect.signature(function), dict[str, Any]()
    kinds = {name: hints[name] for name in signature.parameters if name in hints}
    for name, kind in [*kinds.items()]:
        if get_origin(kind) is Unpack:
            settings = typing.get_type_hints(*get_args(kinds.pop(name)))
    return signature, kinds, settings


def refuse_other(name: str, value: object, kind: Any, *, where: str = "") -> None:
    """Raises InputError for a value that is not of this type."""
    if not is_a(value, kind):
        shown = " ".join(repr(value).split())
        shown = shown if len(shown) <= SHOWN else f"{shown[:SHOWN]} ..."
        raise InputError(f"{name} is {shown}", where=where, fix=f"give {in_words(kind)}")


def is_a(value: object, kind: Any) -> bool:
    """Whether a value is of this type, as far as that can be checked: the items of iterators are not, and a string does
    not count as a list of strings."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return any(is_a(value, one) for one in inner)
    if origin is Literal:
        return value in inner
    if kind in (int, float):
        return isinstance(value, Integral if kind is int else Real) and not isinstance(value, bool)
    if origin is not None and isinstance(origin, type):
        if not isinstance(value, origin) or isinstance(value, str | bytes):
            return False
        if isinstance(value, Mapping):
            return len(inner) < 2 or all(is_a(key, inner[0]) and is_a(own, inner[1]) for key, own in value.items())
        return not isinstance(value, Collection) or not inner or all(is_a(one, inner[0]) for one in value)
    try:
        return not isinstance(kind, type) or isinstance(value, kind)
    except TypeError:  # a protocol that isinstance does not support
        return True


def in_words(kind: Any) -> str:
    """A type in words: "a string or a list of strings"."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        *most, last = dict.fromkeys(in_words(one) for one in sorted(inner, key=lambda one: one is NoneType))
        return f"{', '.join(most)} or {last}" if most else last
    if origin is Literal:
        return f"one of {', '.join(map(repr, inner))}"
    if kind is NoneType or kind is bool:
        return "True or False" if kind is bool else "None"
    if origin is Callable:
        return "a function"
    if isinstance(origin, type):
        if issubclass(origin, Mapping):
            return "a dict"
        of = in_words(inner[0]).split(" or ")[0].partition(" ")[2] if inner and inner[0] is not Any else ""
        first, _, more = of.partition(" of ")
        return f"a list of {first}s{more and f' of {more}'}" if of else "a list"
    name = WORDS.get(kind, getattr(kind, "__name__", str(kind)))
    return f"{'an' if name[0] in 'AEIOaeio' else 'a'} {name}"
