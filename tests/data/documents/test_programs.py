"""Documents as the programs write them that people have."""

import io
import re
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from documents import BODY, run, word
from heedful.data.documents.passages import Document, Mark
from heedful.data.documents.read import read_document
from heedful.errors import InputError

Read = Callable[[str, str | bytes], Document]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def make(name: str, data: bytes | str) -> Document:
        path = tmp_path / name
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return read_document(path, "de")

    return make


def texts(document: Document) -> list[str]:
    return [passage.text for passage in document.passages]


def said(document: Document, others: Sequence[str]) -> str:
    """The file with these in place of its passages, the marks of each at its end."""
    each = zip(others, document.passages, strict=True)
    return document.written([other, *passage.marks] for other, passage in each).decode()


def shouted(document: Document) -> str:
    """In capitals, with the marks where they are."""
    placed = ([part if isinstance(part, Mark) else part.upper() for part in each.placed] for each in document.passages)
    return document.written(placed).decode()


def body_of(data: bytes) -> str:
    return zipfile.ZipFile(io.BytesIO(data)).read("word/document.xml").decode()


def test_a_line_of_a_table_of_contents_is_parted_at_its_tab(read: Read) -> None:
    """The number of the page stays in its field, and the words out of it, whatever a translation says."""
    begin, separate, end = (f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>' for kind in ("begin", "separate", "end"))
    code = "<w:r><w:instrText> {} </w:instrText></w:r>"
    page = f"{begin}{code.format('PAGEREF a')}{separate}{run('12')}{end}"
    line = f'<w:hyperlink w:anchor="a">{run("Ba de")}<w:r><w:tab/></w:r>{page}</w:hyperlink>'
    inside = f"<w:p>{begin}{code.format('TOC')}{separate}{line}</w:p><w:p>{line}</w:p><w:p>{end}</w:p>"
    inside += f"<w:p>{run('ko ')}<w:hyperlink>{run('lu')}<w:r><w:br/></w:r>{run('ma')}</w:hyperlink>{run(' ne')}</w:p>"
    own = re.sub("<w:body>.*</w:body>", lambda _: f"<w:body>{inside}</w:body>", BODY, flags=re.DOTALL)
    document = read("a.docx", word(own))
    assert texts(document) == ["Ba de", "12", "Ba de", "12", "ko ", "lu", "ma", " ne"]
    assert not any(passage.marks for passage in document.passages)
    made = body_of(document.written([passage.text.upper()] for passage in document.passages))
    assert re.sub(' xml:space="preserve"', "", made) == re.sub(
        ">(Ba de|ko |lu|ma| ne)<", lambda found: found[0].upper(), re.sub(' xml:space="preserve"', "", own)
    )


HEAD = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset={}\\n"\n\n'


def test_a_backslash_before_an_n_is_no_line_end_of_a_catalogue(read: Read) -> None:
    document = read("a.po", HEAD.format("UTF-8") + 'msgid "ba \\\\\\nlu C:\\\\de\\\\n"\nmsgstr ""\n')
    assert texts(document) == ["ba \\", "lu C:\\de\\n"]
    assert shouted(document).endswith('\nmsgstr ""\n"BA \\\\\\n"\n"LU C:\\\\DE\\\\N"\n')


def test_a_catalogue_as_xgettext_leaves_it_says_what_is_to_be_written_there(read: Read) -> None:
    with pytest.raises(InputError, match="'CHARSET', is not known") as raised:
        read("a.po", HEAD.format("CHARSET") + 'msgid "ba"\nmsgstr ""\n')
    assert "write UTF-8 in its place" in str(raised.value.fix)
