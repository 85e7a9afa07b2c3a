"""Fits the confidence of a translator on its own translations.

They are of two kinds: of validation sources, and of the same with noise in them: words of random letters, and words in
random order (in the manner of Specia et al. 2010, who estimate quality from the source and the model). A model that is
right about nearly all of its validation sources shows there alone what it is like where it is wrong. A word counts as
right if the reference has it, as often as it is said, and a translation if its chrF is 50 or more.

A sigmoid of the log-odds, with Platt's targets (Platt 1999, section 2.2), is fitted on both kinds. The error is the
expected calibration error (Guo et al. 2017, section 2) on the validation sources as they are: the mean distance between
confidence and accuracy over ten bins, on each half of the data with the sigmoid that was fitted on the other half.

N texts or words.
"""

import random
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from heedful.core.seeds import random_stream
from heedful.data.lines import composed
from heedful.data.text.pairs import Pairs
from heedful.metrics.texts import chrf_of_each
from heedful.tasks.translate.confidence import Calibration, KnownPieces, Sigmoid, WordLikelihoods, log_odds
from heedful.training.optimizers import LBFGS

if TYPE_CHECKING:
    from heedful.tasks.translate.use import Translator

GOOD = 50.0  # chrF from which a translation counts as right
FEWEST = 20  # translations that a calibration needs
BINS = 10
NO_TOKENS: Mapping[int, int] = {}
NOISE = (0.3, 1.0, 0.0)  # shares of the words that are replaced, in turns; with 0 their order is random
BEYOND = 1.1  # a source is unlike all others if it has so many times the nats of the most unlike validation source

Judged = list[tuple[float, float, bool]]  # in a text: a log-probability, its sentence's, and whether it is right


def calibrated(translator: "Translator", pairs: Pairs, learnt: Mapping[int, int] = NO_TOKENS) -> Calibration | None:
    """A calibration, fitted on the translator's own translations of these pairs; None if there are too few. `learnt`:
    how often the sources that it was trained on have each token; without any, those that are known stay."""
    noised = with_noise(pairs)
    texts, words = [], []
    for part in (pairs, noised):
        made = translator.search_pairs(part, confidence=True)
        rows = [row for row, one in enumerate(made) if one.said[0].words]
        if part is pairs and len(rows) < FEWEST:
            return None
        said, references = [made[row].said[0] for row in rows], [part.references[row] for row in rows]
        good = [chrf >= GOOD for chrf in chrf_of_each([made[row].text for row in rows], references)]
        texts.append([[(one.mean, 0.0, right)] for one, right in zip(said, good, strict=True)])
        words.append([_judged_words(*each) for each in zip(said, references, strict=True)])
    pieces = _known_pieces(translator, pairs, learnt)
    wrong = sum(not right for ((_, _, right),) in texts[0])
    return Calibration(sentence=_mapped(*texts), word=_mapped(*words), wrong=wrong, pieces=pieces)


def with_noise(pairs: Pairs) -> Pairs:
    """Every other pair, with noise in its source."""
    rows, sources = range(0, len(pairs), 2), list[str]()
    for number, row in enumerate(rows):
        draw, share = random_stream("noise", row), NOISE[number % len(NOISE)]
        words = pairs.source[row].split()
        if share:
            words = [_random_word(word, draw) if draw.random() < share else word for word in words]
        else:
            draw.shuffle(words)
        sources.append(" ".join(words))
    return replace(pairs.rows(rows), source=sources)


def _random_word(word: str, draw: random.Random) -> str:
    """As many random letters: of the word's own script where it is not Latin."""
    letters = [letter for letter in word if letter.isalpha()] or ["a"]
    base = ord(letters[0].lower())
    first = ord("a") if base < 0x250 else base - base % 32  # some 26 letters beside it
    return "".join(chr(first + draw.randrange(26)) for _ in word)


def _known_pieces(translator: "Translator", pairs: Pairs, learnt: Mapping[int, int]) -> KnownPieces | None:
    if not learnt:
        return None if translator.calibration is None else translator.calibration.pieces
    pieces = KnownPieces(counts={str(token): count for token, count in sorted(learnt.items())})
    usual = max(
        pieces.nats(ids, text) for ids, text in zip(translator.encode(pairs.source)[0], pairs.source, strict=True)
    )
    return replace(pieces, usual=BEYOND * usual)


def _judged_words(said: WordLikelihoods, references: Sequence[str]) -> Judged:
    right = iter(found_in([text for text, _ in said.words], references))
    return [(logprob, one.mean, next(right)) for one in said.sentences or (said,) for _, logprob in one.words]


def found_in(words: Sequence[str], references: Sequence[str]) -> list[bool]:
    """Which of the words are in the reference that has most of them, each at most as often as it is there. Punctuation
    around a word is ignored."""
    told = []
    for reference in references:
        left, own = Counter(map(_bare, _words(composed(reference)))), []
        for word in map(_bare, map(composed, words)):
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


def _mapped(found: Sequence[Judged], noised: Sequence[Judged]) -> Sigmoid:
    """A calibration from what is judged in each validation text, and in each with noise."""
    halves = [_columns(found[half::2]) for half in (0, 1)]
    others = [_columns([*found[half::2], *noised[half::2]]) for half in (1, 0)]
    lines = [_fitted(*other) for other in others]  # each half by what was fitted on the other
    chances = [(own[0] @ line).sigmoid() for line, own in zip(lines, halves, strict=True)]
    right = torch.cat([own[1] for own in halves])
    odds, came = _columns(found)
    slope, sentence, intercept = _fitted(*_columns([*found, *noised])).tolist()
    error, before = calibration_error(torch.cat(chances), right), calibration_error(odds[:, 0].sigmoid(), came)
    return Sigmoid(
        slope=slope, intercept=intercept, error=error, uncalibrated_error=before, count=len(odds), sentence=sentence
    )


def _columns(found: Sequence[Judged]) -> tuple[Float[Tensor, "N 3"], Bool[Tensor, "N"]]:
    """The log-odds of each, those of its sentence (0 where it is one), and 1; and which are right."""
    odds = [(log_odds(logprob), log_odds(mean) if mean else 0.0, 1.0) for own in found for logprob, mean, _ in own]
    return torch.tensor(odds, dtype=torch.float64), torch.tensor([right for own in found for *_, right in own])


def _fitted(odds: Float[Tensor, "N 3"], right: Bool[Tensor, "N"]) -> Float[Tensor, "3"]:
    """The two slopes and the intercept of maximum likelihood."""
    yes, no = int(right.sum()), int((~right).sum())
    target = torch.where(right, (yes + 1) / (yes + 2), 1 / (no + 2)).double()
    weights = torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64, requires_grad=True)
    optimizer = LBFGS([weights], max_iter=200, line_search_fn="strong_wolfe")

    def loss() -> float:
        optimizer.zero_grad()
        own = binary_cross_entropy_with_logits(odds @ weights, target)
        own.backward()
        return float(own.detach())

    optimizer.step(loss)
    return weights.detach()


def calibration_error(confidence: Float[Tensor, "N"], right: Bool[Tensor, "N"]) -> float:
    """Guo et al. 2017, equation 3."""
    place = (confidence * BINS).long().clamp(max=BINS - 1)
    gap = torch.zeros(BINS, dtype=torch.float64).index_add_(0, place, confidence.double() - right.double())
    return float(gap.abs().sum() / len(confidence))
