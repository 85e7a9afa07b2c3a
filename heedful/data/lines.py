"""Reads text files: their lines, cells and JSON values, with a clear one-line error for anything that is wrong with
them.

Texts are kept as they are in the file: only line ends (LF or CRLF) and a UTF-8 byte order mark are removed.
"""

import codecs
import csv
import difflib
import errno
import gzip
import io
import json
import lzma
import os
import re
import stat
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import IO, Any

from heedful.errors import HeedError, InputError, MissingError, TextError

PART = 1 << 18  # characters
BETWEEN = re.compile(r"(?<=\S)(?= \S)")  # two words
# How much a packed file may unpack to: so many times its size, and always so many bytes.
MOST_TIMES, ALWAYS_UNPACKED = 100, 1 << 26
HEADERS = 100  # bytes of a zip file for each member, at least
READ_AT_ONCE = 1 << 20  # bytes
NOT_GZIP, CUT_GZIP = "not a gzip file, or damaged", "a gzip file that is cut short"
# What reading a member of a zip file raises: DAMAGED where it is damaged; NOT_READ where it has a password, or an
# unknown compression (NotImplementedError, a subclass).
DAMAGED = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError)
NOT_READ = RuntimeError
PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zstd"}  # by the first bytes
JPEG = b"\xff\xd8\xff"  # the first bytes; other image formats soon have a NUL byte
# What other files are, and what to do with them, by their first bytes; in a zip file, behind the first member's header.
SHEET, PAGES = "save it as .xlsx or .csv", "save its text alone, as .txt"
OTHERS = {
    rb"PK.{28}mimetypeapplication/vnd\.oasis\.opendocument\.spreadsheet": ("an OpenDocument sheet (.ods)", SHEET),
    rb"PK.{28}mimetypeapplication/vnd\.oasis\.opendocument": ("an OpenDocument text or presentation", PAGES),
    rb"PK.{28}mimetypeapplication/epub": ("a book (EPUB)", PAGES),
    rb"PK.*word/document\.xml": ("a Word document", PAGES),
    rb"\xd0\xcf\x11\xe0.*W\0o\0r\0k\0b\0o\0o\0k": ("an old workbook (.xls)", SHEET),
    rb"\xd0\xcf\x11\xe0": ("an old Office file", PAGES),
    rb"%PDF-": ("a PDF", PAGES),
    rb"\{\\rtf": ("Rich Text (.rtf)", PAGES),
}
MARKS = (  # longer marks first: the mark of UTF-32 begins like that of UTF-16
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
MEND_LINE = "most of the other lines are UTF-8: mend this line, or take it out"
LOOKED_AT = 1000  # bytes
LONGEST_LINE = 1_000_000  # characters; a longer one is a broken file, not a document
# Blocks of Unicode that have marks, except of Thai to Burmese and of Khmer, which have no spaces between words.
MARKED = ((0x300, 0xE00), (0x10A0, 0x1780), (0x1800, 0x3100), (0xA600, 0xAC00), (0xFB00, 0xFE30))
# For a class of characters: marks, which `\w` leaves out, and the joiners that Persian and Hindi have within words.
COMBINING = "\u200c\u200d" + "".join(
    character
    for begin, end in MARKED
    for character in map(chr, range(begin, end))
    if unicodedata.category(character).startswith("M")
)


def sanitise(text: str) -> str:
    """Makes text valid for UTF-8: surrogate pairs are joined, lone surrogates become U+FFFD, the rest is unchanged."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def in_parts(text: str) -> Iterator[str]:
    """Cuts a long text before single spaces between words, into parts of about `PART` characters. A tokenizer that was
    trained here reads them as the whole: no token of it spans such a place."""
    begin = 0
    while (place := BETWEEN.search(text, begin + PART)) is not None:
        yield text[begin : place.start()]
        begin = place.start()
    yield text[begin:]


def composed(text: str) -> str:
    """Returns the text in Unicode's NFC, in which a letter and its accent are one character where there is one."""
    return unicodedata.normalize("NFC", text)


def is_composed(text: str) -> bool:
    return unicodedata.is_normalized("NFC", text)


def read_lines(path: str | Path, *, longest: int | None = LONGEST_LINE) -> list[str]:
    """Reads the lines of a file in UTF-8, or in the encoding of its byte order mark. LF ends a line (a CR before it is
    removed), or CR in a file without any LF: U+2028 and U+0085 are text. Raises InputError or MissingError."""
    path = Path(path)
    data = read_bytes(path).removeprefix(codecs.BOM_UTF8)
    if found := next((told for begin, told in OTHERS.items() if re.match(begin, data, re.DOTALL)), None):
        raise InputError(f"{found[0]}, expected text", where=str(path), fix=found[1])
    if marked := next((name for mark, name in MARKS if data.startswith(mark)), None):
        try:
            return text_lines(data.decode(marked), path, longest=longest)
        except UnicodeDecodeError:
            what = f"not {marked}, as its first bytes say"
            raise InputError(what, where=str(path), fix="save the file again, as UTF-8") from None
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        if packed := next((name for mark, name in PACKED.items() if data.startswith(mark)), None):
            fix = f"unpack it first: {packed} -dc {path.name} > {path.stem if path.suffix else 'unpacked'}"
            raise InputError(f"packed by {packed}", where=str(path), fix=fix) from None
        if b"\0" in data[:LOOKED_AT] or data.startswith(JPEG):
            what = "not text, but perhaps a picture or a packed file"
            raise InputError(what, where=str(path), fix="give a file of text in UTF-8") from None
        line, byte = data.count(b"\n", 0, error.start) + 1, error.start - data.rfind(b"\n", 0, error.start)
        fix = f"convert the file from its encoding, for example: iconv -f CP1252 -t UTF-8 {path.name}"
        raise InputError(
            f"byte {byte} of the line (0x{data[error.start]:02x}) is not UTF-8",
            where=f"{path}:{line}",
            fix=MEND_LINE if mostly_utf_8(data) else fix,
        ) from None
    return text_lines(text, path, longest=longest)


def mostly_utf_8(data: bytes) -> bool:
    """Whether more than half of the lines that are not ASCII are UTF-8: then the file is, and the others are faults."""
    lines = [line for line in data.splitlines() if not line.isascii()]
    return 2 * sum(map(_is_utf_8, lines)) > len(lines)


def _is_utf_8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def text_lines(text: str, path: Path, *, longest: int | None = LONGEST_LINE) -> list[str]:
    """Splits the text of a file into lines. Raises InputError for an empty text, a NUL byte, or a line longer than
    `longest`."""
    if not text.strip():
        raise InputError("empty", where=str(path), fix="give a file with one sentence a line")
    if "\0" in text:
        where = f"{path}:{text.count(chr(10), 0, text.index(chr(0))) + 1}"
        raise InputError("a NUL byte, expected text", where=where, fix="save the file as UTF-8 text")
    text = text if "\n" in text else text.replace("\r", "\n")
    lines = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
    if longest is not None and max(map(len, lines)) > longest:
        number = next(number for number, text in enumerate(lines, 1) if len(text) > longest)
        what = f"{len(lines[number - 1]):,} characters in one line, at most {longest:,} are read"
        raise InputError(what, where=f"{path}:{number}", fix="put one sentence, or one document, on each line")
    return lines


def decoded_line(data: bytes, where: str, number: int | None) -> str:
    """Decodes a line that comes alone, without its end, in the way `read_lines` reads those of a file; `number` None:
    it is not one of several lines. Raises TextError, and InputError where no line can be read, as they are UTF-16."""
    if number in (1, None):
        data = data.removeprefix(codecs.BOM_UTF8)
    at, line = (where, "text") if number is None else (f"{where}:{number}", "line")
    fix = "convert it first, for example: iconv -f CP1252 -t UTF-8"
    if number == 1 and data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InputError("UTF-16, expected UTF-8", where=at, fix="convert it first: iconv -f UTF-16 -t UTF-8")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        what = f"byte {error.start + 1} of the {line} (0x{data[error.start]:02x}) is not UTF-8"
        raise TextError(what, where=at, fix=fix) from None
    if "\0" in text:
        raise TextError("a NUL byte, expected text", where=at, fix="give UTF-8 text")
    if number is not None and len(text) > LONGEST_LINE:
        what = f"{len(text):,} characters in one line, at most {LONGEST_LINE:,} are read"
        raise TextError(what, where=at, fix="put one sentence, or one document, on each line")
    return text


def read_bytes(path: Path) -> bytes:
    """Reads a file, or a member of a zip file, and unpacks gzip. Raises MissingError, or InputError: also for a device
    or a pipe, and for what unpacks to more than `most_unpacked`."""
    with opened(path) as (file, most):
        if most is None:
            return file.read()
        data = read_in_parts(file.read, most + 1)
        if len(data) > most:
            fix = "unpack it, and give what is in it"
            raise InputError(f"more than {most:,} bytes when unpacked", where=str(path), fix=fix)
        return data


def read_in_parts(read: Callable[[int], bytes], most: int) -> bytes:
    """Reads at most so many bytes, in parts: a packed file unpacks all that is asked for at once, whatever size it
    says that it has."""
    parts = list[bytes]()
    while most > 0 and (part := read(min(most, READ_AT_ONCE))):
        parts.append(part)
        most -= len(part)
    return b"".join(parts)


def read_beginning(path: Path, most: int) -> bytes:
    """Reads the first `most` bytes of a file, or of a member of a zip file, unpacked if it is gzipped; b"" if it cannot
    be unpacked. Raises MissingError or InputError as `read_bytes`."""
    try:
        with opened(path) as (file, _):
            return file.read(most)
    except InputError as error:
        if error.what in (NOT_GZIP, CUT_GZIP):
            return b""
        raise


@contextmanager
def opened(path: Path) -> Iterator[tuple[IO[bytes] | gzip.GzipFile, int | None]]:
    """Opens a file, or a member of a zip file, unpacked if it is gzipped, and yields it with the most bytes that it may
    unpack to; None if it is not packed."""
    archive = None if os.path.exists(path) else archive_of(path)
    gzipped = path.suffix.lower() == ".gz"
    try:
        if archive is None:
            file: IO[bytes] = open_file(path)
            most = most_unpacked(os.fstat(file.fileno()).st_size) if gzipped else None
        else:
            packed = open_archive(archive)
            member = packed.getinfo(path.relative_to(archive).as_posix())
            file = packed.open(member)
            most = MOST_TIMES * (HEADERS + member.compress_size) if gzipped else member.file_size
        with file, gzip.GzipFile(fileobj=file) if gzipped else nullcontext(file) as unpacked:
            yield unpacked, most
    except gzip.BadGzipFile:
        raise InputError(NOT_GZIP, where=str(path), fix="try gzip -t") from None
    except DAMAGED:
        if archive is None:
            raise InputError(CUT_GZIP, where=str(path), fix="copy it again") from None
        raise InputError("damaged in the zip file", where=str(path), fix="try unzip -t") from None
    except KeyError:
        raise MissingError("no such file in the zip file", where=str(path), fix="check the path") from None
    except NOT_READ:
        what = "packed with a password, or in a way that is not read"
        raise InputError(what, where=str(path), fix="unpack it, and give the folder") from None
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None


def most_unpacked(packed: int) -> int:
    """Returns the most bytes that a file of `packed` bytes may unpack to: text is seldom packed to less than a
    tenth."""
    return max(ALWAYS_UNPACKED, MOST_TIMES * packed)


def packed_size(path: Path) -> int:
    """Returns the size of a file, or what a member takes in its zip file. Raises OSError or InputError."""
    archive = None if os.path.exists(path) else archive_of(path)
    if archive is None:
        return _facts(path).st_size
    return open_archive(archive).getinfo(path.relative_to(archive).as_posix()).compress_size


def open_file(path: Path) -> io.BufferedReader:
    """Opens a file. Raises OSError or InputError as `_facts`."""
    _facts(path)
    return path.open("rb")


def _facts(path: Path) -> os.stat_result:
    """Returns the size of a file and when it was changed. Raises OSError, or InputError for a name that is not UTF-8,
    and for a device, a pipe or a socket, of which opening may wait and reading may never end."""
    facts = path.stat()
    if sanitise(str(path)) != str(path):
        raise InputError("a name that is not UTF-8", where=str(path), fix="rename it: a run records its data by name")
    if stat.S_ISFIFO(facts.st_mode):
        raise InputError("a pipe, which can be read only once", where=str(path), fix="write it into a file first")
    if not stat.S_ISREG(facts.st_mode) and not stat.S_ISDIR(facts.st_mode):
        raise InputError("a device or a socket, expected a file", where=str(path), fix="write it into a file first")
    return facts


def unreadable(path: Path, error: OSError | ValueError) -> HeedError:
    """Makes the error that says in one line why a file could not be read, and how to fix it."""
    where = str(path)
    if isinstance(error, ValueError):  # the only one that a path can cause
        return InputError("a NUL byte, which no path has", where=repr(where), fix="check the path")
    if isinstance(error, FileNotFoundError):
        if path.is_symlink():
            return MissingError("a link to a file that is not there", where=where, fix="mend the link")
        absent = next((part for part in [*reversed(path.parents), path] if not os.path.exists(part)), path)
        near = difflib.get_close_matches(absent.name, names_in(absent.parent), n=1)
        fix = f"did you mean {absent.parent / near[0]}?" if near else "check the path"
        return MissingError("no such file or folder", where=str(absent), fix=fix)
    if isinstance(error, IsADirectoryError):
        return InputError("a folder, expected a file", where=where, fix="give a file inside it")
    if isinstance(error, PermissionError):
        return InputError("no permission to read it", where=where, fix=f"chmod u+r {path.name}")
    if error.errno == errno.ELOOP:
        return InputError("a link that leads back to itself", where=where, fix="give the file itself")
    if error.errno == errno.ENAMETOOLONG:
        return MissingError("a name that is too long", where=f"{where[:80]}...", fix="check the path")
    return InputError(f"cannot be read: {error.strerror}", where=where, fix="check the file and the disk")


def archive_of(path: Path) -> Path | None:
    """Returns the zip file that a path such as `pairs.zip/train.en` leads into, or None."""
    ends = (found.end() - 1 for found in re.finditer(r"[.]zip/", str(path), re.IGNORECASE))
    return next((Path(archive) for end in ends if os.path.isfile(archive := str(path)[:end])), None)


def files_in(path: Path) -> list[Path]:
    """Lists the files in a folder or, as paths below it, in a zip file, without hidden ones. Raises InputError or
    MissingError."""
    try:
        if path.is_dir():
            return sorted(file for file in path.iterdir() if not file.name.startswith("."))
        names = [info.filename for info in open_archive(path).infolist() if not info.is_dir()]
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None
    if outside := next((name for name in names if name.startswith("/") or ".." in name.split("/")), None):
        what = f"a file {outside[:80]!r} in it, which leads out of it"
        raise InputError(what, where=str(path), fix="unpack it, look at it, and give the folder")
    return sorted(path / name for name in names if not re.search(r"(^|/)(\.|__MACOSX/)", name))


def open_archive(path: Path) -> zipfile.ZipFile:
    """Opens a zip file, once for all that is read of it. Raises OSError, or InputError if it is damaged, or says that
    it unpacks to more than `most_unpacked`."""
    facts = _facts(path)
    return _archive(path, facts.st_size, facts.st_mtime_ns)


@lru_cache(maxsize=8)
def _archive(path: Path, size: int, changed: int) -> zipfile.ZipFile:
    return archive_in(path, size, str(path))


def archive_in(file: Path | io.BytesIO, size: int, where: str) -> zipfile.ZipFile:
    """Opens a zip file of `size` bytes. Raises InputError if it is damaged, or says that it unpacks to more than
    `most_unpacked`."""
    try:
        archive = zipfile.ZipFile(file)
    except DAMAGED:
        raise InputError("not a zip file, or damaged", where=where, fix="try unzip -t") from None
    unpacked, most = sum(info.file_size for info in archive.infolist()), most_unpacked(size)
    if unpacked > most:
        archive.close()
        what = f"{unpacked:,} bytes when unpacked, at most {most:,} are read from a zip file of {size:,}"
        raise InputError(what, where=where, fix="unpack it, and give the folder")
    return archive


def names_in(folder: Path) -> list[str]:
    """Returns the names in a folder; an empty list if it cannot be read."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def tsv_cells(lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """Yields the number and the cells of each line; a blank line has no cells."""
    return ((number, line.split("\t") if line.strip() else []) for number, line in enumerate(lines, 1))


def tsv_row(*cells: str) -> str:
    """Makes a line of a table that `tsv_cells` can read: characters that would end a cell or the line become spaces."""
    return "\t".join(" ".join(cell.split("\t")).replace("\r", " ").replace("\n", " ") for cell in cells)


def csv_cells(path: Path, lines: Iterable[str], separator: str = ",") -> Iterator[tuple[int, list[str]]]:
    """Yields the number of the line where each record begins, and its cells. Raises InputError."""
    reader = csv.reader((line + "\n" for line in lines), strict=True, delimiter=separator)
    while True:
        number = reader.line_num + 1  # where the record begins: a quoted cell may span several lines
        try:
            cells = next(reader, None)
        except csv.Error as error:
            fix = 'a quoted cell ends with one ", and a " inside it is written ""'
            raise InputError(f"not CSV: {error}", where=f"{path}:{number}", fix=fix) from None
        if cells is None:
            return
        yield number, cells


def json_line(line: str, *, where: str) -> object:
    """Parses a line of a .jsonl file. Raises InputError."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        at = f" at character {error.pos + 1}" if isinstance(error, json.JSONDecodeError) else ""
        why = "nested too deeply" if isinstance(error, RecursionError) else str(error).partition(": line ")[0]
        raise InputError(f"not JSON{at}: {why}", where=where, fix="one JSON object a line") from None


def json_lines(path: str | Path, lines: Iterable[str]) -> Iterator[tuple[str, object]]:
    """Yields the position and the value of each line of a .jsonl file that is not blank. Raises InputError."""
    positions = ((f"{path}:{number}", line) for number, line in enumerate(lines, 1) if line.strip())
    return ((where, json_line(line, where=where)) for where, line in positions)


def json_items(path: Path) -> list[tuple[str, object]]:
    """Returns the position and the value of each item of a .json file: of a list; of the one list in an object, or of
    its "data"; or, where each line is JSON, of the lines. Raises InputError or MissingError."""
    lines = read_lines(path, longest=None)
    first = next(line.strip() for line in lines if line.strip())
    try:
        whole = json.loads("\n".join(lines))
    except (ValueError, RecursionError) as error:
        if first.startswith("{") and first.endswith("}"):
            return [*json_lines(path, lines)]
        line = error.lineno if isinstance(error, json.JSONDecodeError) else 1
        why = error.msg if isinstance(error, json.JSONDecodeError) else "nested too deeply"
        raise InputError(f"not JSON: {why}", where=f"{path}:{line}", fix="give a list of objects") from None
    if isinstance(whole, dict):
        held = [value for value in whole.values() if isinstance(value, list)]
        whole = whole["data"] if isinstance(whole.get("data"), list) else held[0] if len(held) == 1 else whole
    if not isinstance(whole, list):
        raise InputError(f"{json_type(whole)}, expected a list of objects", where=str(path), fix='[{"en": "...", ...}]')
    if not whole:
        raise InputError("an empty list", where=str(path), fix="give a list of objects")
    return [(f"{path}: item {number}", item) for number, item in enumerate(whole, 1)]


def named_cells(
    path: Path, rows: Iterable[tuple[int, list[str]]], header: Sequence[str]
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yields the position of each row that is not blank, and its cells by the names of their columns. Raises
    InputError."""
    for number, cells in rows:
        if cells and len(cells) != len(header):
            raise InputError(f"{len(cells)} columns, expected {len(header)}", where=f"{path}:{number}")
        if cells:
            yield f"{path}:{number}", dict(zip(header, cells, strict=True))


def json_type(value: object) -> str:
    """Names the type of a JSON value, for messages."""
    kinds = {bool: "true or false", int: "a number", float: "a number", str: "text", list: "a list"}
    return kinds.get(type(value), "null" if value is None else "an object")


def json_object(value: object, where: str, fix: str) -> dict[str, Any]:
    """Returns the value if it is a JSON object. Raises InputError otherwise."""
    if not isinstance(value, dict):
        raise InputError(f"{json_type(value)}, expected an object", where=where, fix=fix)
    return value


def listed(names: Iterable[object]) -> str:
    """Formats the first eight names, for a message."""
    return ", ".join(repr(_short(str(name), 60)) for name in islice(names, 8)) or "none"


def first_few(names: Sequence[str], most: int = 3) -> str:
    """Formats the first `most` names for a message, with "..." for the others."""
    return ", ".join(_short(name, 200) for name in names[:most]) + ", ..." * (len(names) > most)


def _short(name: str, longest: int) -> str:
    return name if len(name) <= longest else f"{name[:longest]}..."


def quoted(text: str) -> str:
    """Quotes a text for a message as Python would, but keeps spaces as they are: French has narrow ones before
    punctuation."""
    mark = '"' if "'" in text and '"' not in text else "'"
    shown = (
        letter if unicodedata.category(letter) == "Zs" else f"\\{mark}" if letter == mark else repr(letter)[1:-1]
        for letter in text
    )
    return f"{mark}{''.join(shown)}{mark}"
