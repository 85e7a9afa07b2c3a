"""A translation word by word: how sure the model is of each, which source words it looked at to say it, and what it
would have said in place of one.

What was looked at is the mean over the heads and layers of the cross-attention, summed over the tokens of a word of
the source and averaged over those of the target's (as Koehn and Knowles 2017, section 3.5); marks that begin and end
texts are left out, so that the shares may sum up to less than 1.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, NotRequired, TypedDict

from torch import Tensor

from heedful.data.lines import sanitise
from heedful.decode.settings import DecodingOptions, setting
from heedful.errors import InputError
from heedful.run.task import Ask
from heedful.tasks.translate.assemble import assembled, warnings_of
from heedful.tasks.translate.confidence import (
    WordLikelihoods,
    in_a_row,
    likelihood_of,
    sentence_confidence,
    word_confidences,
    words_of,
)
from heedful.tasks.translate.inside.look import watched
from heedful.tasks.translate.options import DirectionOptions
from heedful.tasks.translate.pairs.attended import crossing
from heedful.tasks.translate.pipeline import Question, translate_segments
from heedful.tasks.translate.searching import Asking, Translation
from heedful.tasks.translate.segment import Segment, has_words, segments_of
from heedful.tasks.translate.use import Translator
from heedful.tasks.translate.wishes import wishes_of

MOST = 16  # words in place of one


class SaidWord(TypedDict):
    """A word that was said: its probability after the words before it, and how sure it is."""

    text: str
    probability: float
    confidence: float


class AlignedWord(SaidWord):
    """A word that was said, and the share of each source word."""

    source: list[float]


class OtherWord(TypedDict):
    """A word in place of another, its first token's probability, and the whole translation that it is continued to."""

    text: str
    probability: float
    translation: str


class AlignedSentence(TypedDict):
    """A sentence and its translation; where in the text and in the whole translation they begin; and how many of the
    words of both are theirs."""

    source: str
    text: str
    source_begin: int
    begin: int
    source_words: int
    words: int
    confidence: float
    warning: NotRequired[str]
    unlike: NotRequired[bool]


class Aligned(TypedDict):
    """The words of a text and of its translation, in all `sentences`. `confidence` and `calibrated` as in the record of
    a translation."""

    source: list[str]
    text: str
    words: list[AlignedWord]
    sentences: list[AlignedSentence]
    confidence: float
    calibrated: bool
    others: NotRequired[list[OtherWord]]


@dataclass(frozen=True, kw_only=True)
class AlignOptions(DirectionOptions):
    """`target` is a translation to go through in place of the model's own; `word` the number, from 0, of one that
    others are wanted for, and `top` how many. `glossary` as in `TranslateOptions`."""

    target: str | None = setting(None, "A translation to go through in place of the model's own.")
    word: int | None = setting(None, "The number, from 0, of a word that others are wanted for.", 0)
    top: int = setting(6, "How many others.", 1)
    glossary: tuple[tuple[str, ...], ...] = setting(
        (), "Terms, each with its translations, one of which must be there."
    )
    decoding: DecodingOptions = setting(DecodingOptions, "How to search, where it is not as the model has it.")


def align_texts(translator: Translator, texts: Sequence[str], options: AlignOptions) -> Iterator[Aligned]:
    for text in texts:
        yield align(translator, text, options)


def align(translator: Translator, text: str, options: AlignOptions) -> Aligned:
    """Goes through a translation sentence by sentence. Raises InputError for an empty text, one that is too long, a
    word that is not there, and a model that another library holds."""
    if translator.engine is not None:
        raise InputError("another library does not tell what was looked at", fix="leave out the engine")
    translator = translator.directed(options.from_language, options.to, options.tag)
    text = sanitise(text)
    if not text.strip():
        raise InputError("there is no text to translate", fix="give one")
    if options.target is None:
        wishes = wishes_of((), (), options.glossary or None, translator.languages)
        asking = Asking(translator.decoding(**options.decoding), wishes, confidence=True)
        segments = segments_of(translator, text)
        found = translate_segments(translator, [Question(one.text) for one in segments], asking)
    else:
        segments = [Segment(0, len(text), text)]
        found = [Translation(text, options.target, 0.0, [(options.target, 0.0)])]
    views = [_view(translator, segment.text, best) for segment, best in zip(segments, found, strict=True)]
    words = sum(len(view.source) for view in views)
    told = in_a_row([view.likelihoods for view in views])
    whole = assembled(text, segments, [one.text for one in found])
    made: Aligned = {
        "source": [word for view in views for word in view.source],
        "text": whole.text,
        "words": [],
        "sentences": [],
        "confidence": sentence_confidence(told, translator.calibration),
        "calibrated": translator.calibration is not None,
    }
    before = 0
    for view, segment, one, (begin, end) in zip(views, segments, found, whole.spans, strict=True):
        sentence: AlignedSentence = {
            "source": text[segment.begin : segment.end],
            "text": whole.text[begin:end],
            "source_begin": segment.begin,
            "begin": begin,
            "source_words": len(view.source),
            "words": len(view.words),
            "confidence": sentence_confidence(view.likelihoods, translator.calibration),
        }
        if warnings := warnings_of([segment], [one], numbered=False):
            sentence["warning"] = "; ".join(warnings)
        if one.unlike:
            sentence["unlike"] = True
        made["sentences"].append(sentence)
        for word, looked in zip(view.words, view.looked, strict=True):
            after = words - before - len(view.source)
            made["words"].append({**word, "source": [*[0.0] * before, *looked, *[0.0] * after]})
        before += len(view.source)
    if options.word is not None:
        number, place = _place_of(views, options.word)
        said, made["others"] = [one.text for one in found], _others(translator, views[number], place, options)
        for other in made["others"]:  # in the whole text
            said[number] = other["translation"]
            other["translation"] = assembled(text, segments, said).text
    return made


