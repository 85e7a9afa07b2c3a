"""What went wrong, in one line a person can act on; the command line turns each kind into its exit code."""

import sys
from collections.abc import Callable


class HeedError(Exception):
    """Something that the user can mend: `where` it is, `what` it is, and how to `fix` it, which Python shows below."""

    exit_code = 1

    def __init__(self, what: str, *, where: str = "", fix: str = "") -> None:
        super().__init__(f"{where}: {what}" if where else what)
        self.what, self.where, self.fix = what, where, fix
        if fix:
            self.add_note(f"fix: {fix}")

    def reword(self, reworded: Callable[[str], str]) -> None:
        """Says the same in other words."""
        self.__notes__: list[str] = []
        HeedError.__init__(self, reworded(self.what), where=reworded(self.where), fix=reworded(self.fix))


class InputError(HeedError):
    """The data, an option or a key is not what it must be."""

    exit_code = 2


class OtherTaskError(InputError):
    """A run, whose folder is `where`, is for another task than was asked for."""


class TextError(InputError):
    """One of several texts has no answer, for what it is; the others have theirs."""


class TooLongError(TextError):
    """A text has more tokens than the model can read."""


class TooMuchError(InputError):
    """More is asked for than may be computed for one request."""


class MissingError(HeedError):
    """A file, a run or an optional package is not there."""

    exit_code = 3


class StorageError(HeedError):
    """Reading or writing failed, or what was read does not verify."""

    exit_code = 4


class NonFiniteError(HeedError):
    """A loss, gradient or weight is NaN or infinite."""

    exit_code = 5


class BusyError(HeedError):
    """A model that is served has enough to do; asking again later may help."""


class LateError(HeedError):
    """An answer was not there in time."""


class RankError(HeedError):
    """One of several processes that train together is gone."""


class Interrupted(HeedError):
    """A signal asked the training to leave, and everything is saved."""

    def __init__(self, what: str, *, number: int, where: str = "", fix: str = "") -> None:
        super().__init__(what, where=where, fix=fix)
        self.exit_code = 128 + number


def counted(number: int, what: str) -> str:
    """How many there are, in words: "1 pair", "2,000 pairs", "2 entries"."""
    several = f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"
    return f"{number:,} {what if number == 1 else several}"


def are(number: int) -> str:
    """The verb behind so many: "is" behind one."""
    return "is" if number == 1 else "are"


def pip_install(package: str) -> str:
    """The command that adds a package to the environment that is running."""
    return f"{sys.executable} -m pip install {package}"
