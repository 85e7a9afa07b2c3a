"""What the tests of files on disks share."""

from collections.abc import Callable

import pytest

from heedful.store import files


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Callable[[files.Disk], None]:
    return lambda disk: monkeypatch.setattr(files, "disk", disk)
