import pytest

from heedful.data.text.corpus import Corpus
from made import made_corpus


@pytest.fixture(scope="session")
def corpus() -> Corpus:
    return made_corpus()
