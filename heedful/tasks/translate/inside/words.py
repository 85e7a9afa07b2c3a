"""A translation word by word, in each of its sentences: how sure the model is of each word, which source words it
looked at to say it, and what it would have said in place of one.

What was looked at is the mean over the heads and layers of the cross-attention, summed over the tokens of a word of
the source and averaged over those of the target's (as Koehn and Knowles 2017, section 3.5); marks that begin and end
texts are left out, so that the shares may sum up to less than 1.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, NotRequired, TypedDict

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.data.documents.plain import lines_of
from heedful.data.documents.sentences import gap_between, sentences_in, trimmed
from heedful.data.documents.words import Span
from heedful.data.tokenizer import Ids
from heedful.decode.settings import DecodingOptions
from heedful.errors import InputError
from heedful.run.task import Ask
from heedful.tasks.translate.confidence import likelihood_of, sentence_confidence, word_confidences, words_of
from heedful.tasks.translate.documents.parts import search_in_parts
from heedful.tasks.translate.inside.look import watched
from heedful.tasks.translate.languages import DirectionOptions, languages_of
from heedful.tasks.translate.pairs.attended import crossing
from heedful.tasks.translate.searching import Translation
from heedful.tasks.translate.use import Translator
from heedful.tasks.translate.wishes import wishes_of

MOST = 16  # words in place of one


class AlignedWord(TypedDict):
    """A word of a translation: its probability after the words before it, how sure it is, and the share of each source
    word of its sentence."""

    text: str
    probability: float
    confidence: float
    source: list[float]


class OtherWord(TypedDict):
    """A word in place of another, its first token's probability, and the whole translation of the sentence that it is
    continued to."""

    text: str
    probability: float
    translation: str


class AlignedSentence(TypedDict):
    """A sentence and its translation; where in the text and in its translation they begin; and how many of the words
    of both are theirs."""

    source: str
    text: str
    source_begin: int
    begin: int
    source_words: int
    words: int
    confidence: float
    warning: NotRequired[str]


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
    """`target` is a translation to go through in place of the model's own, as that of one sentence; `word` the number,
    from 0, of a word that others are wanted for, and `top` how many. `glossary` as in `TranslateOptions`."""

    target: str | None = None
    word: int | None = None
    top: int = 6
    glossary: tuple[tuple[str, ...], ...] = ()
    decoding: DecodingOptions = field(default_factory=DecodingOptions)


class Watched(NamedTuple):
    """A sentence and its translation: the tokens of both, the words of the source, the tokens of each word of the
    translation, these words, and at each token the probability of every other (T, V). `confidence`: of the whole."""

    ids: Ids
    said: Ids
    heard: list[str]
    spoken: list[range]
    words: list[AlignedWord]
    chances: Float[Tensor, "T V"]
    confidence: float


def align_texts(translator: Translator, texts: Sequence[str], options: AlignOptions) -> Iterator[Aligned]:
    for text in texts:
        yield align(translator, text, options)


def align(translator: Translator, text: str, options: AlignOptions) -> Aligned:
    """Raises InputError for an empty text, one that is too long, a word that is not there, and a model that another
    library holds."""
    if translator.engine is not None:
        raise InputError("another library does not tell what was looked at", fix="leave out the engine")
    if not text.strip():
        raise InputError("there is no text to translate", fix="give one")
    translator = translator.directed(options.from_language, options.to, options.tag)
    source, words, sentences = list[str](), list[AlignedWord](), list[AlignedSentence]()
    whole, last = "", 0
    found: list[OtherWord] | None = None
    for (begin, end), translation in _translated(translator, text, options):
        own = watch(translator, text[begin:end], translation)
        gap = text[last:begin]
        whole += gap_between(whole, gap, translation.text) if sentences else gap
        sentence: AlignedSentence = {
            "source": text[begin:end],
            "text": translation.text,
            "source_begin": begin,
            "begin": len(whole),
            "source_words": len(own.heard),
            "words": len(own.words),
            "confidence": own.confidence,
        }
        if translation.warning:
            sentence["warning"] = translation.warning
        if options.word is not None and 0 <= (word := options.word - len(words)) < len(own.words):
            found = others(translator, own, word, options)
        sentences.append(sentence)
        source += own.heard
        words += own.words
        whole, last = whole + translation.text, end
    made: Aligned = {
        "source": source,
        "text": whole + text[last:],
        "words": words,
        "sentences": sentences,
        "confidence": min(sentence["confidence"] for sentence in sentences),
        "calibrated": translator.calibration is not None,
    }
    if options.word is not None:
        if found is None:
            raise InputError(f"{len(words)} words, no word {options.word}", fix="they are counted from 0")
        made["others"] = found
    return made


def _translated(translator: Translator, text: str, options: AlignOptions) -> Iterator[tuple[Span, Translation]]:
    """The sentences of a text, and their translations."""
    if options.target is not None:
        begin, end = trimmed(text, 0, len(text))
        own = Translation(text[begin:end], options.target, 0.0, [(options.target, 0.0)])
        yield (begin, end), own
        return
    wishes = wishes_of((), (), options.glossary or None, translator.languages)
    spans = _sentences(translator, text)
    texts = [text[begin:end] for begin, end in spans]
    found = search_in_parts(translator, texts, wishes=wishes, confidence=True, **options.decoding)
    yield from zip(spans, found, strict=True)


def _sentences(translator: Translator, text: str) -> list[Span]:
    if languages_of(translator.about) is None or translator.marked:
        return [trimmed(text, 0, len(text))]
    spans, begin = list[Span](), 0
    for line in lines_of(text):
        spans += [(begin + one, begin + other) for one, other in sentences_in(line, translator.languages[0])]
        begin += len(line)
    return [(one, other) for one, other in spans if one < other]


def watch(translator: Translator, text: str, translation: Translation) -> Watched:
    """One pass over a sentence and its translation. Where the search has told how likely each word was, that stays."""
    ((ids,), _) = translator.encode([translator.trimmed(text)])
    if not ids:  # nothing that the model reads
        return Watched([], [], [], [], [], torch.zeros(0, 0), 1.0)
    translator.refuse_too_long([text], [ids])
    said = [*translator.begin, *translator.target.encode([translation.text])[0]]
    source, logits, weights = watched(translator, ids, said)
    begins = len(translator.around[0])
    shares = crossing({name: own[None] for name, own in weights.items()}, len(source))[0][:, begins : begins + len(ids)]
    ended = [*said, translator.target.eos]
    logprobs = logits[range(len(ended)), ended] - logits[: len(ended)].logsumexp(-1)
    told, calibration = likelihood_of(translator.target, said, logprobs.tolist()), translator.calibration
    heard, spoken = words_of(translator.source, ids), words_of(translator.target, said)
    texts = [word for word, _ in told.words]
    if translation.said:
        told = translation.said[0] if len(translation.said[0].words) == len(spoken) else told
    words: list[AlignedWord] = []
    for place, word, (_, logprob), sure in zip(
        spoken, texts, told.words, word_confidences(told, calibration), strict=True
    ):
        own = shares[place.start : place.stop].mean(0)
        looked = [float(own[each.start : each.stop].sum()) for each in heard]
        words.append({**sure, "text": word, "probability": math.exp(logprob), "source": looked})
    read = [translator.source.decode(ids[each.start : each.stop]) for each in heard]
    confidence = sentence_confidence(translation.said[0] if translation.said else told, calibration)
    return Watched(ids, said, read, spoken, words, logits.softmax(-1), confidence)


def others(translator: Translator, sentence: Watched, word: int, options: AlignOptions) -> list[OtherWord]:
    """The likeliest words in place of one, the best first, and how the model continues each. What leads to the same
    word is told once."""
    if not 1 <= options.top <= MOST:
        raise InputError(f"{options.top} words in place of one", fix=f"ask for 1 to {MOST}")
    place = sentence.spoken[word]
    row = sentence.chances[place.start].clone()
    row[[*translator.forbidden, translator.target.eos]] = 0
    found = row.topk(min(options.top, len(row)))
    before = sentence.said[: place.start]
    begun = [[*before[len(translator.begin) :], token] for token in found.indices.tolist()]
    decoding = translator.decoding(**options.decoding)
    made: dict[str, OtherWord] = {}
    for probability, (best, *_) in zip(
        found.values.tolist(), translator.hypotheses([sentence.ids] * len(begun), decoding, begun), strict=True
    ):
        tokens = [*best.tokens]
        own = next((each for each in words_of(translator.target, tokens) if each.start == place.start), None)
        if own is not None:  # a word of its own, and no longer one before it
            text, whole = translator.target.decode(tokens[own.start : own.stop]), translator.target.decode(tokens)
            made.setdefault(text, {"text": text, "probability": probability, "translation": whole})
    return [*made.values()]


ASK = Ask(align_texts, AlignOptions, gathers=lambda options: options.word is None)
