"""The command line: parses the arguments, calls the verbs and prints what they yield. Only the verbs import torch."""

import atexit
import errno
import gc
import io
import os
import signal
import sys
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from heedful.cli import (
    compressing,
    data,
    drawing,
    exchange,
    lecture,
    looking,
    measuring,
    planning,
    ranking,
    serving,
    tracing,
    training,
)
from heedful.cli.ending import Ended, Ending
from heedful.cli.help import Left, grouped
from heedful.cli.memory import keep_freed_memory
from heedful.cli.options import with_options
from heedful.errors import HeedError, InputError, Interrupted, MissingError, OtherTaskError, StorageError
from heedful.run.threads import Waits
from heedful.tasks import TASKS
from heedful.tasks.shared.terminal import PEOPLE, Command, printable

# In the order in which users need them. The tasks add commands of their own.
COMMANDS = (
    *(command for row in TASKS.values() if row.commands is not None for command in row.commands()),
    Command("train", with_options(training.train, training.OPTIONS), group="Train"),
    Command("distil", with_options(compressing.distil, compressing.DISTIL_OPTIONS), group="Train"),
    Command("prune", compressing.prune, group="Train"),
    Command("rank", ranking.rank, group=PEOPLE),
    Command("data", data.data, group="Train"),
    Command("plan", planning.plan, group="Train"),
    Command("eval", with_options(measuring.evaluate, measuring.EVAL_OPTIONS), group="Measure"),
    Command("check", measuring.check, group="Measure"),
    Command("restore", measuring.restore, group="Measure"),
    Command("embed", looking.embed),
    Command("look", with_options(looking.look, looking.LOOK_OPTIONS), group="Look inside"),
    Command("draw", drawing.draw, group="Look inside"),
    Command("trace", tracing.trace, group="Look inside"),
    Command("info", measuring.info, group="Look inside"),
    Command("lecture", lecture.lecture, group="Look inside"),
    Command("serve", serving.serve, group="Serve"),
    Command("import", exchange.import_, group="Hand on"),
    Command("export", exchange.export, group="Hand on"),
)
ON_CPU = "DefaultCPUAllocator"  # in torch's error when the CPU's memory is exhausted
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
TRAINING = ("train", "demo", "distil", "prune", "loop")
CONTINUED = (*TRAINING, "back-translate")  # by the same command, however they ended
AGAIN = "interrupted; the same command continues"
FIRST = ("demo", "train", "data", "plan")  # first in their group: what users begin with
GROUPS = {
    heading: tuple(sorted((one.name for one in COMMANDS if one.group == heading), key=lambda name: name not in FIRST))
    for heading in ("Train", "Measure", "Use", PEOPLE, "Look inside", "Serve", "Hand on")
}

app = typer.Typer(
    cls=grouped(GROUPS),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="One attention core, and every transformer family on it: train, measure, use and look inside.",
    epilog="heed COMMAND --help tells the rest of each.",
)
for command in COMMANDS:
    app.command(command.name, help=command.help)(command.run)


def tell_version(asked: bool) -> bool:
    if asked:
        print(f"heedful {metadata.version('heedful')}")
        raise typer.Exit
    return asked


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Tell the version and leave.", callback=tell_version, is_eager=True)
    ] = False,
) -> None:
    """What stands before a command."""


heed = typer.main.get_command(app)


def main() -> None:
    """Runs a command. An error in the input ends it with one line and an exit code, never with a traceback."""
    keep_freed_memory()
    atexit.register(gc.freeze)  # or else the end of the process searches all that was imported for garbage: a second
    debug = "--debug" in sys.argv
    arguments = [word for word in sys.argv[1:] if word != "--debug"]
    if arguments[:1] == ["train"]:
        arguments = training.with_two_files(arguments)
    verb = arguments[0] if arguments else ""
    if sys.stdin is None:  # closed by the parent process: the next file that is opened must not become it
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_RDONLY))
    try:
        _need_current_folder()
        _need_utf_8(arguments)
        with Ending(), Waits():
            _run(arguments)
    except Interrupted as error:
        _leave(str(error), error.exit_code)
    except HeedError as error:
        if debug:
            raise
        if isinstance(error, OtherTaskError):
            from heedful.verbs.use import how_to_use

            with suppress(HeedError):  # for a task that this version does not know
                error.fix = how_to_use(Path(error.where))
        _fail(error)
    except (RuntimeError, MemoryError) as error:
        from torch import OutOfMemoryError  # if it is one, torch is imported already

        of_device = isinstance(error, OutOfMemoryError)
        of_machine = isinstance(error, MemoryError) or ON_CPU in str(error)
        if debug or not (of_device or of_machine):
            raise
        fix = f"take {'--device cpu' if of_device else 'shorter inputs'}, or a smaller --batch"
        fix = "take a smaller train.tokens or images.batch" if verb in TRAINING else fix
        _fail(HeedError(f"the {'device' if of_device else 'machine'} has too little memory", fix=fix))
    except KeyboardInterrupt:
        if verb in CONTINUED:
            _leave(AGAIN, 130)
        sys.exit(130)
    except Ended as ended:
        _leave(AGAIN if verb in CONTINUED else f"{signal.Signals(ended.number).name}: ended", 128 + ended.number)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(141)
    except UnicodeEncodeError as error:
        if debug:
            raise
        if error.encoding == "utf-8":  # a name that was found in a folder
            _fail(InputError(f"a name that is not UTF-8, {error.object[:80]!r}", fix="rename the file"))
        what = f"the output is in {error.encoding}, which has no {error.object[error.start]!r}"
        _fail(InputError(what, fix="PYTHONIOENCODING=utf-8 heed ..."))
    except OSError as error:
        full = error.errno in FULL
        if debug or not (full or error.filename):
            raise
        if full:
            sys.stdout = io.StringIO()  # drops the output that is still to be written
        fix = "free some where the output goes, and in the folder for temporary files" if full else "check the path"
        _fail(StorageError(error.strerror or str(error), where=str(error.filename or ""), fix=fix))


def _need_current_folder() -> None:
    """Raises MissingError if the current folder is gone: libraries would end the process without a message."""
    try:
        os.getcwd()
    except FileNotFoundError:
        raise MissingError("the current folder has been removed", fix="cd into one that is there") from None


def _need_utf_8(arguments: list[str]) -> None:
    """Raises InputError for an argument that cannot be written anywhere, before any work is done for it."""
    for word in arguments:
        try:
            word.encode()
        except UnicodeEncodeError as error:
            byte = ord(word[error.start]) & 0xFF
            what = f"byte {len(word[: error.start].encode()) + 1} of {word[:80]!r} (0x{byte:02x}) is not UTF-8"
            raise InputError(what, fix="rename the file, or give the text in UTF-8") from None


def _run(arguments: list[str]) -> None:
    try:
        heed(args=arguments, prog_name="heed", standalone_mode=True)
    except Left as left:
        raise left.error from None
    finally:
        if sys.stdout is not None:
            sys.stdout.flush()


def _fail(error: HeedError) -> NoReturn:
    print(printable(f"error: {error}"), file=sys.stderr)
    if error.fix:
        print(printable(f"fix: {error.fix}"), file=sys.stderr)
    sys.exit(error.exit_code)


def _leave(words: str, code: int) -> NoReturn:
    with suppress(OSError):  # SIGHUP: the terminal is gone
        print(printable(words), file=sys.stderr)
    sys.exit(code)
