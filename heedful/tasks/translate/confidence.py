"""How sure a translation is, as a whole and word by word: the model's probabilities, calibrated on validation data.

The probability of a word is that of its tokens together, each given all before it; that of a translation is the
geometric mean of its tokens, including the end token (Fomicheva et al. 2020, section 3.1). What these figures mean
differs from model to model. So a sigmoid of the log-odds, with Platt's targets (Platt 1999, section 2.2), is fitted on
validation data: a word counts as right if the reference has it, as often as it is said, and a translation if its chrF
is 50 or more. The error is the expected calibration error (Guo et al. 2017, section 2): the mean distance between
confidence and accuracy over ten bins, on each half of the data with the sigmoid that was fitted on the other half.

N texts or words.
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from heedful.core.config import from_json, to_json
from heedful.data.lines import quoted
from heedful.data.text.pairs import Pairs
from heedful.data.tokenizer import Tokenizer
from heedful.errors import InputError
from heedful.metrics.nats import MOST
from heedful.metrics.texts import chrf_of_each
from heedful.store import files
from heedful.training.optimizers import LBFGS

if TYPE_CHECKING:
    from heedful.tasks.translate.use import Translator

FILE, KEY = "confidence.json", "confidence"  # in a run's folder, and in `about`
GOOD = 50.0  # chrF from which a translation counts as right
FEWEST = 20  # translations that a calibration needs
BINS = 10
SPACE = "▁"
SURE, NEVER = -1e-6, -50.0  # log-probabilities are clamped to between these

Ids = Sequence[int]


class WordConfidence(TypedDict):
    text: str
    confidence: float


@dataclass(frozen=True)
class WordLikelihoods:
    """A translation's words with their log-probabilities (nats); the number of its tokens, including the end token, and
    their mean log-probability. Of several sentences that is the mean of the least sure one."""

    words: tuple[tuple[str, float], ...] = ()
    mean: float = 0.0
    tokens: int = 0

    def __add__(self, other: "WordLikelihoods") -> "WordLikelihoods":
        """For two sentences, one after the other."""
        least = min((one.mean for one in (self, other) if one.tokens), default=0.0)
        return WordLikelihoods(self.words + other.words, least, self.tokens + other.tokens)


@dataclass(frozen=True, kw_only=True)
class Sigmoid:
    """A calibration: slope and intercept on the log-odds, its calibration error, that of the uncalibrated
    probabilities, and the number of examples of both errors."""

    slope: float
    intercept: float
    error: float
    uncalibrated_error: float
    count: int

    def __call__(self, logprob: float) -> float:
        return 1 / (1 + math.exp(min(MOST, -self.slope * log_odds(logprob) - self.intercept)))


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """`chrf`: that from which a translation counts as right."""

    sentence: Sigmoid
    word: Sigmoid
    chrf: float = GOOD

    @property
    def told(self) -> str:
        """In a sentence."""
        each = ((own.error, own.uncalibrated_error, own.count) for own in (self.sentence, self.word))
        sentence, word = (f"{error:.3f} of {count:,} {{}} (as it was: {old:.3f})" for error, old, count in each)
        what = f"Confidence (a sentence: that its chrF is {self.chrf:g} or more; a word: that the reference has it)"
        return f"{what} has an expected calibration error of {sentence.format('sentences')} and {word.format('words')}."


def calibration_of(about: dict[str, Any]) -> Calibration | None:
    return from_json(Calibration, about[KEY], where=FILE, largest=None) if KEY in about else None


def sentence_confidence(said: WordLikelihoods, calibration: Calibration | None) -> float:
    """Without a calibration it is the probability itself; 1 for a text that stays as it is, and 0 for a translation
    without words."""
    if not said.words:
        return 0.0 if said.tokens else 1.0
    return math.exp(said.mean) if calibration is None else calibration.sentence(said.mean)


def word_confidences(said: WordLikelihoods, calibration: Calibration | None) -> list[WordConfidence]:
    mapped = math.exp if calibration is None else calibration.word
    return [{"text": text, "confidence": mapped(logprob)} for text, logprob in said.words]


def refuse_no_probability(flag: float | None) -> None:
    """Raises InputError unless the threshold is from 0 to 1."""
    if flag is not None and not (isinstance(flag, Real) and 0 <= flag <= 1):
        raise InputError(f"{flag!r} is no probability", where="flag", fix="give a number from 0 to 1: 0.4")


def doubtful(confidence: float, words: Sequence[WordConfidence], flag: float) -> str:
    """The warning about a translation with less confidence than `flag`; "" for another."""
    if confidence >= flag:
        return ""
    told = f"confidence {confidence:.2f}, below {flag:g}"
    return f"{told}; least sure of {quoted(min(words, key=itemgetter('confidence'))['text'])}" if words else told


def likelihood_of(tokenizer: Tokenizer, tokens: Ids, logprobs: Sequence[float]) -> WordLikelihoods:
    """From a translation's tokens and their log-probabilities, which may include that of the end token."""
    words = tuple(
        (tokenizer.decode(list(tokens[place.start : place.stop])).strip(), sum(logprobs[place.start : place.stop], 0.0))
        for place in words_of(tokenizer, tokens)
    )
    return WordLikelihoods(words, sum(logprobs, 0.0) / max(1, len(logprobs)), len(logprobs))


