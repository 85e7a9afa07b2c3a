"""What a model is not asked for: fewer answers than one, and scores on nothing."""

from collections.abc import Sized

from heedful.decode.settings import refuse_fractions
from heedful.errors import InputError


def refuse_no_answers(top: int) -> None:
    """Raises InputError where the `top` best are none."""
    refuse_fractions({"top": top})
    if top < 1:
        raise InputError(f"the best {top} answers", fix="ask for 1 or more")


def refuse_nothing(examples: Sized) -> None:
    """Raises InputError where there is nothing to be scored on."""
    if not len(examples):
        raise InputError("nothing to be scored on", fix="give some examples")
