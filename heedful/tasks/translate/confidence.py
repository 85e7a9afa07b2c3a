"""How sure a translation is, as a whole and word by word: the model's probabilities, as `calibration` maps them.

The probability of a word is that of its tokens together, each given all before it; that of a translation is the
geometric mean of its tokens, including the end token (Fomicheva et al. 2020, section 3.1). What these figures mean
differs from model to model, so they are mapped by a sigmoid of their log-odds.

A source may also be unlike all that the model was trained on: its pieces are then so rare that they have more nats a
character than in any validation source.
"""

import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Real
from operator import itemgetter
from pathlib import Path
from typing import Any, TypedDict

from heedful.core.config import from_json, to_json
from heedful.data.lines import quoted
from heedful.data.tokenizer import Tokenizer
from heedful.errors import InputError
from heedful.metrics.nats import MOST
from heedful.store import files

FILE = "confidence.json"  # in a run's folder
SPACE = "▁"
SURE, NEVER = -1e-6, -50.0  # log-probabilities are clamped to between these
UNLIKE = "the source is unlike all that the model was trained on"
SEEN = 10  # wrong validation translations from which a calibration says something of sentences like these

Ids = Sequence[int]


class WordConfidence(TypedDict):
    text: str
    confidence: float


@dataclass(frozen=True)
class WordLikelihoods:
    """A translation's words with their log-probabilities (nats); the number of its tokens, including the end token, and
    their mean log-probability. `sentences` are those of a text of several; its mean is that of the least sure one."""

    words: tuple[tuple[str, float], ...] = ()
    mean: float = 0.0
    tokens: int = 0
    sentences: "tuple[WordLikelihoods, ...]" = ()


def in_a_row(sentences: Sequence[WordLikelihoods]) -> WordLikelihoods:
    """For a text of these sentences."""
    return WordLikelihoods(
        tuple(word for one in sentences for word in one.words),
        min((one.mean for one in sentences if one.tokens), default=0.0),
        sum(one.tokens for one in sentences),
        tuple(sentences),
    )


@dataclass(frozen=True, kw_only=True)
class Sigmoid:
    """A calibration: slope and intercept on the log-odds, for a word also a slope on those of its sentence; its
    calibration error, that of the uncalibrated probabilities, and the number of examples of both errors."""

    slope: float
    intercept: float
    error: float
    uncalibrated_error: float
    count: int
    sentence: float = 0.0

    def __call__(self, logprob: float, sentence: float = 0.0) -> float:
        sum_ = self.slope * log_odds(logprob) + self.sentence * log_odds(sentence) + self.intercept
        return 1 / (1 + math.exp(min(MOST, -sum_)))


@dataclass(frozen=True, kw_only=True)
class KnownPieces:
    """How often the model's training sources have each piece of the vocabulary, by its number; and the most nats a
    character of a source that is not unlike them."""

    counts: dict[str, int] = field(default_factory=dict)
    usual: float = math.inf

    @cached_property
    def _all(self) -> int:
        return sum(self.counts.values()) + len(self.counts)

    def nats(self, ids: Ids, text: str) -> float:
        """The nats a character of a text of these tokens, if each piece came by itself (add-one smoothing)."""
        counts = (self.counts.get(str(token), 0) + 1 for token in ids)
        return sum(math.log(self._all / count) for count in counts) / max(1, len(text.strip()))


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """`chrf`: that from which a translation counts as right. `wrong`: the number of validation translations that are
    not; None where that was not counted."""

    sentence: Sigmoid
    word: Sigmoid
    chrf: float = 50.0
    wrong: int | None = None
    pieces: KnownPieces | None = None

    @property
    def told(self) -> str:
        """In a sentence or two."""
        each = ((own.error, own.uncalibrated_error, own.count) for own in (self.sentence, self.word))
        sentence, word = (f"{error:.3f} of {count:,} {{}} (as it was: {old:.3f})" for error, old, count in each)
        what = f"Confidence (a sentence: that its chrF is {self.chrf:g} or more; a word: that the reference has it)"
        told = f"{what} has an expected calibration error of {sentence.format('sentences')} and {word.format('words')}."
        if self.wrong is None or self.wrong >= SEEN:
            return told
        few = f"Only {self.wrong} of these {self.sentence.count:,} translations are wrong"
        return f"{told} {few}: it can tell what is unlike them, and hardly which of sentences like these are wrong."


def calibration_of(kept: Mapping[str, Any]) -> Calibration:
    """From what confidence.json has. Raises InputError."""
    return from_json(Calibration, kept, where=FILE, largest=None)


def sentence_confidence(said: WordLikelihoods, calibration: Calibration | None) -> float:
    """Without a calibration it is the probability itself; 1 for a text that stays as it is, and 0 for a translation
    without words."""
    if not said.words:
        return 0.0 if said.tokens else 1.0
    return math.exp(said.mean) if calibration is None else calibration.sentence(said.mean)


def word_confidences(said: WordLikelihoods, calibration: Calibration | None) -> list[WordConfidence]:
    def mapped(logprob: float, sentence: float) -> float:
        return math.exp(logprob) if calibration is None else calibration.word(logprob, sentence)

    return [
        {"text": text, "confidence": mapped(logprob, one.mean)}
        for one in said.sentences or (said,)
        for text, logprob in one.words
    ]


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


def write_calibration(run: Path, calibration: Calibration) -> None:
    files.write_json(run / FILE, to_json(calibration))


def log_odds(logprob: float) -> float:
    bounded = min(max(logprob, NEVER), SURE)
    return bounded - math.log(-math.expm1(bounded))
