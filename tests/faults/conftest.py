from collections.abc import Iterator
from pathlib import Path

import pytest

from cases import save_start
from trainer import Trainer


@pytest.fixture(scope="session")
def trainer() -> Iterator[Trainer]:
    trainer = Trainer()
    yield trainer
    trainer.close()


@pytest.fixture(scope="session")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A language model that what is preferred begins with."""
    return save_start(tmp_path_factory.mktemp("begun") / "run")
