"""Opens the models that are served."""

from pathlib import Path

from heedful.core.config import unknown_key
from heedful.serve.engine import Engine
from heedful.serve.limits import Limits
from heedful.tasks.load import row_of_model
from heedful.tasks.shared.served import by_library
from heedful.verbs.opened import open_model

ENGINES = ("auto", "own", "ctranslate2", "llama.cpp")


def open_engine(
    run: Path,
    *,
    engine: str = "auto",
    device: str = "cpu",
    weights: str = "float32",
    name: str | None = None,
    limits: Limits | None = None,
) -> Engine:
    """Loads the model in a run's folder. With "auto", CTranslate2 is used for a model on a CPU if it supports it.
    llama.cpp is not chosen: it is faster for one client, but not for many. Raises MissingError, InputError or
    StorageError."""
    if engine not in ENGINES:
        raise unknown_key(engine, [*ENGINES], where="engine")
    served = open_model(run, device=device, weights=weights)
    row, fast, why, used = row_of_model(served), None, "", "own"
    if engine not in ("auto", "own"):
        used = engine
        if row.with_engine is None:
            fast = open_model(run, device=device, engine=engine, weights=weights)
        else:  # it is in the model, beside our own code
            served = row.with_engine()(served, run, engine=engine, weights=weights)
    elif engine == "auto" and device == "cpu" and weights == "float32":
        fast, why = by_library(row, run)
        used = "own" if fast is None else "ctranslate2"
    name = name or run.resolve().name
    return Engine(name, run, row, served, used, fast=fast, why=why, limits=limits)
