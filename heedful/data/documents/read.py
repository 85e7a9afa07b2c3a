"""Reads documents; the suffix of the name determines the kind."""

from collections.abc import Callable, Mapping
from pathlib import Path, PurePath

from heedful.data.documents.encodings import HTML, decoded
from heedful.data.documents.hypertext import hypertext_parts, in_language
from heedful.data.documents.markdown import markdown_parts
from heedful.data.documents.office import docx_document, pptx_document, xlsx_document
from heedful.data.documents.opendocument import opendocument
from heedful.data.documents.passages import Document, Passage, refuse_large
from heedful.data.documents.plain import plain_parts
from heedful.data.documents.po import po_document
from heedful.data.documents.subtitles import subtitles_document
from heedful.data.documents.xliff import xliff_document
from heedful.data.lines import open_file, unreadable
from heedful.errors import InputError

MOST = 1 << 26  # bytes

Reader = Callable[[bytes, str, str], Document]  # arguments: contents, name, target language


def read_document(path: Path, target: str = "") -> Document:
    """Reads a document. `target` is the language of the translation, which some kinds of documents record. Raises
    MissingError or InputError, which say in one line what is wrong with it."""
    if not path.is_dir():  # of which opening fails
        reader_of(str(path))
    try:
        with open_file(path) as file:
            data = file.read(MOST + 1)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None
    return document_in(data, str(path), target)


def document_in(data: bytes, name: str, target: str = "") -> Document:
    """The same from the contents of a file with this name."""
    reader = reader_of(name)
    if len(data) > MOST:
        raise InputError(f"more than {MOST >> 20} MiB", where=name, fix="give it in parts")
    document = reader(data, name, target)
    refuse_large(document.passages, name)
    return document


def reader_of(name: str) -> Reader:
    """The reader for documents with the ending of this name. Raises InputError if there is none."""
    suffix = PurePath(name).suffix
    if suffix.lower() not in READERS:
        what = f"{suffix or 'no ending'} is not the name of a kind of document that is read"
        raise InputError(what, where=name, fix=f"they are {' '.join(READERS)}")
    return READERS[suffix.lower()]


def _plain(data: bytes, where: str, target: str) -> Document:
    text, encode = decoded(data, where)
    return _of_text(plain_parts(text), encode)


def _markdown(data: bytes, where: str, target: str) -> Document:
    text, encode = decoded(data, where)
    parts, notes = markdown_parts(text)
    return _of_text(parts, encode, tuple(notes))


def _html(data: bytes, where: str, target: str) -> Document:
    text, encode = decoded(data, where, says=HTML, references=True)
    parts = [part if isinstance(part, Passage) else in_language(part, target) for part in hypertext_parts(text, "html")]
    return _of_text(parts, encode)


def _of_text(parts: list[str | Passage], encode: Callable[[str], bytes], notes: tuple[str, ...] = ()) -> Document:
    return Document(parts, lambda whole: encode("".join(whole)), notes)


READERS: Mapping[str, Reader] = {
    ".txt": _plain,
    ".md": _markdown,
    ".markdown": _markdown,
    ".html": _html,
    ".htm": _html,
    ".xlf": xliff_document,
    ".xliff": xliff_document,
    ".sdlxliff": xliff_document,  # XLIFF 1.2 with extensions: of Trados,
    ".mqxliff": xliff_document,  # memoQ
    ".mxliff": xliff_document,  # and Phrase
    ".po": po_document,
    ".srt": lambda data, where, _: subtitles_document(data, where, "srt"),
    ".vtt": lambda data, where, _: subtitles_document(data, where, "vtt"),
    ".docx": lambda data, where, _: docx_document(data, where),
    ".pptx": lambda data, where, _: pptx_document(data, where),
    ".xlsx": lambda data, where, _: xlsx_document(data, where),
    ".odt": lambda data, where, _: opendocument(data, where),
    ".ods": lambda data, where, _: opendocument(data, where),
    ".odp": lambda data, where, _: opendocument(data, where),
}
