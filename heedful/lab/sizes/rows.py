"""The sizes of presets that exhibits use."""

from heedful.errors import InputError
from heedful.models.presets import TRANSLATORS, TransformerSize


def transformer(name: str) -> TransformerSize:
    """The size of a Transformer preset. Raises InputError for an unknown preset or one of another kind."""
    row = TRANSLATORS.get(name)
    if not isinstance(row, TransformerSize):
        raise InputError(f"{name!r} is no Transformer of two stacks", fix="such as transformer-base")
    return row
