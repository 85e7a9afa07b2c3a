"""Glossaries: terms and their translations, and where a text contains the terms, inflected or not.

A term is found by whole words. Two words match if they are equal except for capitals, or if they have the same stem, by
Snowball's rules for the language (Porter 2001), and similar lengths; without such rules, or if the term is in CAPITALS
(IT, US), only if they are equal. Between two words a text may have a hyphen or blanks, or what the term has there; the
signs at a term's ends (C++, .NET) must be in the text too. Longer terms take precedence over shorter ones, then exact
spelling, and no character belongs to two terms.
"""

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from heedful.data.lines import COMBINING, composed, read_beginning, read_bytes, sanitise
from heedful.data.parts import kind_of
from heedful.data.text.columns import SOURCE, TARGET
from heedful.data.text.formats import LOOKED_AT, first_element
from heedful.data.text.formats.tbx import ROOTS, read_tbx
from heedful.data.text.headers import meaning
from heedful.data.text.rows import read_rows
from heedful.data.text.term_tables import FIX, table_of, table_terms
from heedful.errors import InputError, counted

OR = "|"  # separates the forms of a target
ENDING = 4  # letters that inflection may add or remove
WORD = re.compile(rf"\w[\w{COMBINING}]*")
BETWEEN = re.compile(r"[\s\-\u2010\u2011'\u2019]*")  # allowed between the words of any term
SIGNS = str.maketrans("\u2010\u2011\u2019", "--'")  # written in either way
STEMMERS = {
    "ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german", "el": "greek", "en": "english",
    "eo": "esperanto", "es": "spanish", "et": "estonian", "eu": "basque", "fa": "persian", "fi": "finnish",
    "fr": "french", "ga": "irish", "hi": "hindi", "hu": "hungarian", "hy": "armenian", "id": "indonesian",
    "it": "italian", "lt": "lithuanian", "nb": "norwegian", "ne": "nepali", "nl": "dutch", "nn": "norwegian",
    "no": "norwegian", "pl": "polish", "pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian",
    "sv": "swedish", "ta": "tamil", "tr": "turkish", "yi": "yiddish",
}  # fmt: skip


class Term(NamedTuple):
    """A term, and the forms of which its translation must contain one."""

    source: str
    forms: tuple[str, ...]


class FoundTerm(NamedTuple):
    """A term in a text, at the characters from `begin` to before `end`."""

    term: Term
    begin: int
    end: int


class _Parts(NamedTuple):
    """A term with its words, the signs between them, without blanks, and the signs at its ends."""

    term: Term
    words: list[str]
    between: list[str]
    before: str
    after: str


@dataclass
class _Stems:
    """A node in a tree of stems: the terms that end here, and the nodes of the stems that may follow."""

    terms: list[_Parts] = field(default_factory=list)
    after: "dict[str, _Stems]" = field(default_factory=dict)


@dataclass(frozen=True)
class Glossary:
    """The terms of a `language`, with its name as the readers of texts know it."""

    terms: tuple[Term, ...]
    language: str = SOURCE
    left_out: int = 0  # rows of a table without a usable term, or without a usable translation

    def find(self, text: str) -> list[FoundTerm]:
        """Returns the terms in a composed text, in order."""
        words, signs = [*_words(text)], _signs(text)
        keys = [self.stem(text[begin:end]) for begin, end in words]
        found, taken = list[FoundTerm](), set[int]()
        candidates = [each for place in range(len(keys)) for each in self._from(keys, place)]
        for span, terms in sorted(candidates, key=lambda each: -len(each[0])):
            at = words[span.start : span.stop]
            there = [text[begin:end] for begin, end in at]
            gaps = [signs[before[1] : after[0]] for before, after in pairwise(at)]
            free = list[tuple[_Parts, range]]()
            for parts in terms:
                characters = range(at[0][0] - len(parts.before), at[-1][1] + len(parts.after))
                if taken.isdisjoint(characters) and self._same(parts, there, gaps, signs, at):
                    free.append((parts, characters))
            if free:
                parts, characters = min(free, key=lambda each: _unlike(there, each[0]))
                taken.update(characters)
                found.append(FoundTerm(parts.term, characters.start, characters.stop))
        return sorted(found, key=lambda each: each.begin)

    def _from(self, keys: Sequence[str], place: int) -> Iterator[tuple[range, list[_Parts]]]:
        """Yields the spans of words from a position on that may be terms, by their stems, and these terms."""
        node = self._by_stems
        for end in range(place, len(keys)):
            if (after := node.after.get(keys[end])) is None:
                return
            node = after
            if node.terms:
                yield range(place, end + 1), node.terms

    @cached_property
    def _by_stems(self) -> "_Stems":
        root = _Stems()
        for term in self.terms:
            parts = _parts(term)
            node = root
            for word in parts.words:
                node = node.after.setdefault(self.stem(word), _Stems())
            node.terms.append(parts)
        return root

    @cached_property
    def stem(self) -> Callable[[str], str]:
        """Returns the stem of a word, in lower case; in a language without rules, the word in lower case."""
        code = meaning(self.language)
        if code not in STEMMERS:
            return str.lower
        import snowballstemmer  # imported only for a glossary

        stem = snowballstemmer.stemmer(STEMMERS[code]).stemWord
        return lru_cache(1 << 16)(lambda word: stem(word.lower()))

    def _same(
        self, parts: _Parts, words: Sequence[str], gaps: Sequence[str], signs: str, at: Sequence[tuple[int, int]]
    ) -> bool:
        if not (signs.endswith(parts.before, 0, at[0][0]) and signs.startswith(parts.after, at[-1][1])):
            return False
        for gap, between in zip(gaps, parts.between, strict=True):
            if not BETWEEN.fullmatch(gap) and _unspaced(gap) != between:
                return False
        return all(self._alike(word, other) for word, other in zip(words, parts.words, strict=True))

    def _alike(self, word: str, own: str) -> bool:
        if len(own) > 1 and own.isupper():
            return word == own
        return self.stem(word) == self.stem(own) and abs(len(word) - len(own)) <= ENDING


