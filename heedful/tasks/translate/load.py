"""A translator from a run's folder, by its own search or by another library's."""

from collections.abc import Sequence
from pathlib import Path

from heedful.tasks.shared.served import load_by
from heedful.tasks.translate import TRANSLATE
from heedful.tasks.translate.use import Translator


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
    translator: Translator = load_by(TRANSLATE, run, device=device, engine=engine, weights=weights)
    return translator
