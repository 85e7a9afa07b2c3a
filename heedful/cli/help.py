"""The commands in `heed --help`: in groups, each with its whole first sentence; and the end of a command by Ctrl-C."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, runtime_checkable

from typer.core import TyperGroup

LONG = 1000  # characters: a sentence is never cut off, but wrapped


@runtime_checkable
class Formatter(Protocol):
    """The part of click's help formatter that is used here."""

    def section(self, name: str) -> AbstractContextManager[None]: ...
    def write_dl(self, rows: Sequence[tuple[str, str]]) -> None: ...


class Left(Exception):
    """A command was ended by `error`: Ctrl-C, or output that is no longer read. typer would turn these into a message
    and an exit code of its own."""

    def __init__(self, error: KeyboardInterrupt | BrokenPipeError) -> None:
        super().__init__()
        self.error = error


def grouped(groups: Mapping[str, Sequence[str]]) -> type[TyperGroup]:
    """A class of command groups whose help lists the commands under these headings. Calling a command may raise
    Left."""

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