def _parts(term: Term) -> _Parts:
    at, signs = [*_words(term.source)], _signs(term.source)
    words = [term.source[begin:end] for begin, end in at]
    between = [_unspaced(signs[before[1] : after[0]]) for before, after in pairwise(at)]
    return _Parts(term, words, between, signs[: at[0][0]] if at else "", signs[at[-1][1] :] if at else "")


def _signs(text: str) -> str:
    """The text with one way to write each blank, hyphen and apostrophe, of the same length."""
    return re.sub(r"\s", " ", text).translate(SIGNS)


def _unspaced(text: str) -> str:
    return "".join(text.split())


def _unlike(words: list[str], parts: _Parts) -> tuple[int, bool, bool]:
    """Sort key for how a text differs from a term: least with most signs at the ends, then if equal, then if only
    capitals differ."""
    other = [word.lower() for word in words] != [word.lower() for word in parts.words]
    return -len(parts.before + parts.after), other, words != parts.words


def glossary_of(
    terms: Iterable[tuple[str, str | Sequence[str]]], *, language: str = SOURCE, where: str = ""
) -> Glossary:
    """Makes a glossary of terms and translations; "|" separates several forms. If a term occurs twice, the forms are
    joined. Raises InputError for a term without a word, or without a translation."""
    forms: dict[str, dict[str, None]] = {}
    for source, target in terms:
        texts = [*map(sanitise, [target] if isinstance(target, str) else target)]
        each = [" ".join(composed(form).split()) for text in texts for form in text.split(OR) if form.strip()]
        source = " ".join(composed(sanitise(source)).split())
        if not source and not each:
            continue
        if not WORD.search(source) or not each:
            what = f"a term without {'a translation' if WORD.search(source) else 'a word'}: {source or each[0]!r}"
            raise InputError(what, where=where, fix=FIX)
        forms.setdefault(source, {}).update(dict.fromkeys(each))
    if not forms:
        raise InputError("no term", where=where, fix=FIX)
    return Glossary(tuple(Term(source, tuple(own)) for source, own in forms.items()), language)


def entries_in(text: str, *, where: str = "") -> list[tuple[str, str]]:
    """Parses a text with a term, a TAB and its translation in each line. Raises InputError."""
    made = []
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        if line.strip():
            cells = [" ".join(cell.split()) for cell in line.split("\t")]
            if len(cells) != 2:
                what = f"line {number} has {counted(len(cells), 'column')}"
                raise InputError(what, where=where, fix=FIX)
            made.append((cells[0], cells[1]))
    return made


def read_glossary(path: str | Path, *, source: str = SOURCE, target: str = TARGET) -> Glossary:
    """Reads the terms in a file: a table (TSV, CSV, Excel), whose first line may name the languages; TBX, or the XML of
    MultiTerm; a JSON object; or any other file that `heed train --data` reads. `source` and `target` are languages.
    Raises InputError or MissingError."""
    path = Path(path)
    if first_element(read_beginning(path, LOOKED_AT)) in ROOTS:
        return glossary_of(read_tbx(path, source, target), language=source, where=str(path))
    if (mapping := _mapping(path)) is not None:
        return glossary_of(mapping.items(), language=source, where=str(path))
    if (rows := table_of(path)) is not None:
        entries, left_out = table_terms(rows, source, target, where=str(path))
        return replace(glossary_of(entries, language=source, where=str(path)), left_out=left_out)
    pairs, taken = read_rows(path, source, target)
    glossary = glossary_of(((row[0], row[1:]) for _, row in pairs), language=source, where=str(path))
    return replace(glossary, left_out=len(taken.fuzzy))


def _mapping(path: Path) -> dict[str, str] | None:
    """Returns the contents of a JSON file that is one object of texts, such as {"dog": "Hund"}; None for other
    files."""
    if kind_of(path) != ".json":
        return None
    with suppress(ValueError, RecursionError):  # the reader that is tried next reports the error
        whole = json.loads(read_bytes(path))
        if isinstance(whole, dict) and whole and all(isinstance(each, str) for each in whole.values()):
            return whole
    return None


def _words(text: str) -> Iterator[tuple[int, int]]:
    """Yields the spans of the words; in scripts without spaces, each character is a word."""
    for run in WORD.finditer(text):
        begin = run.start()
        for place in range(run.start(), run.end()):
            if unicodedata.east_asian_width(text[place]) == "W":
                if begin < place:
                    yield begin, place
                yield place, place + 1
                begin = place + 1
        if begin < run.end():
            yield begin, run.end()
