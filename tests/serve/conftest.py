"""Tiny models that are served."""

import io
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import openai as client
import pytest
import torch
from PIL import Image

from heedful.data.tokenizer import train_tokenizer
from heedful.models.lm import LM
from heedful.models.presets import LMSize, lm_config
from heedful.serve.app import make_app
from heedful.serve.engine import Engine
from heedful.serve.limits import Limits
from heedful.serve.opening import open_engine
from loud import make_loud
from made import made_corpus
from saved import save_run
from serving import hosted, running

NAMES = ("transformer", "rnn", "fill", "tag", "answer", "label", "choice", "parse", "detect", "match")


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    """Of a server of the runs in a module's `folder`."""
    with running(make_app(hosted(*sorted(folder.iterdir())))) as address:
        yield address


@pytest.fixture
def theirs(address: str) -> Iterator[client.OpenAI]:
    """OpenAI's own client of a module's server."""
    with closing(client.OpenAI(base_url=f"{address}/v1", api_key="any", max_retries=0)) as made:
        yield made


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory, run_of: Callable[[str], Path]) -> dict[str, Path]:
    """The folders of models by their names: "writer" says anything, the others have learnt nearly nothing."""
    folder = tmp_path_factory.mktemp("runs")
    for name in NAMES:
        shutil.copytree(run_of(name), folder / name)
    pairs = made_corpus(400).train
    texts = [f"{source} > {target} é😀\n" for source, target in zip(pairs.source, pairs.target, strict=True)]
    torch.manual_seed(4)
    tokenizer = train_tokenizer(texts, kind="bpe", size=330)
    row = LMSize(style="gpt2", n_layers=1, d_model=16, n_heads=2, vocab_size=tokenizer.size, context_length=48)
    model = LM(lm_config(row))
    make_loud(model)
    save_run(folder / "writer", model, tokenizer, tokenizer, {"task": "generate"})
    return {name: folder / name for name in (*NAMES, "writer")}


@pytest.fixture
def opened(runs: dict[str, Path]) -> Iterator[Callable[..., Engine]]:
    """`opened("transformer", ...)` is that model, being served."""
    made: list[Engine] = []

    def open_one(name: str, *, engine: str = "own", limits: Limits | None = None) -> Engine:
        made.append(open_engine(runs[name], engine=engine, limits=limits))
        return made[-1]

    yield open_one
    for one in made:
        one.close()


@pytest.fixture(scope="session")
def picture() -> bytes:
    image = Image.frombytes("RGB", (40, 30), random.Random(0).randbytes(40 * 30 * 3))
    made = io.BytesIO()
    image.save(made, "PNG")
    return made.getvalue()
