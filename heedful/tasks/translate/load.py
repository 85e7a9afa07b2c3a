"""Loads translators, with our own search or with another library's."""

from collections.abc import Sequence
from pathlib import Path

from heedful.tasks.shared.served import load_by
from heedful.tasks.translate import TRANSLATE
from heedful.tasks.translate.use import Translator


def load_together(
    runs: Sequence[Path], *, device: str = "cpu", engine: str | None = None, weights: str = "float32"
) -> Translator:
    """The first run's translator, as an ensemble with the others. Raises InputError where their vocabularies differ."""
    first, *others = runs
    translator = load_translator(first, device=device, engine=engine, weights=weights)
    for run in others:
        translator.join(load_translator(run, device=device, weights=weights), name=str(run))
    return translator


def load_translator(
    run: Path, *, device: str = "cpu", engine: str | None = None, weights: str = "float32"
) -> Translator:
    """With "auto", CTranslate2 searches if it supports the model, on a CPU and in float32. Raises InputError for an
    unknown engine, and for one that does not support the device or the weights."""
    translator: Translator = load_by(TRANSLATE, run, device=device, engine=engine, weights=weights)
    return translator
