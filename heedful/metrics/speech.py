"""Words and characters that were heard wrongly, counted by the library jiwer, an extra."""

import re
from collections.abc import Sequence

from heedful.errors import MissingError, pip_install

NOT_HEARD = re.compile(r"[^\w\s']|_")  # punctuation; an apostrophe is part of a word


def as_heard(text: str) -> str:
    """Words in lower case, without punctuation: what is compared."""
    return " ".join(NOT_HEARD.sub(" ", text.lower()).split())


def error_rates(right: Sequence[str], heard: Sequence[str]) -> dict[str, float]:
    """The word error rate (`wer`) and the character error rate (`cer`): substitutions, deletions and insertions of the
    shortest edit, over the words or characters of all texts that are right. Raises MissingError without jiwer."""
    try:
        import jiwer
    except ImportError:
        fix = pip_install("'heedful[sound]'")
        raise MissingError("word error rates need the package jiwer", fix=fix) from None
    kept = [(as_heard(a), as_heard(b)) for a, b in zip(right, heard, strict=True)]
    spoken = [pair for pair in kept if pair[0]]
    if not spoken:
        return {"wer": 0.0, "cer": 0.0}
    references, hypotheses = ([pair[side] for pair in spoken] for side in (0, 1))
    return {"wer": float(jiwer.wer(references, hypotheses)), "cer": float(jiwer.cer(references, hypotheses))}
