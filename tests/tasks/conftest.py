import pytest

from heedful.data.text.pairs import Corpus
from made import made_corpus


@pytest.fixture(scope="session")
def corpus() -> Corpus:
    return made_corpus()
