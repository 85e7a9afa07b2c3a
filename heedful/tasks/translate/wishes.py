"""Words that a translation must have or must not have: required words, the terms of a glossary, and words to avoid.

A required word or term is a whole word of the text, with the same capitals; at the beginning of a sentence, or where
the source is in CAPITALS, it may have others. A translation that has all of them anyway stays as it is; the others are
searched for again, by a constrained search.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

import torch
from jaxtyping import Bool
from torch import Tensor

from heedful.data.documents.words import Span
from heedful.data.lines import composed, sanitise
from heedful.data.text.glossary import OR, Glossary, glossary_of, read_glossary
from heedful.data.tokenizer import Tokenizer
from heedful.decode.avoid import Avoid, avoiding, is_letter
from heedful.decode.constrained import Phrase, Wish
from heedful.errors import InputError

Terms = str | Path | Glossary | Mapping[str, Any] | Iterable[Any]


class UsedTerm(TypedDict):
    """A term in a source: the form that the translation uses, or the possible forms, and whether it uses one."""

    source: str
    target: str
    used: bool


class WantedForms(NamedTuple):
    """One of these forms is wanted, `times` times. `source`: the term that they translate; None for a required word.
    `spans`: where in the source it stands."""

    forms: tuple[str, ...]
    times: int = 1
    source: str | None = None
    spans: tuple[Span, ...] = ()

    def said(self, text: str) -> list[str]:
        """The occurrences of the forms in a text, as whole words."""
        return _pattern(self.forms).findall(composed(text))

    def met(self, text: str) -> bool:
        return len(self.said(text)) >= self.times

    @property
    def warning(self) -> str:
        """The warning where it is not met."""
        often = f" {self.times} times" if self.times > 1 else ""
        of = f", for {self.source!r}" if self.source is not None else ""
        return f"the translation has no {' or '.join(map(repr, self.forms))}{often}{of}"

    def told(self, text: str) -> UsedTerm:
        said = self.said(text)
        return {"source": self.source or "", "target": said[0] if said else OR.join(self.forms), "used": bool(said)}


@dataclass(frozen=True)
class Wishes:
    """For all texts: words that every translation must have, words that none may have, and terms, for the sources that
    have them. A required word may have several forms, separated by "|"."""

    require: tuple[str, ...] = ()
    avoid: tuple[str, ...] = ()
    glossary: Glossary | None = None

    def __post_init__(self) -> None:
        """Raises InputError for a blank word, and for one that is both required and to be avoided."""
        if not all(map(str.strip, self.avoid)):
            raise InputError("a word to be avoided is empty", fix="leave it out")
        for word in self.require:
            if not (forms := forms_of(word)):
                raise InputError("a required word is empty", fix="leave it out")
            if all(self._avoids(form) for form in forms):
                raise InputError(f"{word!r} is required, and to be avoided", fix="leave out one of the two")

    def of(self, source: str) -> list[WantedForms]:
        """The words that the translation of this source must have."""
        terms: dict[str, WantedForms] = {}
        source = composed(source)
        for found in () if self.glossary is None else self.glossary.find(source):
            term, said = found.term, source[found.begin : found.end]
            forms = [form for form in term.forms if not self._avoids(form)] or [*term.forms]
            if len(said) > 1 and said.isupper() and not term.source.isupper():
                forms += [form.upper() for form in forms]
            before = terms.get(term.source)
            both = dict.fromkeys([*(before.forms if before else ()), *with_capital(forms)])
            spans = (*(before.spans if before else ()), (found.begin, found.end))
            terms[term.source] = WantedForms(tuple(both), len(spans), term.source, spans)
        return [*self.required(), *terms.values()]

    def required(self) -> list[WantedForms]:
        """The required words, in their order."""
        return [WantedForms(with_capital(forms_of(word))) for word in self.require]

    def _avoids(self, form: str) -> bool:
        return any(re.search(_whole(word), composed(form), re.IGNORECASE) for word in self.avoid)


NO_WISHES = Wishes()


def wishes_of(
    require: str | Collection[str], avoid: str | Collection[str], glossary: Terms | None, languages: tuple[str, str]
) -> Wishes:
    """Wishes as they are given from Python: one word or several; the glossary as a file, as pairs, or as a Glossary.
    Raises InputError or MissingError."""
    if isinstance(glossary, str | Path):
        glossary = read_glossary(glossary, source=languages[0], target=languages[1])
    elif glossary is not None and not isinstance(glossary, Glossary):
        pairs: list[Any] = [*(glossary.items() if isinstance(glossary, Mapping) else glossary)]
        if not all(map(_is_entry, pairs)):
            raise InputError("an entry of the glossary is not a term and its translation", fix='[["dog", "Hund"]]')
        glossary = glossary_of(pairs, language=languages[0], where="glossary")
    wanted, unwanted = ([own] if isinstance(own, str) else own for own in (require, avoid))
    return Wishes(tuple(map(sanitise, wanted)), tuple(map(sanitise, unwanted)), glossary)


def _is_entry(entry: object) -> bool:
    """Whether it is a term with one translation or a list of them."""
    match entry:
        case [str(), str()]:
            return True
        case [str(), [*forms]]:
            return all(isinstance(form, str) for form in forms)
    return False


def forms_of(word: str) -> tuple[str, ...]:
    return tuple(" ".join(form.split()) for form in word.split(OR) if form.strip())


def with_capital(forms: Sequence[str]) -> tuple[str, ...]:
    """The forms, and those in lower case also with a capital."""
    return tuple(dict.fromkeys([*forms, *(form[0].upper() + form[1:] for form in forms)]))


def spaced(letter: str) -> bool:
    """Whether it is a letter of a script that separates words by spaces."""
    return (letter.isalnum() or letter == "_") and unicodedata.east_asian_width(letter) != "W"


@lru_cache(maxsize=4096)
def _pattern(forms: tuple[str, ...]) -> re.Pattern[str]:
    """A pattern for any of the forms, the longest first."""
    return re.compile("|".join(map(_whole, sorted(forms, key=len, reverse=True))))


def _whole(form: str) -> str:
    """A pattern for a form as a whole word."""
    form = composed(form)
    before, after = r"(?<!\w)" if spaced(form[0]) else "", r"(?!\w)" if spaced(form[-1]) else ""
    return before + re.escape(form) + after


@dataclass
class Phrases:
    """Turns words into tokens of a vocabulary."""

    tokenizer: Tokenizer
    _avoiding: dict[tuple[str, ...], Avoid] = field(default_factory=dict)

    def wish(self, wanted: WantedForms) -> Wish:
        phrases = [phrase for form in wanted.forms for phrase in self._of(form)]
        whole = all(spaced(form[-1]) for form in wanted.forms)
        return Wish(tuple(dict.fromkeys(phrases)), whole, wanted.times)

    def _of(self, form: str) -> list[Phrase]:
        """The form's tokens as a separate word; in a script without spaces, also inside a text."""
        cut = [*self.tokenizer.encode([form]), *self.tokenizer.encode_whole([f" {form}"])]
        if not spaced(form[0]):
            return [tuple(ids) for ids in (*cut, *self.tokenizer.encode_whole([form])) if ids]
        apart = [tuple(ids) for ids in cut if ids and self.tokenizer.spelling(ids[0])[:1] == b" "]
        return apart or [tuple(ids) for ids in cut if ids]

    @cached_property
    def parting(self) -> Bool[Tensor, "V"]:
        """The tokens that cannot continue a word."""
        begins = [spelling[:1] for spelling in self._spellings]
        return torch.tensor([is_letter(first[0]) is False if first else False for first in begins])

    def avoiding(self, words: tuple[str, ...]) -> Avoid:
        """The rule that avoids these words."""
        if words not in self._avoiding:
            self._avoiding = {words: avoiding([*map(self.tokenizer.composed, words)], self._spellings)}
        return self._avoiding[words]

    @property
    def _spellings(self) -> list[bytes]:
        controls = {*self.tokenizer.controls}
        return [b"" if index in controls else self.tokenizer.spelling(index) for index in range(self.tokenizer.size)]
