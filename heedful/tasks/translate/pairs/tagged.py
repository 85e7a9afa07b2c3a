"""Pairs whose data say by a column which kind of translation each is."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from heedful.errors import InputError
from heedful.run.recipe import plain_recipe
from heedful.tasks.translate.use import Translator

Data = TypeVar("Data")
Record = Mapping[str, Any]


def with_tags(translator: Translator, read: Callable[[str], Data]) -> tuple[Data, tuple[str, ...]]:
    """What `read` makes of the data, told of the column of tags that the model was trained with; of none ("") where
    the data has no such column, and then in words what that means."""
    column = plain_recipe(translator.run).get("data", {}).get("tag", "") if translator.run else ""
    if not column or translator.spec.tags is None:
        return read(""), ()
    try:
        return read(column), ()
    except InputError as error:
        found = read("")  # raises again, if that is not all
        default = translator.spec.tagged
        taken = f"{default!r} is asked for, as by default" if default else "no tag is said"
        return found, (f"{error}; {taken}",)


def each_as_tagged(
    translator: Translator,
    answers: Callable[[Translator, Sequence[tuple[str, str]]], Iterable[Record]],
    pairs: Sequence[tuple[str, str, str]],
) -> Iterator[Record]:
    """What is answered of sources and targets with their tags, of each by a translator that was told its own."""
    found: dict[int, Record] = {}
    for tag in dict.fromkeys(tag for *_, tag in pairs):
        rows = [i for i, pair in enumerate(pairs) if pair[2] == tag]
        own = translator.directed(tag=tag)
        found |= zip(rows, answers(own, [pairs[i][:2] for i in rows]), strict=True)
    for i in range(len(pairs)):
        yield found[i]