class _View(NamedTuple):
    """A translated sentence: its source's words and tokens; the translation's words, their tokens, and what each looked
    at; and the probabilities of all tokens at each step. A sentence that stays as it is has neither tokens nor
    probabilities."""

    source: list[str]
    words: list[SaidWord]
    looked: list[list[float]]
    likelihoods: WordLikelihoods
    ids: Sequence[int] = ()
    said: Sequence[int] = ()
    ranges: Sequence[range] = ()
    chances: Tensor | None = None


def _view(translator: Translator, text: str, found: Translation) -> _View:
    if found.text == text and not has_words(text):
        signs = text.split()
        same: list[SaidWord] = [{"text": sign, "confidence": 1.0, "probability": 1.0} for sign in signs]
        identity = [[float(row == column) for column in range(len(signs))] for row in range(len(signs))]
        return _View(signs, same, identity, WordLikelihoods())
    ((ids,), _) = translator.encode([translator.trimmed(text)])
    translator.refuse_too_long([text], [ids])
    said = [*found.tokens[0]] if found.tokens else [*translator.begin, *translator.target.encode([found.text])[0]]
    source, logits, weights = watched(translator, ids, said)
    begins = len(translator.around[0])
    shares = crossing({name: own[None] for name, own in weights.items()}, len(source))[0][:, begins : begins + len(ids)]
    ended = [*said, translator.target.eos][: len(logits)]
    logprobs = logits[range(len(ended)), ended] - logits[: len(ended)].logsumexp(-1)
    read = likelihood_of(translator.target, said, logprobs.tolist())
    told = found.said[0] if found.said else read  # what was mended is as sure as the translation that it comes from
    of_words = told if len(told.words) == len(read.words) else read
    heard, spoken = words_of(translator.source, ids), words_of(translator.target, said)
    words, looked = list[SaidWord](), list[list[float]]()
    for place, (_, logprob), sure in zip(
        spoken, of_words.words, word_confidences(of_words, translator.calibration), strict=True
    ):
        own = shares[place.start : place.stop].mean(0)
        looked.append([float(own[each.start : each.stop].sum()) for each in heard])
        words.append(SaidWord(**sure, probability=math.exp(logprob)))
    names = [translator.source.decode(ids[each.start : each.stop]) for each in heard]
    return _View(names, words, looked, told, ids, said, spoken, logits.softmax(-1))


def _place_of(views: Sequence[_View], word: int) -> tuple[int, int]:
    """The numbers of a word's sentence, and of the word in it. Raises InputError for a word that is not there."""
    left = word
    for number, view in enumerate(views):
        if 0 <= left < len(view.words):
            return number, left
        left -= len(view.words)
    count = sum(len(view.words) for view in views)
    raise InputError(f"{count} words, no word {word}", fix="they are counted from 0")


def _others(translator: Translator, view: _View, word: int, options: AlignOptions) -> list[OtherWord]:
    """The likeliest words at this place, the best first, and how the model continues each. What leads to the same
    word is told once."""
    if not 1 <= options.top <= MOST:
        raise InputError(f"{options.top} words in place of one", fix=f"ask for 1 to {MOST}")
    if view.chances is None:  # the sentence stays as it is
        return []
    start = view.ranges[word].start
    row = view.chances[start].clone()
    row[[*translator.forbidden, translator.target.eos]] = 0
    found = row.topk(min(options.top, len(row)))
    begun = [[*view.said[len(translator.begin) : start], token] for token in found.indices.tolist()]
    decoding = translator.decoding(**options.decoding)
    made: dict[str, OtherWord] = {}
    for probability, (best, *_) in zip(
        found.values.tolist(), translator.hypotheses([[*view.ids]] * len(begun), decoding, begun), strict=True
    ):
        tokens = [*best.tokens]
        own = next((each for each in words_of(translator.target, tokens) if each.start == start), None)
        if own is not None:  # a word of its own, and no longer one before it
            text, whole = translator.target.decode(tokens[own.start : own.stop]), translator.target.decode(tokens)
            made.setdefault(text, {"text": text, "probability": probability, "translation": whole})
    return [*made.values()]


ASK = Ask(align_texts, AlignOptions, gathers=lambda options: options.word is None)
