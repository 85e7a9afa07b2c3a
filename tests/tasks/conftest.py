from pathlib import Path

import pytest

from heedful.data.text.corpus import Corpus
from heedful.run.train import train
from heedful.tasks import TASKS
from made import made_corpus, made_recipe


@pytest.fixture(scope="session")
def corpus() -> Corpus:
    return made_corpus()


@pytest.fixture(scope="session")
def translators(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two runs on the same data, by different seeds: one vocabulary, and models that differ."""
    folder = tmp_path_factory.mktemp("translators")
    for name, seed in (("one", 1), ("other", 2)):
        recipe = made_recipe(steps=4, eval_every=4, eval_sentences=4, seed=seed, lr=0.01)
        list(train(TASKS["translate"], recipe, folder / name, corpus=made_corpus(200)))
    return folder / "one", folder / "other"
