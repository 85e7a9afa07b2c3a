"""llama.cpp as the engine of a language model: it gives the numbers of the next token, and all else is done here."""

from pathlib import Path
from typing import TypeVar

from heedful.core.config import unknown_key
from heedful.errors import HeedError, InputError
from heedful.exchange import gguf
from heedful.exchange.ctranslate2 import OURS, made_of
from heedful.exchange.gguf.llama import NAME, Llama, library
from heedful.run.folder import filled_then_renamed
from heedful.store import files
from heedful.store.lock import one_after_another
from heedful.tasks.generate.hub import HUB
from heedful.tasks.generate.use import LanguageModel

L = TypeVar("L", bound=LanguageModel)
ENGINES = ("auto", "own", NAME)


def with_engine(model: L, run: Path, *, engine: str, weights: str) -> L:
    """The model of a run, whose weights are these. With llama.cpp its texts are written by that library, from a file
    that is made once, in the run's folder; with "auto" where it is installed and computes the same numbers, in float32
    on a CPU. Raises InputError, MissingError or StorageError."""
    if engine not in ENGINES:
        raise unknown_key(engine, [*ENGINES], where="--engine")
    on_cpu = model.device.type == "cpu"
    if engine == "own" or (engine == "auto" and not (on_cpu and weights == "float32" and _computes_alike(model))):
        return model
    if not on_cpu:
        raise InputError(f"{NAME} writes on a CPU", where=str(run), fix="leave out the engine, or take --device cpu")
    try:
        library()
        return model.by(Llama(_file(run, weights)))
    except HeedError:
        if engine == NAME:
            raise
        return model


def _computes_alike(model: LanguageModel) -> bool:
    """Of GELU llama.cpp has a table of 16-bit numbers, and YaRN's frequencies are rounded there."""
    layers = model.model.config.stack.layers
    scalings = [layer.attention.position.scaling for layer in layers]
    yarn = any(scaling is not None and scaling.kind == "yarn" for scaling in scalings)
    return not yarn and all(layer.activation == "silu" for layer in layers)


def _file(run: Path, weights: str) -> Path:
    folder = run / f"gguf-{weights}"
    if not _is_of(folder, run):
        with one_after_another(run):
            if not _is_of(folder, run):
                files.remove_tree(folder)
                plain = LanguageModel.load(run)
                with filled_then_renamed(folder) as growing:
                    gguf.write_run(growing, run, plain, HUB, "", weights)
                    about = files.json_bytes({"made_of": made_of(run)}, where=folder / OURS)
                    files.write_bytes(growing / OURS, about)
    return folder / gguf.FILE


def _is_of(folder: Path, run: Path) -> bool:
    return (folder / OURS).is_file() and files.read_json(folder / OURS).get("made_of") == made_of(run)
