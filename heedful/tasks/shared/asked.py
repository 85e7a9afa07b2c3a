"""Checks of what a model is asked: at least one answer, some examples, and labels that it knows."""

from collections.abc import Iterable, Sequence, Sized

from heedful.data.lines import listed
from heedful.errors import InputError, counted


def refuse_no_answers(top: int) -> None:
    """Raises InputError where fewer than one answer is asked for."""
    if top < 1:
        raise InputError(f"the best {top} answers", fix="ask for 1 or more")


def refuse_nothing(examples: Sized) -> None:
    """Raises InputError where there are no examples to score."""
    if not len(examples):
        raise InputError("nothing to be scored on", fix="give some examples")


def refuse_unknown_labels(labels: Iterable[str], known: Sequence[str], where: str = "") -> None:
    """Raises InputError for a label that the model does not know."""
    for label in labels:
        if label not in known:
            what = f"the label {label!r} was not among those that this model learnt"
            fix = f"it learnt {counted(len(known), 'label')}, such as {listed(known)}"
            raise InputError(what, where=where, fix=fix)
