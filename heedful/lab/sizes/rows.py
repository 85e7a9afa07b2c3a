"""Rows of the presets, by the kind that an exhibit is about."""

from heedful.errors import InputError
from heedful.models.presets import TRANSLATORS, TransformerSize


def transformer(name: str) -> TransformerSize:
    """Raises InputError for a preset of another kind."""
    row = TRANSLATORS.get(name)
    if not isinstance(row, TransformerSize):
        raise InputError(f"{name!r} is no Transformer of two stacks", fix="such as transformer-base")
    return row
