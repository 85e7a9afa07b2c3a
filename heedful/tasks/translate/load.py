"""A translator from a run's folder, by its own search or by another library's."""

from collections.abc import Sequence
from pathlib import Path

from heedful.core.config import unknown_key
from heedful.errors import InputError
from heedful.tasks.shared.served import own_or_fast
from heedful.tasks.translate import TRANSLATE
from heedful.tasks.translate.use import Translator

ENGINES = ("auto", "own", "ctranslate2")


def load_together(
    runs: Sequence[Path], *, device: str = "cpu", engine: str | None = None, weights: str = "float32"
) -> Translator:
    """The first of the runs, which searches with the others. Raises InputError where their vocabularies differ."""
    first, *others = runs
    translator = load_translator(first, device=device, engine=engine, weights=weights)
    for run in others:
        translator.join(load_translator(run, device=device, weights=weights), name=str(run))
    return translator


def load_translator(
    run: Path, *, device: str = "cpu", engine: str | None = None, weights: str = "float32"
) -> Translator:
    """By "auto" CTranslate2 searches on a CPU, in float32, where it can serve the model. Raises InputError for an
    engine that is not known, or that does not serve this device or such weights."""
    engine = "own" if engine is None else engine
    if engine not in ENGINES:
        raise unknown_key(engine, [*ENGINES], where="engine")
    own: Translator | None = own_or_fast(TRANSLATE, run, device=device, engine=engine, weights=weights)
    if own is not None:
        return own
    if weights != "float32":
        fix = f"heed export RUN --to {engine} --quantize {weights}"
        raise InputError(f"{weights} weights by the engine {engine!r}", where=str(run), fix=fix)
    if device != "cpu":
        raise InputError(f"the engine {engine!r} serves a CPU", where=str(run), fix="leave out the engine")
    from heedful.tasks.translate.exchange.ctranslate2 import load_by_ctranslate2

    return load_by_ctranslate2(run)
