"""Terms and how they are to be translated, and where a text has them, inflected or not.

A term is found by whole words. Two words are the same where they are alike but for capitals, or where they have one
stem, by Snowball's rules for the language (Porter 2001), and lengths that hardly differ; in a language without such
rules, or of a term in CAPITALS (IT, US), only where they are alike. Longer terms come before shorter ones, of as long
ones what is written as the text has it, and no word is in two.
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

from heedful.data.lines import read_beginning, read_bytes
from heedful.data.parts import kind_of
from heedful.data.text.columns import SOURCE, TARGET
from heedful.data.text.formats import first_element
from heedful.data.text.formats.tbx import ROOTS, read_tbx
from heedful.data.text.headers import meaning
from heedful.data.text.rows import read_rows
from heedful.data.text.term_tables import FIX, table_of, table_terms
from heedful.errors import InputError, counted

OR = "|"  # parts forms of a target
LOOKED_AT = 4096  # bytes
ENDING = 4  # letters that inflection may add, or take away
WORD = re.compile(r"\w+")
BETWEEN = re.compile(r"[\s\-\u2010\u2011'\u2019]*")  # words of a term
STEMMERS = {
    "ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german", "el": "greek", "en": "english",
    "eo": "esperanto", "es": "spanish", "et": "estonian", "eu": "basque", "fa": "persian", "fi": "finnish",
    "fr": "french", "ga": "irish", "hi": "hindi", "hu": "hungarian", "hy": "armenian", "id": "indonesian",
    "it": "italian", "lt": "lithuanian", "nb": "norwegian", "ne": "nepali", "nl": "dutch", "nn": "norwegian",
    "no": "norwegian", "pl": "polish", "pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian",
    "sv": "swedish", "ta": "tamil", "tr": "turkish", "yi": "yiddish",
}  # fmt: skip


class Term(NamedTuple):
    """A term, and the forms of which its translation is to have one."""

    source: str
    forms: tuple[str, ...]


class FoundTerm(NamedTuple):
    """A term in a text, at the characters from `begin` to before `end`."""

    term: Term
    begin: int
    end: int


@dataclass
class _Stems:
    """The terms of which these are all stems, each with its words; and what other stems may come after."""

    terms: list[tuple[list[str], Term]] = field(default_factory=list)
    after: "dict[str, _Stems]" = field(default_factory=dict)


@dataclass(frozen=True)
class Glossary:
    """Terms of a `language`, as it is called where texts are read."""

    terms: tuple[Term, ...]
    language: str = SOURCE
    left_out: int = 0  # rows of a table without a term, or without a translation, that is to be used

    def find(self, text: str) -> list[FoundTerm]:
        """The terms that a text has, in its order."""
        words = [*_words(text)]
        keys = [self.stem(text[begin:end]) for begin, end in words]
        found, taken = list[FoundTerm](), set[int]()
        candidates = [each for place in range(len(keys)) for each in self._from(keys, place)]
        for span, terms in sorted(candidates, key=lambda each: -len(each[0])):
            if taken.isdisjoint(span):
                own = words[span.start : span.stop]
                if same := [one for one in terms if self._same(text, own, one[0])]:
                    _, term = min(same, key=lambda one: _unlike([text[begin:end] for begin, end in own], one[0]))
                    taken.update(span)
                    found.append(FoundTerm(term, own[0][0], own[-1][1]))
        return sorted(found, key=lambda one: one.begin)

    def _from(self, keys: Sequence[str], place: int) -> Iterator[tuple[range, list[tuple[list[str], Term]]]]:
        """The words from a place on that terms may be, by their stems, and these terms."""
        node = self._by_stems
        for end in range(place, len(keys)):
            if (after := node.after.get(keys[end])) is None:
                return
            node = after
            if node.terms:
                yield range(place, end + 1), node.terms

    @cached_property
    def _by_stems(self) -> "_Stems":
        made = _Stems()
        for term in self.terms:
            words = [term.source[begin:end] for begin, end in _words(term.source)]
            node = made
            for word in words:
                node = node.after.setdefault(self.stem(word), _Stems())
            node.terms.append((words, term))
        return made

    @cached_property
    def stem(self) -> Callable[[str], str]:
        """The stem of a word, in small letters; a word as it is, in a language without rules."""
        code = meaning(self.language)
        if code not in STEMMERS:
            return str.lower
        import snowballstemmer  # only who has a glossary waits for it

        stem = snowballstemmer.stemmer(STEMMERS[code]).stemWord
        return lru_cache(1 << 16)(lambda word: stem(word.lower()))

    def _same(self, text: str, words: Sequence[tuple[int, int]], own: Sequence[str]) -> bool:
        if not all(BETWEEN.fullmatch(text[one[1] : other[0]]) for one, other in pairwise(words)):
            return False
        return all(self._alike(text[begin:end], word) for (begin, end), word in zip(words, own, strict=True))

    def _alike(self, word: str, own: str) -> bool:
        if len(own) > 1 and own.isupper():
            return word == own
        return self.stem(word) == self.stem(own) and abs(len(word) - len(own)) <= ENDING


def _unlike(words: list[str], own: list[str]) -> tuple[bool, bool]:
    """What a text has beside a term that it is found as: less where only capitals differ, least where nothing does."""
    return [word.lower() for word in words] != [word.lower() for word in own], words != own


def glossary_of(
    terms: Iterable[tuple[str, str | Sequence[str]]], *, language: str = SOURCE, where: str = ""
) -> Glossary:
    """A glossary of terms and their translations, of which a "|" parts several forms. Of a term that comes twice, all
    forms are allowed. Raises InputError for a term of no word, or without a translation."""
    forms: dict[str, list[str]] = {}
    for source, target in terms:
        texts = [target] if isinstance(target, str) else target
        each = [" ".join(form.split()) for text in texts for form in text.split(OR) if form.strip()]
        source = " ".join(source.split())
        if not source and not each:
            continue
        if not WORD.search(source) or not each:
            what = f"a term without {'a translation' if WORD.search(source) else 'a word'}: {source or each[0]!r}"
            raise InputError(what, where=where, fix=FIX)
        own = forms.setdefault(source, [])
        own += [form for form in each if form not in own]
    if not forms:
        raise InputError("no term", where=where, fix=FIX)
    return Glossary(tuple(Term(source, tuple(own)) for source, own in forms.items()), language)


def entries_in(text: str, *, where: str = "") -> list[tuple[str, str]]:
    """Of a text, a term, a TAB and its translation in each line. Raises InputError."""
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
    """The terms in a file: a table (TSV, CSV, Excel), whose first line may name the languages; TBX, or the XML of
    MultiTerm; an object of JSON; or any other file that `heed train --data` reads. `source` and `target` are languages.
    Raises InputError or MissingError."""
    path = Path(path)
    if first_element(read_beginning(path, LOOKED_AT)) in ROOTS:
        return glossary_of(read_tbx(path, source, target), language=source, where=str(path))
    if (mapping := _mapping(path)) is not None:
        return glossary_of(mapping.items(), language=source, where=str(path))
    if (rows := table_of(path)) is not None:
        entries, left_out = table_terms(rows, source, target, where=str(path))
        return replace(glossary_of(entries, language=source, where=str(path)), left_out=left_out)
    pairs, _ = read_rows(path, source, target)
    return glossary_of(((row[0], row[1:]) for _, row in pairs), language=source, where=str(path))


def _mapping(path: Path) -> dict[str, str] | None:
    """What a JSON file has that is one object of texts, such as {"dog": "Hund"}; None of another file."""
    if kind_of(path) != ".json":
        return None
    with suppress(ValueError, RecursionError):  # whoever reads it otherwise says what is wrong
        whole = json.loads(read_bytes(path))
        if isinstance(whole, dict) and whole and all(isinstance(each, str) for each in whole.values()):
            return whole
    return None


def _words(text: str) -> Iterator[tuple[int, int]]:
    """Where the words are; of a script without spaces each character is one."""
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
