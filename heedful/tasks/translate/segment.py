"""Cuts texts into segments, which a model translates one by one.

A segment is a sentence of a line. A model that was mostly trained on texts of several sentences gets a whole line, as
long as it is no longer than the longest of these. A sentence that is longer than all that the model was trained on is
halved at the end of a clause, or else of a word, until its parts are short enough.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from heedful.core.seeds import hashed
from heedful.data.documents.plain import lines_of
from heedful.data.documents.sentences import halves, middle_of, sentences_in, trimmed
from heedful.data.documents.words import Span
from heedful.data.lines import sanitise
from heedful.data.protected import ESCAPES, without
from heedful.errors import InputError, counted
from heedful.tasks.translate.model import BaseTranslator

UNKNOWN = 256  # tokens of a segment, for a model of which it is not known how long its training sources were
MOSTLY = 0.5  # the share from which a model gets several sentences at once
COUNTED = 10_000  # training sources whose sentences are counted, at most
OFTEN = 0.01  # the share of sources from which a model reads one of the signs below as it is
# What models seldom see: white space other than a blank, and what cannot be seen, such as controls, soft hyphens,
# spaces without width, marks of direction and of byte order. (Joiners within words of Persian or Hindi are letters.)
LINE_ENDS = "\t\n\v\f\r\x1c\x1d\x1e\x1f\x85\u2028\u2029"  # never read as they are, and the TAB
SPACES = LINE_ENDS + "\u00a0\u1680\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
UNSEEN = "\u00ad\u061c\u200b\u200e\u200f\ufeff" + "".join(
    chr(sign)
    for begin, end in ((0, 0x20), (0x7F, 0xA0), (0x202A, 0x202F), (0x2060, 0x2065), (0x2066, 0x206A))
    for sign in range(begin, end)
    if chr(sign) not in SPACES
)
AS_READ = str.maketrans(SPACES, " " * len(SPACES), UNSEEN)


class Segment(NamedTuple):
    """A part of a text, and how it is searched. `parts`: the number of parts of its sentence, more than 1 for a
    sentence that was cut."""

    begin: int
    end: int
    text: str
    parts: int = 1


def segments_of(translator: BaseTranslator, text: str, *, lines: bool = True, sentences: bool = True) -> list[Segment]:
    """The segments of a text, without the white space around them. With `lines`, none goes over the end of a line;
    without `sentences`, lines are cut only where they are too long. A blank text is one segment, and so is any text for
    a model that summarises or denoises."""
    if not by_sentences(translator):
        return [Segment(0, len(text), text)]
    spec, most, read = translator.spec, _longest(translator), translator.as_read(text)
    at_once = not sentences or (spec.sources_of_several_sentences or 0.0) >= MOSTLY
    signs = {sign: read_as for sign, read_as in AS_READ.items() if chr(sign) not in (spec.reads_signs or "")}
    found, end = list[Segment](), 0
    for line in lines_of(text) if lines else [text]:
        begin, end = end, end + len(line)
        first, last = trimmed(text, begin, end)
        if at_once and (not sentences or _tokens(translator, read[first:last]) <= most):
            spans = [(first, last)]
        else:
            inside = sentences_in(text[begin:end], spec.source or "")
            spans = [part for one, other in inside for part in _lines_of(text, (begin + one, begin + other))]
        for span in spans:
            parts = _cut(translator, read, span, most)
            found += [Segment(*part, read[slice(*part)].translate(signs).strip(), len(parts)) for part in parts]
    return found or [Segment(0, len(text), text)]


def sentence_of(translator: BaseTranslator, text: str, number: int) -> str:
    """The sentence of this number, from 1, of a text that is looked at: a translator reads one at a time. Raises
    InputError for a text without words, and for a sentence that is not there."""
    segments = segments_of(translator, sanitise(text))
    if not text.strip():
        raise InputError("there is no text", fix="give a sentence")
    if not 1 <= number <= len(segments):
        what = f"no sentence {number}: the text has {counted(len(segments), 'sentence')}"
        raise InputError(what, where="--sentence", fix="they are counted from 1")
    return segments[number - 1].text


def by_sentences(translator: BaseTranslator) -> bool:
    """Whether it translates sentence by sentence, unlike a model that summarises or denoises."""
    return translator.spec.language_pair is not None and not translator.marked


def has_words(text: str) -> bool:
    """Whether there is a letter outside of placeholders and addresses: any other text stays as it is."""
    return any(map(str.isalpha, without(text)[0]))


def _lines_of(text: str, span: Span) -> list[Span]:
    """A sentence in parts, where a program's escapes stand for ends of lines within it ("\\n" in two characters)."""
    ends = [(span[0], span[0]), *(found.span() for found in ESCAPES.finditer(text, *span)), (span[1], span[1])]
    parts = [trimmed(text, one[1], other[0]) for one, other in pairwise(ends)]
    return [part for part in parts if part[0] < part[1]]


def _longest(translator: BaseTranslator) -> int:
    """The most tokens of a segment: no more than were learnt, and than are read."""
    spec = translator.spec
    known = (spec.longest_learnt, spec.longest_source, translator.room)
    return max(1, min((limit for limit in known if limit is not None), default=UNKNOWN))


def _cut(translator: BaseTranslator, read: str, span: Span, most: int) -> list[Span]:
    """A sentence in parts of at most `most` tokens, each without white space around it; none of a blank one."""
    done, todo = list[Span](), [span] if span[0] < span[1] else []
    while todo:
        begin, end = todo.pop()
        part = read[begin:end]
        middle = middle_of(part)
        if not 0 < middle < len(part) or not has_words(part) or _tokens(translator, part) <= most:
            done.append((begin, end))
        else:
            both = halves(part, clauses=False) or ((0, middle), (middle, end - begin))
            todo += [(begin + first, begin + last) for first, last in reversed(both)]
    return done


def _tokens(translator: BaseTranslator, text: str) -> int:
    return len(translator.source.encode([translator.as_read(text)])[0])


def source_facts(sources: Sequence[str], language: str) -> tuple[float, str]:
    """From at most `COUNTED` of the training sources: the share of them that have several sentences, and the white
    space and unseen signs that many have."""
    some = sorted(sources, key=hashed)[:COUNTED] if len(sources) > COUNTED else sources
    several = sum(len(sentences_in(text, language)) > 1 for text in some)
    had = Counter(sign for text in some for sign in {*text} if ord(sign) in AS_READ and sign not in LINE_ENDS)
    signs = "".join(sorted(sign for sign, count in had.items() if count >= OFTEN * len(some)))
    return round(several / max(1, len(some)), 4), signs