def words_of(tokenizer: Tokenizer, ids: Ids) -> list[range]:
    """The tokens of each word. A word begins after a space, and at each character of a script without spaces. Control
    tokens belong to no word."""
    found: list[range] = []
    apart = True
    for place, (token, piece) in enumerate(zip(ids, tokenizer.pieces(list(ids)), strict=True)):
        if token in tokenizer.controls:
            apart = True
            continue
        begins = apart or piece.startswith(SPACE) or (piece[:1] and unicodedata.east_asian_width(piece[0]) == "W")
        if begins or not found:
            found.append(range(place, place + 1))
        else:
            found[-1] = range(found[-1].start, place + 1)
        apart = False
    return found


def read_calibration(run: Path) -> dict[str, Any]:
    """What confidence.json adds to task.json; nothing if the run was never calibrated."""
    return {KEY: files.read_json(run / FILE)} if (run / FILE).is_file() else {}


def write_calibration(run: Path, calibration: Calibration) -> None:
    files.write_json(run / FILE, to_json(calibration))


def calibrated(translator: "Translator", pairs: Pairs) -> Calibration | None:
    """A calibration, fitted on the translator's own translations of these pairs; None if there are too few."""
    if len(pairs) < FEWEST:
        return None
    made = translator.search_pairs(pairs, confidence=True)
    rows = [row for row, one in enumerate(made) if one.said[0].words]
    if len(rows) < FEWEST:
        return None
    said = [made[row].said[0] for row in rows]
    references = [pairs.references[row] for row in rows]
    good = [chrf >= GOOD for chrf in chrf_of_each([made[row].text for row in rows], references)]
    words = [found_in([text for text, _ in one.words], own) for one, own in zip(said, references, strict=True)]
    by_text = [[(one.mean, right)] for one, right in zip(said, good, strict=True)]
    by_word = [
        [(logprob, right) for (_, logprob), right in zip(one.words, own, strict=True)]
        for one, own in zip(said, words, strict=True)
    ]
    return Calibration(sentence=_mapped(by_text), word=_mapped(by_word))


def found_in(words: Sequence[str], references: Sequence[str]) -> list[bool]:
    """Which of the words are in the reference that has most of them, each at most as often as it is there. Punctuation
    around a word is ignored."""
    told = []
    for reference in references:
        left, own = Counter(map(_bare, _words(reference))), []
        for word in map(_bare, words):
            own.append(left[word] > 0)
            left[word] -= 1
        told.append(own)
    return max(told, key=sum)


def _words(text: str) -> list[str]:
    """The words of a text, split as `words_of` does."""
    apart = "".join(f" {letter}" if unicodedata.east_asian_width(letter) == "W" else letter for letter in text)
    return apart.split()


def _bare(word: str) -> str:
    return re.sub(r"^\W+|\W+$", "", word) or word


def log_odds(logprob: float) -> float:
    bounded = min(max(logprob, NEVER), SURE)
    return bounded - math.log(-math.expm1(bounded))


def _mapped(found: Sequence[Sequence[tuple[float, bool]]]) -> Sigmoid:
    """A calibration from, for each text, log-probabilities and whether they were right."""
    halves = [_columns(found[half::2]) for half in (0, 1)]
    lines = [_fitted(*other) for other in halves[::-1]]  # each half by what was fitted on the other
    chances = [(line[0] * own[0] + line[1]).sigmoid() for line, own in zip(lines, halves, strict=True)]
    right = torch.cat([own[1] for own in halves])
    odds, came = _columns(found)
    slope, intercept = _fitted(odds, came).tolist()
    error, before = calibration_error(torch.cat(chances), right), calibration_error(odds.sigmoid(), came)
    return Sigmoid(slope=slope, intercept=intercept, error=error, uncalibrated_error=before, count=len(odds))


def _columns(found: Sequence[Sequence[tuple[float, bool]]]) -> tuple[Float[Tensor, "N"], Bool[Tensor, "N"]]:
    odds = [log_odds(logprob) for own in found for logprob, _ in own]
    return torch.tensor(odds, dtype=torch.float64), torch.tensor([right for own in found for _, right in own])


def _fitted(odds: Float[Tensor, "N"], right: Bool[Tensor, "N"]) -> Float[Tensor, "2"]:
    """The slope and the intercept of maximum likelihood."""
    yes, no = int(right.sum()), int((~right).sum())
    target = torch.where(right, (yes + 1) / (yes + 2), 1 / (no + 2)).double()
    weights = torch.tensor([1.0, 0.0], dtype=torch.float64, requires_grad=True)
    optimizer = LBFGS([weights], max_iter=200, line_search_fn="strong_wolfe")

    def loss() -> float:
        optimizer.zero_grad()
        own = binary_cross_entropy_with_logits(weights[0] * odds + weights[1], target)
        own.backward()
        return float(own.detach())

    optimizer.step(loss)
    return weights.detach()


def calibration_error(confidence: Float[Tensor, "N"], right: Bool[Tensor, "N"]) -> float:
    """Guo et al. 2017, equation 3."""
    place = (confidence * BINS).long().clamp(max=BINS - 1)
    gap = torch.zeros(BINS, dtype=torch.float64).index_add_(0, place, confidence.double() - right.double())
    return float(gap.abs().sum() / len(confidence))
