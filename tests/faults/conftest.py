from collections.abc import Iterator

import pytest

from trainer import Trainer


@pytest.fixture(scope="session")
def trainer() -> Iterator[Trainer]:
    trainer = Trainer()
    yield trainer
    trainer.close()
