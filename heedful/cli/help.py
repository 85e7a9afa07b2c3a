"""How `heed --help` lists the commands: in groups, and each with its whole first sentence; and how one is called."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, runtime_checkable

from typer.core import TyperGroup

LONG = 1000  # characters: a sentence is never cut off, but continues in the next line


@runtime_checkable
class Formatter(Protocol):
    """What lays out the help of a command."""

    def section(self, name: str) -> AbstractContextManager[None]: ...
    def write_dl(self, rows: Sequence[tuple[str, str]]) -> None: ...


class Left(Exception):
    """A command was left by Ctrl-C, or because what it writes is not read any more: by `error`, which typer would end
    in words and an exit code of its own."""

    def __init__(self, error: KeyboardInterrupt | BrokenPipeError) -> None:
        super().__init__()
        self.error = error


def grouped(groups: Mapping[str, Sequence[str]]) -> type[TyperGroup]:
    """A group of commands whose help has these headings, and under each the commands of these names. Calling one may
    raise Left."""

    class Grouped(TyperGroup):
        def invoke(self, ctx: Any) -> Any:
            try:
                return super().invoke(ctx)
            except (KeyboardInterrupt, BrokenPipeError) as error:
                raise Left(error) from error

        def format_commands(self, ctx: object, formatter: Formatter) -> None:
            width = max(map(len, self.commands))
            for heading, names in groups.items():
                with formatter.section(heading):
                    formatter.write_dl(
                        [(f"{name:{width}}", self.commands[name].get_short_help_str(LONG)) for name in names]
                    )

    return Grouped
