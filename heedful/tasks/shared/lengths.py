"""How many tokens a text may have, and what happens to longer ones."""

import inspect
import warnings
from collections.abc import Sequence

from heedful.data.lines import quoted
from heedful.data.tokenizer import Ids
from heedful.errors import InputError, TextError, counted
from heedful.models.seq2seq import Seq2SeqConfig


def at_most(ids: Ids, most: int | None) -> Ids:
    """The first `most` tokens (None: all); the list itself where there are no more."""
    return ids if most is None or len(ids) <= most else ids[:most]


def cut_at(sentences: Sequence[Ids], most: int | None) -> tuple[list[Ids], list[int]]:
    """The first `most` tokens of each (None: all), and how many were cut off."""
    kept = [at_most(ids, most) for ids in sentences]
    return kept, [len(ids) - len(own) for ids, own in zip(sentences, kept, strict=True)]


def length_warning(tokens: int, shortest: int, longest: int | None) -> str:
    """The warning about a source that is longer or shorter than all training sources; "" where it is neither. `longest`
    is None, and `shortest` 0, where it is not known."""
    if longest is not None and tokens > longest:
        which, length, harm = "longest", longest, "be wrong"
    elif 0 < tokens < shortest:
        which, length, harm = "shortest", shortest, "say more than the text"
    else:
        return ""
    learnt = f"the {which} source that it was trained on has {length:,}"
    return f"{counted(tokens, 'token')}, and {learnt}: its answer may {harm}"


def cut_warning(read: int, tokens: int) -> str:
    """The warning about a text of which only the first tokens were read; "" where all were."""
    return f"too long: only {read:,} of its {tokens:,} tokens were read" if read < tokens else ""


def warn(warned: Sequence[str]) -> None:
    """Issues Python warnings about texts ("": none), at the line that called heedful."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_globals.get("__name__", "").startswith("heedful."):
        frame, level = frame.f_back, level + 1
    for number, what in enumerate(warned, 1):
        if what:
            warnings.warn(f"text {number}: {what}" if len(warned) > 1 else what, stacklevel=level)


def shorten(text: str) -> str:
    """The beginning of a text, in quotes."""
    return quoted(text) if len(text) <= 40 else f"{quoted(text[:40])}..."


def most_positions(config: object) -> int | None:
    """How many tokens a source and a target may have, ends included; None where any number."""
    sides = (config.source, config.target) if isinstance(config, Seq2SeqConfig) else ()
    return min((side.context_length for side in sides if side.position_embeddings == "learned"), default=None)


def refuse_longer(texts: Sequence[str], sentences: Sequence[Ids], most: int | None, *, does: str) -> None:
    """Raises TextError for a text with more than `most` tokens (None: any number). `does`: what the model does with
    them, "reads" or "writes"."""
    for text, ids in zip(texts, sentences, strict=True):
        if most is not None and len(ids) > most:
            what = f"{len(ids):,} tokens, but the model {does} at most {most:,}"
            raise TextError(what, where=shorten(text), fix="give it in shorter parts")


def check_lengths(sentences: Sequence[Ids], positions: int, *, where: str) -> None:
    """Raises InputError where a sentence has, with its end token, more tokens than a model has positions."""
    most = max(map(len, sentences), default=0) + 1
    if most > positions:
        what = f"a text of {most} tokens, but the model has {positions} positions"
        raise InputError(what, where=where, fix="leave it out, or take a model with more positions")
