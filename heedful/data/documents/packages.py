"""Zip files of XML, which office programs write: members are read within bounds, and written back as they were."""

import io
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from textwrap import shorten

from heedful.data.documents.encodings import XML, decoded
from heedful.data.documents.passages import Document, Passage
from heedful.data.lines import DAMAGED, NOT_READ, quoted, read_in_parts
from heedful.data.xml import root_of
from heedful.errors import InputError

MOST_UNPACKED = 1 << 28  # bytes of the unpacked contents
SHOWN = 40  # characters of a paragraph that messages show
LITERAL = re.compile(r'"((?:[^"]|"")*)"')  # a text in a formula
SAVE = "save it again with the program that made it"

Members = Mapping[str, bytes]


def members_of(data: bytes, where: str, kind: str) -> Members:
    """Returns the contents of the members of a zip file by their names. Raises InputError for another file than one of
    this `kind`, a damaged one, or one that unpacks to too many bytes."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            infos = archive.infolist()
            size = sum(info.file_size for info in infos)
            if size > MOST_UNPACKED:
                what = f"{size:,} bytes when unpacked, at most {MOST_UNPACKED:,} are read"
                raise InputError(what, where=where, fix="is it a document? save it again")
            names = [info.filename for info in infos]
            odd = [name for name in names if name.startswith(("/", "\\")) or ".." in re.split(r"[/\\]", name)]
            if odd:
                raise InputError(f"a member {odd[0]!r}, which leads out of it", where=where, fix=SAVE)
            if len(names) != len({*names}):
                raise InputError("two members of one name", where=where, fix=SAVE)
            return {info.filename: _unpacked(archive, info) for info in infos}
    except (*DAMAGED, ValueError, OSError):
        raise InputError(f"no {kind}, or a damaged one", where=where, fix="try unzip -t") from None
    except NOT_READ:
        what = "packed with a password, or in a way that is not read"
        raise InputError(what, where=where, fix="save it without a password") from None


def _unpacked(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    with archive.open(info) as file:
        content = read_in_parts(file.read, info.file_size)
        file.read(1)  # at its end the checksum is compared
        return content


def package_document(
    data: bytes,
    where: str,
    members: Members,
    texts: Iterable[str],
    parts_of: Callable[[str, str], Iterator[str | Passage]],
    *,
    finish: Callable[[Sequence[str]], str] = "".join,
) -> tuple[Document, list[str]]:
    """Makes a document of the members `texts`, of which `parts_of` returns the parts, given their name and text; and
    returns the texts too. `finish` makes a member of its parts. Raises InputError for a text that is not well-formed
    XML."""
    parts: list[str | Passage] = []
    contents: list[str] = []
    pieces: list[tuple[str, Callable[[str], bytes], int, str]] = []
    for name in texts:
        root_of(members[name], f"{where}/{name}")
        read = decoded(members[name], f"{where}/{name}", says=XML, references=True)
        contents.append(read.text)
        own = [*parts_of(name, read.text)]
        as_read = finish([part if isinstance(part, str) else part.raw for part in own])
        pieces.append((name, read.encode, len(own), as_read))
        parts += own

    def written(whole: list[str]) -> bytes:
        changed, begin = dict[str, bytes](), 0
        for name, encode, count, as_read in pieces:
            made = finish(whole[begin : begin + count])
            begin += count
            if made != as_read:
                changed[name] = encode(made)
        return _packed(data, changed) if changed else data

    return Document(parts, written), contents


def _packed(data: bytes, changed: Members) -> bytes:
    """Returns the file with new contents of these members; everything else, and the order, is unchanged."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(made, "w") as new:
        for info in old.infolist():
            new.writestr(info, changed[info.filename] if info.filename in changed else old.read(info.filename))
    return made.getvalue()


def beginning_of(text: str) -> str:
    """Returns the first words of a paragraph, for messages."""
    return quoted(shorten(text, SHOWN, placeholder=" ..."))
