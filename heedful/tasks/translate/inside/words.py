"""A translation word by word: how sure the model is of each, which source words it looked at to say it, and what it
would have said in place of one.

What was looked at is the mean over the heads and layers of the cross-attention, summed over the tokens of a word of
the source and averaged over those of the target's (as Koehn and Knowles 2017, section 3.5); marks that begin and end
texts are left out, so that the shares may sum up to less than 1.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NotRequired, TypedDict

from jaxtyping import Float
from torch import Tensor

from heedful.data.tokenizer import Ids
from heedful.decode.settings import DecodingOptions
from heedful.errors import InputError
from heedful.run.task import Ask
from heedful.tasks.translate.confidence import likelihood_of, sentence_confidence, word_confidences, words_of
from heedful.tasks.translate.inside.look import watched
from heedful.tasks.translate.languages import DirectionOptions
from heedful.tasks.translate.pairs.attended import crossing
from heedful.tasks.translate.use import Translator

MOST = 16  # words in place of one


class AlignedWord(TypedDict):
    """A word that was said: its probability after the words before it, how sure it is, and the share of each source
    word."""

    text: str
    probability: float
    confidence: float
    source: list[float]


class OtherWord(TypedDict):
    """A word in place of another, its first token's probability, and the whole translation that it is continued to."""

    text: str
    probability: float
    translation: str


class Aligned(TypedDict):
    """`confidence` and `calibrated` as in the record of a translation."""

    source: list[str]
    text: str
    words: list[AlignedWord]
    confidence: float
    calibrated: bool
    others: NotRequired[list[OtherWord]]


@dataclass(frozen=True, kw_only=True)
class AlignOptions(DirectionOptions):
    """`target` is a translation to go through in place of the model's own; `word` the number, from 0, of one that
    others are wanted for, and `top` how many."""

    target: str | None = None
    word: int | None = None
    top: int = 6
    decoding: DecodingOptions = field(default_factory=DecodingOptions)


def align_texts(translator: Translator, texts: Sequence[str], options: AlignOptions) -> Iterator[Aligned]:
    for text in texts:
        yield align(translator, text, options)


def align(translator: Translator, text: str, options: AlignOptions) -> Aligned:
    """Raises InputError for an empty text, one that is too long, a word that is not there, and a model that another
    library holds."""
    if translator.engine is not None:
        raise InputError("another library does not tell what was looked at", fix="leave out the engine")
    translator = translator.directed(options.from_language, options.to, options.tag)
    ((ids,), _) = translator.encode([translator.trimmed(text)])
    if not ids:
        raise InputError("there is no text to translate", fix="give one")
    translator.refuse_too_long([text], [ids])
    if options.target is None:
        ((best, *_),) = translator.hypotheses([ids], translator.decoding(**options.decoding))
        said, finished = [*best.tokens], best.finished
    else:
        said, finished = [*translator.begin, *translator.target.encode([options.target])[0]], True
    source, logits, weights = watched(translator, ids, said)
    begins = len(translator.around[0])
    shares = crossing({name: own[None] for name, own in weights.items()}, len(source))[0][:, begins : begins + len(ids)]
    chances = logits.softmax(-1)
    ended = [*said, *([translator.target.eos] if finished else [])]
    logprobs = logits[range(len(ended)), ended] - logits[: len(ended)].logsumexp(-1)
    told, calibration = likelihood_of(translator.target, said, logprobs.tolist()), translator.calibration
    heard, spoken = words_of(translator.source, ids), words_of(translator.target, said)
    words: list[AlignedWord] = []
    sure = word_confidences(told, calibration)
    for place, (_, logprob), each_sure in zip(spoken, told.words, sure, strict=True):
        own = shares[place.start : place.stop].mean(0)
        looked = [float(own[each.start : each.stop].sum()) for each in heard]
        words.append({**each_sure, "probability": math.exp(logprob), "source": looked})
    made: Aligned = {
        "source": [translator.source.decode(ids[each.start : each.stop]) for each in heard],
        "text": translator.target.decode(said),
        "words": words,
        "confidence": sentence_confidence(told, calibration),
        "calibrated": calibration is not None,
    }
    if options.word is not None:
        if not 0 <= options.word < len(spoken):
            raise InputError(f"{len(spoken)} words, no word {options.word}", fix="they are counted from 0")
        made["others"] = others(translator, ids, said, spoken[options.word], chances, options)
    return made


def others(
    translator: Translator, ids: Ids, said: Ids, place: range, chances: Float[Tensor, "T V"], options: AlignOptions
) -> list[OtherWord]:
    """The likeliest words at this place, the best first, and how the model continues each. What leads to the same
    word is told once."""
    if not 1 <= options.top <= MOST:
        raise InputError(f"{options.top} words in place of one", fix=f"ask for 1 to {MOST}")
    row = chances[place.start].clone()
    row[[*translator.forbidden, translator.target.eos]] = 0
    found = row.topk(min(options.top, len(row)))
    before = said[: place.start]
    begun = [[*before[len(translator.begin) :], token] for token in found.indices.tolist()]
    decoding = translator.decoding(**options.decoding)
    made: dict[str, OtherWord] = {}
    for probability, (best, *_) in zip(
        found.values.tolist(), translator.hypotheses([ids] * len(begun), decoding, begun), strict=True
    ):
        tokens = [*best.tokens]
        own = next((each for each in words_of(translator.target, tokens) if each.start == place.start), None)
        if own is not None:  # a word of its own, and no longer one before it
            text, whole = translator.target.decode(tokens[own.start : own.stop]), translator.target.decode(tokens)
            made.setdefault(text, {"text": text, "probability": probability, "translation": whole})
    return [*made.values()]


ASK = Ask(align_texts, AlignOptions, gathers=lambda options: options.word is None)
