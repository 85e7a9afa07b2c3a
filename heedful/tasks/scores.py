"""Scores of translations, by sacreBLEU, with the signatures that make them comparable (Post 2018)."""

from collections.abc import Sequence
from dataclasses import dataclass

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from heedful.errors import InputError


@dataclass(frozen=True)
class Scores:
    """BLEU (Papineni et al. 2002) and chrF (Popović 2015), cased, of detokenised text, from 0 to 100; `exact` is the
    share of translations that equal their reference. With a bootstrap, each also has its 95 % interval's half."""

    bleu: float
    chrf: float
    exact: float
    signature: str
    chrf_signature: str
    bleu_margin: float | None = None
    chrf_margin: float | None = None


def score(translations: Sequence[str], references: Sequence[str], *, bootstrap: int = 0) -> Scores:
    """`bootstrap`: how many resamples to draw for intervals (Koehn 2004); 0 for none."""
    if not translations:
        raise InputError("there is nothing to score", fix="give at least one sentence pair")
    bleu, chrf = BLEU(), CHRF()
    target = [list(references)]
    of_bleu = bleu.corpus_score(list(translations), target, n_bootstrap=max(1, bootstrap))
    of_chrf = chrf.corpus_score(list(translations), target, n_bootstrap=max(1, bootstrap))
    exact = sum(a == b for a, b in zip(translations, references, strict=True)) / len(references)
    return Scores(
        bleu=of_bleu.score,
        chrf=of_chrf.score,
        exact=exact,
        signature=str(bleu.get_signature()),
        chrf_signature=str(chrf.get_signature()),
        bleu_margin=of_bleu._ci if bootstrap > 1 else None,
        chrf_margin=of_chrf._ci if bootstrap > 1 else None,
    )
