"""What the tests of documents share."""

from collections.abc import Callable
from pathlib import Path

import pytest

from heedful.data.documents.passages import Document
from heedful.data.documents.read import read_document


@pytest.fixture
def read(tmp_path: Path) -> Callable[[str, bytes | str], Document]:
    def make(name: str, data: bytes | str) -> Document:
        path = tmp_path / name
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return read_document(path, "de")

    return make
