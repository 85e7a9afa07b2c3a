"""One in, one out; a list in, a list out: the convention of all methods that take texts or pictures. So a single string
is never taken for a list of letters.

Type variables: the input A, the result R, the model S.
"""

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast, get_args, overload

from heedful.core.arguments import bound_to, refuse_other
from heedful.errors import InputError, counted

S = TypeVar("S")
A = TypeVar("A")
R = TypeVar("R")
P = ParamSpec("P")


class OneOrMany(Generic[A, P, R]):
    """The type of such a method, for its caller."""

    @overload
    def __call__(self, given: A, /, *more: P.args, **words: P.kwargs) -> R: ...
    @overload
    def __call__(self, given: Sequence[A], /, *more: P.args, **words: P.kwargs) -> list[R]: ...
    def __call__(self, given: Any, /, *more: Any, **words: Any) -> Any: ...


class Method(Generic[S, A, P, R]):
    def __get__(self, model: S | None, kind: type) -> OneOrMany[A, P, R]: ...  # type: ignore[empty-body]


def one_or_many(
    *beside: str,
) -> Callable[[Callable[Concatenate[S, Sequence[A], P], Sequence[R]]], Method[S, A, P, R]]:
    """Decorates a method that takes a list, so that it also takes a single input (a string, a path, or anything that is
    no list), and then returns a single result. `beside` names arguments that have an entry for each input. The method
    raises InputError for an input that is no string where texts are read, or no path where pictures are, and where the
    entries of `beside` are not as many as the inputs."""

    def decorate(method: Callable[Concatenate[S, Sequence[A], P], Sequence[R]]) -> Method[S, A, P, R]:
        signature = inspect.signature(method)
        _, first, *_ = signature.parameters
        of_texts = signature.parameters[first].annotation == Sequence[str]
        (kind,) = get_args(signature.parameters[first].annotation)
        paths = get_args(kind) if first == "files" else ()

        @functools.wraps(method)
        def called(*given: Any, **words: Any) -> Any:
            bound = bound_to(method, given, words, but=(first, *beside))
            for one in listed(bound.arguments[first]) if of_texts else ():
                if not isinstance(one, str):
                    raise InputError(f"{method.__name__}: {one!r} is no text", fix="give a string, or a list of them")
            for one in listed(bound.arguments[first]) if paths else ():
                if not isinstance(one, paths):
                    fix = "give the path of a picture, or a list of them; one that is in memory is to be saved first"
                    raise InputError(f"{method.__name__}: a {type(one).__name__} is no path", fix=fix)
            alone = is_one(bound.arguments[first])
            for name in (first, *beside) if alone else ():
                if name in bound.arguments and bound.arguments[name] is not None:
                    bound.arguments[name] = [bound.arguments[name]]
            count = len(bound.arguments[first])
            for name in beside:
                own = bound.arguments.get(name)
                if name in bound.arguments and own is None:
                    refuse_other(name, own, signature.parameters[name].annotation, where=method.__name__)
                lists = signature.parameters[name].annotation == Sequence[Sequence[str]]
                wrong = is_one if lists else _is_no_text
                if own and (isinstance(own, str) or len(own) != count or any(map(wrong, own))):
                    what = f"{method.__name__}: the {name} are not {'a list of texts' if lists else 'one'} for each"
                    raise InputError(what, fix=f"give as many as there are {first}, {count:,}")
            found = method(*bound.args, **bound.kwargs)
            return found[0] if alone else found

        return cast("Method[S, A, P, R]", called)

    return decorate


def refuse_other_count(name: str, own: Sequence[object], texts: Sequence[str]) -> None:
    """Raises InputError where there are entries, but not one for each text."""
    if own and len(own) != len(texts):
        what = f"{len(own):,} {name} for {counted(len(texts), 'text')}"
        raise InputError(what, fix=f"give one of {name} for each text, or one for all as {name.removesuffix('s')!r}")


def is_one(given: object) -> bool:
    """Whether it is a single input: a string, a path, a picture."""
    return isinstance(given, str) or not isinstance(given, Sequence)


def _is_no_text(given: object) -> bool:
    return not isinstance(given, str)


def listed(given: A | Sequence[A]) -> Sequence[A]:
    """A single input as a list; a list as it is."""
    return cast("Sequence[A]", [given] if is_one(given) else given)
