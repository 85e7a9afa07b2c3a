"""TBX, in which terms are exchanged (ISO 30042, of 2008 and of 2019)."""

from collections import Counter
from pathlib import Path

from heedful.data.text.formats.languages import two_languages
from heedful.data.xml import elements, language_of, name_of
from heedful.errors import InputError

ROOTS = ("martif", "tbx")
CONCEPTS, LANGUAGES, TERMS = ("termentry", "conceptentry"), ("langset", "langsec"), ("tig", "ntig", "termsec")
STATUS = "administrativestatus"  # the type of a note on a term, or an element of this name
NOT_USED = ("deprecated", "superseded", "rejected", "obsolete")  # how a status begins of what is not to be said


def read_tbx(path: Path, source: str, target: str) -> list[tuple[str, tuple[str, ...]]]:
    """Each term of the source's language with all terms of the target's that stand for the same, in their order. Terms
    whose status says that they are not to be used are left out. Raises InputError or MissingError."""
    concepts, found, language, used = list[dict[str, list[str]]](), dict[str, list[str]](), "", True
    for event, element in elements(path):
        name = name_of(element).lower()
        if event == "start":
            if name in CONCEPTS:
                found = {}
            elif name in LANGUAGES:
                language = language_of(element)
                if not language:
                    raise InputError(f"a {name_of(element)} without xml:lang", where=str(path), fix="export it again")
            elif name in TERMS:
                used, term = True, ""
        elif name == "term":
            term = " ".join("".join(element.itertext()).split())
        elif (element.get("type", "") if name == "termnote" else name).lower() == STATUS:
            used = not (element.text or "").strip().lower().startswith(NOT_USED)
        elif name in TERMS and term and used:
            found.setdefault(language, []).append(term)
        elif name in CONCEPTS:
            concepts.append(found)
            element.clear()
    there = Counter(language for concept in concepts for language in concept)
    if not there:
        raise InputError("no term", where=str(path), fix="export the terms again")
    left, right = two_languages([name for name, _ in there.most_common()], source, target, where=str(path))
    return [(term, tuple(concept[right])) for concept in concepts if right in concept for term in concept.get(left, ())]
