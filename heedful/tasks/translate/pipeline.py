"""The way of every text to its translation: segment, search, mend, assemble.

All doors take it: terminal, server, Python, documents, evaluation. Texts are cut into segments (`segment`); a segment
without letters stays, and the others are searched (`searching`). A translation whose placeholders or numbers are not
those of its source is replaced by a better one, or has a warning (`mend`). Texts are then assembled of the translations
of their segments (`assemble`).
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, Unpack

from heedful.data.documents.sentences import sentences_in
from heedful.data.lines import sanitise
from heedful.decode.settings import DecodingOptions
from heedful.tasks.translate.assemble import joined
from heedful.tasks.translate.confidence import WordLikelihoods
from heedful.tasks.translate.mend import Choose, search_and_mend
from heedful.tasks.translate.model import BaseTranslator
from heedful.tasks.translate.searching import Asking, Number, Translation, search_texts
from heedful.tasks.translate.segment import Segment, by_sentences, has_words, segments_of
from heedful.tasks.translate.wishes import NO_WISHES, Wishes

BREAK = re.compile(r"\s*[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]\s*")


class Question(NamedTuple):
    """A segment to translate. `number`, for sampling: that of its text, and of the segment where it is not the
    first."""

    text: str
    prefix: str | None = None
    require: tuple[str, ...] = ()
    number: Number = 0


def translate_texts(
    translator: BaseTranslator,
    texts: Sequence[str],
    *,
    prefix: Sequence[str] | None = None,
    wishes: Wishes = NO_WISHES,
    first: int = 0,
    confidence: bool = False,
    choose: Choose | None = None,
    **settings: Unpack[DecodingOptions],
) -> list[Translation]:
    """The translation of each text, which begins with its `prefix`. `first` is the number of the first text, for
    sampling. Half characters (lone surrogates) are read as U+FFFD. Raises InputError, and TextError for a text of more
    tokens than the model can read."""
    texts, prefix = [*map(sanitise, texts)], None if prefix is None else [*map(sanitise, prefix)]
    asking = Asking(translator.decoding(**settings), wishes, confidence)
    if not by_sentences(translator):
        numbers = [first + number for number in range(len(texts))]
        asked = asking if choose is None else asking.whole_beam
        found = search_texts(translator, [*map(translator.trimmed, texts)], asked, prefix=prefix, numbers=numbers)
        return found if choose is None else [one.best(asking.kept) for one in choose(found)]
    segments = [segments_of(translator, text) for text in texts]
    questions = list[list[Question]]()
    for number in range(len(texts)):
        if prefix is not None:
            segments[number] = _merged(translator, segments[number], prefix[number])
        own = segments[number]
        asks = [Question(segment.text) for segment in own]
        if prefix is not None and asks:
            asks[0] = asks[0]._replace(prefix=prefix[number])
        if len(asks) == 1:
            asks[0] = asks[0]._replace(require=wishes.require)
        if asking.decoding.samples:
            asks = [one._replace(number=(first + number, n) if n else first + number) for n, one in enumerate(asks)]
        questions.append(asks)
    answers = iter(translate_segments(translator, [one for asks in questions for one in asks], asking, choose))
    made = []
    for text, own, asks in zip(texts, segments, questions, strict=True):
        each = [next(answers) for _ in asks]
        if len(asks) > 1 and wishes.require:
            each = _with_required(translator, text, own, asks, each, asking)
        translation = joined(text, own, each)
        required = wishes.required() if text.strip() else []
        unmet = [wanted.warning for wanted in required if not wanted.met(translation.text)]
        made.append(translation.warned(unmet))
    return made


def translate_segments(
    translator: BaseTranslator, questions: Sequence[Question], asking: Asking, choose: Choose | None = None
) -> list[Translation]:
    """The translation of each segment. Equal ones are searched once, unless they are drawn at random. Raises
    TooMuchError where they make an answer of too many tokens."""
    found, groups = dict[Question, Translation](), dict[tuple[bool, tuple[str, ...]], list[Question]]()
    times = Counter(questions)
    for question in times:
        if question.prefix is None and not has_words(question.text):
            found[question] = _kept(question.text, asking)
        else:
            groups.setdefault((question.prefix is not None, question.require), []).append(question)
    for (_, require), group in groups.items():
        prefix = [one.prefix for one in group if one.prefix is not None]
        made = search_and_mend(
            translator,
            [one.text for one in group],
            asking._replace(wishes=replace(asking.wishes, require=require)),
            prefix=prefix or None,
            numbers=[one.number for one in group],
            choose=choose,
        )
        both = zip(group, made, strict=True)
        copied = sum((times[question] - 1) * sum(map(len, translation.tokens)) for question, translation in both)
        translator.spend(copied, 0)
        found |= zip(group, map(_on_one_line, made), strict=True)
    return [found[question] for question in questions]


def _kept(text: str, asking: Asking) -> Translation:
    """A text that stays as it is, which is certain, and its only translation."""
    return Translation(text, text, 0.0, [(text, 0.0)], said=(WordLikelihoods(),) if asking.confidence else ())


def _on_one_line(found: Translation) -> Translation:
    """Without the line breaks that a model may have learnt: a segment has none."""
    if not any(BREAK.search(text) for text, _ in found.hypotheses):
        return found
    hypotheses = [(BREAK.sub(" ", text).strip(), score) for text, score in found.hypotheses]
    return found._replace(text=hypotheses[0][0], hypotheses=hypotheses, tokens=())


def _merged(translator: BaseTranslator, segments: list[Segment], prefix: str) -> list[Segment]:
    """As many segments as the prefix has sentences, as one."""
    count = len(sentences_in(prefix, translator.languages[1]))
    if count < 2 or len(segments) < 2:
        return segments
    several = segments[:count]
    text = " ".join(segment.text for segment in several)
    return [Segment(several[0].begin, several[-1].end, text), *segments[count:]]


def _with_required(
    translator: BaseTranslator,
    text: str,
    segments: Sequence[Segment],
    questions: Sequence[Question],
    found: Sequence[Translation],
    asking: Asking,
) -> list[Translation]:
    """The translations of a text's segments, with the required words that they lack: each in the segment whose score
    it lowers least."""
    translation = joined(text, segments, found).text
    wishes = asking.wishes
    required = zip(wishes.require, wishes.required(), strict=True)
    lacking = [word for word, wanted in required if not wanted.met(translation)]
    with_words = [n for n, question in enumerate(questions) if has_words(question.text)]
    where = dict[int, list[str]]()
    for word in lacking if with_words else ():
        tried = translate_segments(translator, [questions[n]._replace(require=(word,)) for n in with_words], asking)
        loss = [(bool(one.warnings), found[n].score - one.score, n) for n, one in zip(with_words, tried, strict=True)]
        where.setdefault(min(loss)[2], []).append(word)
    again = {n: questions[n]._replace(require=tuple(words)) for n, words in where.items()}
    better = dict(zip(again, translate_segments(translator, [*again.values()], asking), strict=True))
    return [better.get(n, one) for n, one in enumerate(found)]
