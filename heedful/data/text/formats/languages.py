"""Chooses the source and the target among the languages of a file."""

from collections.abc import Sequence

from heedful.data.lines import listed
from heedful.data.text.columns import SOURCE, TARGET
from heedful.data.text.headers import column_of, filled
from heedful.errors import InputError


def two_languages(there: Sequence[str], source: str, target: str, *, where: str) -> tuple[str, str]:
    """Returns the languages that are asked for ("en" matches "en-US" if that is the only English), or else the only
    two, the first as the source. Raises InputError if the choice is not clear."""
    fix = "name two of them: --source en --target de"
    chosen: list[str | None] = []
    for name, unsaid in ((source, SOURCE), (target, TARGET)):
        at = None if name == unsaid else column_of(name, there)
        if name != unsaid and at is None:
            raise InputError(f"no {name!r}; its languages are {listed(there)}", where=where, fix=fix)
        chosen.append(None if at is None else there[at])
    found = filled(chosen, there)
    if found is None:
        raise InputError(f"which two languages? there are {listed(there)}", where=where, fix=fix)
    if found[0] == found[1]:
        raise InputError(f"source and target are both {found[0]!r}", where=where, fix=fix)
    return found
