"""Mixes general pairs into each epoch of in-domain training, so that the model does not forget what it learnt (as Chu
et al. 2017 mix domains)."""

from collections.abc import Sequence
from dataclasses import dataclass

from heedful.data.text.corpus import Corpus, languages_said, read_parallel, without_held
from heedful.data.text.reading import paths_of
from heedful.errors import InputError

LEAST_OWN = 0.05  # the least share of an epoch that is not mixed in


@dataclass(frozen=True)
class MixedIn:
    """A share of each epoch that is drawn from the training pairs of `corpus`."""

    share: float
    corpus: Corpus


def read_mixes(given: Sequence[str], like: Corpus) -> list[MixedIn]:
    """Reads data given as PATH:0.2, in the languages of `like`, without pairs that are held out there. Raises
    InputError or MissingError."""
    source, target = languages_said(like)
    mixes: list[MixedIn] = []
    for text in given:
        found = paths_of([text])
        share = found[0][1]
        if not 0 < share < 1:
            what = f"mixes in {share:g} of each epoch" if ":" in text else "does not say how much of each epoch"
            raise InputError(what, where=f"--mix {text}", fix=f"--mix {found[0][0]}:0.2 draws a fifth of it from there")
        corpus = read_parallel(text.rpartition(":")[0], source=source, target=target)
        mixes.append(MixedIn(share, without_held(corpus, like)))
    if (whole := sum(mix.share for mix in mixes)) > 1 - LEAST_OWN:
        what = f"{whole:g} of each epoch is mixed in"
        raise InputError(what, where="--mix", fix=f"leave at least {LEAST_OWN:g} to the data that it is trained on")
    return mixes
