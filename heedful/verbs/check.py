"""Checks the laws on the user's own model, each with its figure: those of its task, that saving loses nothing, and that
another engine computes the same."""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from heedful.errors import InputError, MissingError, counted
from heedful.exchange.ctranslate2 import SCORES, unserved
from heedful.run.folder import parameters, write_model
from heedful.run.task import Law, Served, Task
from heedful.store.checkpoint import verify
from heedful.store.files import need_folder
from heedful.tasks.load import row_of_run
from heedful.verbs.saving import beside_weights

ENGINE = "what is exported would be another model"


def check(run: Path, texts: Sequence[str] = (), *, device: str = "cpu") -> Iterator[Law]:
    """Checks the folder and its model, law by law, on `texts` or, without any, on random tokens."""
    need_folder(run)
    folders = sorted(run.glob("checkpoints/step-*"))
    damaged = tuple(f"{path / problem}" for path in folders for problem in verify(path))
    yield Law(
        f"{counted(len(folders), 'checkpoint')} {'verifies' if len(folders) == 1 else 'verify'} (damaged files)",
        float(len(damaged)),
        0.0,
        damaged,
        otherwise="a training could not be continued from there",
    )
    row = row_of_run(run)
    served = row.served().load(run, device=device)
    yield from row.laws()(served, texts)
    yield Law(
        "save then load", _saved_and_loaded(row, run, served), 0.0, otherwise="a copy of the run would be another model"
    )
    yield from _by_ctranslate2(row, run, served if device == "cpu" else row.served().load(run), texts)


def _by_ctranslate2(row: Task, run: Path, served: Served, texts: Sequence[str]) -> Iterator[Law]:
    """The law that CTranslate2 computes the same, or why it was not checked."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "exported"
        try:
            if "ctranslate2" not in row.engines:
                raise unserved(type(served).__name__, run)
            engine = row.engines["ctranslate2"]()
            yield Law("CTranslate2: log-probabilities", engine.export(run, served, folder), SCORES, otherwise=ENGINE)
            yield from engine.laws(folder, served, texts)
        except (InputError, MissingError) as error:
            yield Law("CTranslate2", None, 0.0, (f"not compared: {error.what}",))


def _saved_and_loaded(row: Task, run: Path, served: Served) -> float:
    own = {name: tensor.cpu() for name, tensor in parameters(served.model).items()}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "copy"
        write_model(folder, served.model, own, beside_weights(run))
        other = parameters(row.served().load(folder).model)
    return max(float((own[name] - other[name]).abs().max()) for name in own)
