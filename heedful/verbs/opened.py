"""A run as a model in Python, which has the verbs as methods (`heedful.tasks.shared.opened`)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import nn

from heedful.core.config import from_json
from heedful.errors import HeedError, InputError
from heedful.run.device import Device, known_device
from heedful.run.folder import read_textless_run
from heedful.run.task import Looked, NamedWeights, Served
from heedful.tasks import scoring_options
from heedful.tasks.load import load_model, row_of_model
from heedful.verbs.check import check
from heedful.verbs.evaluate import scored
from heedful.verbs.info import describe_run, headlines
from heedful.verbs.look import KINDS, look_into, weights_of
from heedful.verbs.memory import LABELLED, in_memory, no_single_path, path_in, plain, write_rows
from heedful.verbs.saving import save_trained
from heedful.verbs.use import Directed, ask_each


class Verbs:
    """The verbs that `heedful.load` gives to each model."""

    ask = staticmethod(ask_each)
    check = staticmethod(check)
    facts = staticmethod(describe_run)
    scores = staticmethod(headlines)
    save = staticmethod(save_trained)

    def look(self, served: Served, given: str, kind: str, settings: Mapping[str, object]) -> Looked:
        if kind not in KINDS:
            raise InputError(f"no kind of picture is called {kind!r}", fix=f"choose {', '.join(KINDS)}")
        return look_into(served, given, kind, _look_options(served, settings))

    def attention(self, served: Served, given: str, settings: Mapping[str, object]) -> Mapping[str, NamedWeights]:
        return weights_of(served, given, _look_options(served, settings))

    def evaluate(self, served: Served, data: object, settings: Mapping[str, object]) -> dict[str, dict[str, Any]]:
        data = plain(data)
        if not in_memory(data):
            if isinstance(data, Sequence) and not isinstance(data, str):
                raise no_single_path([*map(str, data)], "test")
            if isinstance(data, str):
                path_in(data, "test")
            return _scores(served, data, settings)
        names, pairs = LABELLED, isinstance(served, Directed)
        if isinstance(served, Directed):  # rows do not say their languages: they are in those that are asked for
            settings = dict(settings)
            way = [str(settings.pop(name, "")) for name in ("from_language", "to")]
            directed = served.directed(*way)
            served, names = directed, directed.languages
        with TemporaryDirectory() as folder:
            written = sorted(write_rows(data, Path(folder), names, only="test").iterdir())
            each = {file.stem: _row_scores(served, file, settings, pairs=pairs) for file in written}
        return {name: scores for name, found in each.items() for scores in found.values()}

    def curve(self, run: Path) -> bytes | None:
        from heedful.run.curve import training_curve  # and matplotlib

        return training_curve(run)

    def trainable(self, run: Path) -> nn.Module:
        with torch.inference_mode(False), torch.enable_grad():  # it will be trained, even if called in no_grad
            model: nn.Module = read_textless_run(run)[0]
        return model.train()


def open_model(
    run: Path, kind: type[Any] = object, *, device: Device = "cpu", engine: str | None = None, weights: str = "float32"
) -> Any:
    """The model of a run, of this class, with its verbs: see `heedful.load`."""
    device = known_device(device, weights=weights, engine=engine)
    model = load_model(run, kind, device=device, engine=engine, weights=weights)
    return model.changed(run=run, verbs=Verbs())


def _scores(served: Served, data: object, settings: Mapping[str, object]) -> dict[str, dict[str, Any]]:
    given = {**({} if data is None else {"data": str(data)}), **settings}
    options = from_json(scoring_options(row_of_model(served)), given, where="evaluate", largest=None)
    return {found.name: found.scores for found in scored(served, options)}


def _row_scores(served: Served, file: Path, settings: Mapping[str, object], *, pairs: bool) -> dict[str, Any]:
    """The scores of rows that were written into a temporary file. Errors name the number of the row instead of the
    file."""
    try:
        return _scores(served, _as_a_test(file) if pairs else file, settings)
    except HeedError as error:
        if not error.where.startswith(str(file.parent)):
            raise
        where = f"data: {file.stem} {error.where.rpartition(file.suffix)[2].removeprefix(':')}".rstrip()
        raise type(error)(error.what, where=where, fix=error.fix.replace(str(file.parent), "here")) from None


def _as_a_test(file: Path) -> Path:
    """Moves the file into a folder as a test set, so that all its pairs are scored."""
    folder = file.with_suffix("")
    folder.mkdir()
    file.rename(folder / f"test{file.suffix}")
    return folder


def _look_options(served: Served, settings: Mapping[str, object]) -> object:
    kind = row_of_model(served).inside.options()
    return from_json(kind, dict(settings), where="look", largest=None)
