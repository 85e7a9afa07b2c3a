"""How many tokens a text may have, and what becomes of those with more."""

from collections.abc import Sequence

from heedful.errors import InputError
from heedful.models.seq2seq import Seq2SeqConfig

Ids = list[int]


def cut_at(sentences: Sequence[Ids], most: int | None) -> tuple[list[Ids], list[int]]:
    """The first `most` tokens of each (None: all), and how many there were beyond."""
    kept = [ids[:most] for ids in sentences]
    return kept, [len(ids) - len(own) for ids, own in zip(sentences, kept, strict=True)]


def most_positions(config: object) -> int | None:
    """How many tokens a source and a target may have, ends included; None where any number."""
    sides = (config.source, config.target) if isinstance(config, Seq2SeqConfig) else ()
    return min((side.context_length for side in sides if side.position_embeddings == "learned"), default=None)


def check_lengths(sentences: Sequence[Ids], positions: int, *, where: str) -> None:
    """Raises InputError where one of them has, with its end, more tokens than a model has positions."""
    most = max(map(len, sentences), default=0) + 1
    if most > positions:
        what = f"a text of {most} tokens, but the model has {positions} positions"
        raise InputError(what, where=where, fix="leave it out, or take a model with more positions")
