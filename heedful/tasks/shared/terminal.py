"""The terminal: what commands print, and where they write pictures. It imports no torch."""

import getpass
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from heedful.errors import InputError, counted
from heedful.store import files
from heedful.store.refusals import refuse_read

if TYPE_CHECKING:
    from PIL.Image import Image

CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


PEOPLE = "Learn from people"  # a heading of the help
PICTURES: dict[str, Literal["png", "svg"]] = {".png": "png", ".svg": "svg"}  # by suffix


class Command(NamedTuple):
    """A command. Without `help` it has its function's docstring; `group` is its heading in the list of commands."""

    name: str
    run: Callable[..., None]
    help: str | None = None
    group: str = "Use"


def say(text: str) -> None:
    """Prints lines for people to standard error: standard output has only the results."""
    print(printable(text, keep="\n\t"), file=sys.stderr, flush=True)


def refuse_unused(why: str, given: Mapping[str, bool], fix: str = "leave it out") -> None:
    """Raises InputError for the first of these options that was given: it would have no effect."""
    for option, there in given.items():
        if there:
            raise InputError(f"{option} {why}", fix=fix)


def user_name() -> str:
    """Raises InputError where the system does not know it."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        raise InputError("this user has no name here", where="--who", fix="give --who NAME") from None


def tell(record: Mapping[str, Any], plain: str | Iterable[str], *, as_json: bool) -> None:
    """Prints an answer to standard output: its record as a line of JSON, or lines for people."""
    if as_json:
        print(json.dumps(record, ensure_ascii=False), flush=True)
        return
    for line in [plain] if isinstance(plain, str) else plain:
        print(line, flush=True)


def printable(text: str, *, keep: str = "") -> str:
    """Escapes control characters as Python does: those of a name would reach the terminal. For a line with columns,
    TAB and line breaks too; `keep` is what stays."""
    return CONTROL.sub(lambda found: found[0] if found[0] in keep else found[0].encode("unicode_escape").decode(), text)


def on_one_line(text: str) -> str:
    """Escapes the line breaks within a text."""
    return text.replace("\r", "\\r").replace("\n", "\\n")


def expand_escapes(text: str) -> str:
    r"""Turns \n and \t, which a shell passes as two characters each, into the characters that they mean."""
    return text.replace("\\n", "\n").replace("\\t", "\t")


class LineCount:
    """Shows on standard error how much of standard input has been read: if its size is known, standard error is a
    terminal, and the answers go elsewhere."""

    def __init__(self, known: bool) -> None:
        shown = known and sys.stderr.isatty() and not sys.stdout.isatty()
        self.size = os.fstat(0).st_size if shown else 0
        self.drawn = False

    def draw(self, lines: int) -> None:
        if self.size:
            share = min(1.0, os.lseek(0, 0, os.SEEK_CUR) / self.size)
            print(f"{counted(lines, 'line')}, {share:.0%}", end="", file=sys.stderr, flush=True)
            self.drawn = True

    def clear(self) -> None:
        if self.drawn:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self.drawn = False


class OutputFiles:
    """Where drawn pictures are written: one file, or a folder with a file for each. All are checked at once, if the
    pictures are known; `ending` is that of the longest name which is made of a picture's."""

    def __init__(
        self, pictures: Sequence[str] | None, out: Path | None, *, folder: bool = False, ending: str = ".png"
    ) -> None:
        self.out, self.ending, self.files = out, ending, dict[str, Path]()
        self.folder = out is not None and (folder or os.path.isdir(out) or pictures is None or len(pictures) > 1)
        if out is None:
            return
        if self.folder and out.suffix and not os.path.isdir(out):
            raise InputError("not a folder's name", where=str(out), fix="name a folder")
        if not self.folder and out.suffix != ".png":
            raise InputError(f"{out.suffix or 'no suffix'} is not .png", where=str(out), fix="--out found.png")
        if self.folder:
            files.need_access(out)
        self.known = pictures is not None
        for picture in pictures or ():
            self._take(picture)

    def __call__(self, file: str) -> Path:
        """Raises InputError where a picture would be overwritten, and for a second picture of the same name;
        StorageError where nothing can be written."""
        return self.files[file] if self.known else self._take(file)

    def _take(self, file: str) -> Path:
        assert self.out is not None
        place = self.out / f"{Path(file).stem}.png" if self.folder else self.out
        refuse_read(place, [file])
        if self.folder and place in self.files.values():
            raise InputError("two pictures of one name", where=file, fix="do them one by one")
        longest = place.with_name(f"{place.stem}{self.ending}") if self.folder else place
        files.need_output(longest, makes_folder=self.folder)
        self.files[file] = place
        return place


def write_png(place: Path, image: "Image") -> None:
    from heedful.look.sheet import png

    files.make_folder(place.parent)
    files.write_output(place, png(image))
    say(str(place))
