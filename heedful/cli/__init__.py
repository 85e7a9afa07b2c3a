"""The command line: it parses words, calls functions and draws what they yield. torch is imported by the verb."""

import sys
from typing import NoReturn

from heedful.cli import evaluating, exchange, looking, measuring, seeing, training, using  # noqa: F401  # each adds its commands
from heedful.cli.common import app
from heedful.cli.memory import keep_freed_memory
from heedful.errors import HeedError, Interrupted


def main() -> None:
    """Runs a command; what is wrong with the input is one line and an exit code, never a traceback."""
    keep_freed_memory()
    debug = "--debug" in sys.argv
    arguments = [word for word in sys.argv[1:] if word != "--debug"]
    trains = arguments[:1] in (["train"], ["demo"])
    try:
        app(args=arguments, prog_name="heed", standalone_mode=True)
    except Interrupted as error:
        _leave(str(error), error.exit_code)
    except HeedError as error:
        if debug:
            raise
        _fail(error)
    except RuntimeError as error:
        from torch import OutOfMemoryError  # torch is imported already, where it is one

        if debug or not isinstance(error, OutOfMemoryError):
            raise
        fix = "take a smaller train.tokens or images.batch" if trains else "take --device cpu, or a smaller --batch"
        _fail(HeedError("the device has too little memory", fix=fix))
    except KeyboardInterrupt:
        again = "; the same command goes on from the last checkpoint" if trains else ""
        _leave(f"interrupted{again}", 130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(141)


def _fail(error: HeedError) -> NoReturn:
    print(f"error: {error}", file=sys.stderr)
    if error.fix:
        print(f"fix: {error.fix}", file=sys.stderr)
    sys.exit(error.exit_code)


def _leave(words: str, code: int) -> NoReturn:
    print(words, file=sys.stderr)
    sys.exit(code)
