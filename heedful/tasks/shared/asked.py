"""What a model is not asked for: fewer answers than one, scores on nothing, and labels that it does not know."""

from collections.abc import Iterable, Sequence, Sized

from heedful.data.lines import listed
from heedful.errors import InputError, counted


def refuse_no_answers(top: int) -> None:
    """Raises InputError where the `top` best are none."""
    if top < 1:
        raise InputError(f"the best {top} answers", fix="ask for 1 or more")


def refuse_nothing(examples: Sized) -> None:
    """Raises InputError where there is nothing to be scored on."""
    if not len(examples):
        raise InputError("nothing to be scored on", fix="give some examples")


def refuse_unknown_labels(labels: Iterable[str], known: Sequence[str], where: str = "") -> None:
    """Raises InputError for one that the model did not learn."""
    for label in labels:
        if label not in known:
            what = f"the label {label!r} was not among those that this model learnt"
            fix = f"it learnt {counted(len(known), 'label')}, such as {listed(known)}"
            raise InputError(what, where=where, fix=fix)
