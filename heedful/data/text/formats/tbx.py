"""TBX, the exchange format of terms (ISO 30042, of 2008 and of 2019), and the XML of MultiTerm."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from heedful.data.lines import listed
from heedful.data.text.columns import SOURCE, TARGET
from heedful.data.text.headers import meaning
from heedful.data.xml import elements, language_of, name_of
from heedful.errors import InputError

MOST_SYNONYMS = 100  # each is paired with each of the other language
MULTITERM = "mtf"
ROOTS = ("martif", "tbx", MULTITERM)
CONCEPTS, LANGUAGES = ("termentry", "conceptentry", "conceptgrp"), ("langset", "langsec")
TERMS: tuple[str, ...] = ("tig", "ntig", "termsec")
NOTES, STATUS = ("termnote", "descrip"), ("administrativestatus", "status")  # values of `type`, or names of elements
# The beginnings of statuses of terms that must not be used.
NOT_USED = (
    "deprecated",
    "superseded",
    "rejected",
    "obsolete",
    "forbidden",
    "prohibited",
    "do not use",
    "not to be used",
)


def read_tbx(path: Path, source: str, target: str) -> list[tuple[str, tuple[str, ...]]]:
    """Returns each source term with all target terms of the same concept, in order. "en" includes all regions. Terms
    whose status forbids their use are left out. Raises InputError or MissingError."""
    concepts, found, language, used = list[dict[str, list[str]]](), dict[str, list[str]](), "", True
    terms = TERMS
    for event, element in elements(path):
        name = name_of(element).lower()
        if event == "start":
            if name == MULTITERM:
                terms = ("termgrp",)
            elif name in CONCEPTS:
                found = {}
            elif name in LANGUAGES:
                language = language_of(element)
                if not language:
                    raise InputError(f"a {name_of(element)} without xml:lang", where=str(path), fix="export it again")
            elif name == "language" and terms != TERMS:
                language = language_of(element) or element.get("type", "")
            elif name in terms:
                used, term = True, ""
        elif name == "term":
            term = " ".join("".join(element.itertext()).split())
            element.clear()
        elif (element.get("type", "") if name in NOTES else name).lower() in STATUS:
            used = not (element.text or "").strip().lower().startswith(NOT_USED)
        elif name in terms and term and used:
            found.setdefault(language, []).append(term)
        elif name in CONCEPTS:
            concepts.append(found)
            element.clear()
    there = [*dict.fromkeys(language for concept in concepts for language in concept)]
    if not there:
        raise InputError("no term", where=str(path), fix="export the terms again")
    left, right = ({name: rank for rank, name in enumerate(own)} for own in _sides(there, source, target, str(path)))
    entries: list[tuple[str, tuple[str, ...]]] = []
    for concept in concepts:
        terms, forms = _terms(concept, left), _terms(concept, right)
        if len(terms) > 1 and max(len(terms), len(forms)) > MOST_SYNONYMS:
            what = f"a concept of {len(terms):,} and {len(forms):,} terms, such as {terms[0]!r}"
            raise InputError(what, where=str(path), fix=f"give at most {MOST_SYNONYMS} terms of one meaning")
        entries += [(term, forms) for term in terms if forms]
    return entries


def _terms(concept: Mapping[str, Sequence[str]], languages: Mapping[str, int]) -> tuple[str, ...]:
    """Returns the terms of a concept in these languages, by their ranks."""
    own = sorted(concept.keys() & languages.keys(), key=languages.__getitem__)
    return tuple(term for name in own for term in concept[name])


def _sides(there: Sequence[str], source: str, target: str, where: str) -> tuple[list[str], list[str]]:
    """Returns the languages of the source and of the target; one of these may be unknown. Raises InputError."""
    if (source, target) == (SOURCE, TARGET):
        what = f"its languages are {listed(there)}, and from which this model translates is not told"
        raise InputError(what, where=where, fix="give a table: a term, a TAB and its translation in each line")
    left, right = _called(source, there), _called(target, there)
    known = {*left, *right}
    rest = [name for name in there if name not in known]
    if len({meaning(name) or name for name in rest}) == 1:
        left, right = rest if source == SOURCE else left, rest if target == TARGET else right
    for name, own in ((source, left), (target, right)):
        if not own:
            fix = "give the terms of both languages"
            raise InputError(f"no {name!r}; its languages are {listed(there)}", where=where, fix=fix)
    if not {*left}.isdisjoint(right):
        raise InputError(f"source and target are both {left[0]!r}", where=where, fix="give terms of two languages")
    return left, right


def _called(name: str, there: Sequence[str]) -> list[str]:
    """Returns the languages that a name stands for: with a region, the exact one if it exists; otherwise all regions of
    the language."""
    exact = [each for each in there if each.lower() == name.lower()]
    same = [each for each in there if meaning(name) and meaning(each) == meaning(name)]
    return exact if exact and "-" in name else same or exact
