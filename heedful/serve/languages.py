"""Language pairs: which of the served models translates from which language to which."""

import functools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from heedful.data.text.headers import SIDES, meaning
from heedful.serve.hosted import Hosted, Models
from heedful.serve.public import FRAGMENT, TRANSLATE
from heedful.serve.refusals import Refused

KEPT = 1024  # names, which clients may invent


class ServedPair(NamedTuple):
    """A translator, with a pair of its languages as in its task.json."""

    hosted: Hosted
    source: str
    target: str
    several: bool = False  # whether it has other pairs too

    @property
    def settings(self) -> dict[str, str]:
        """The settings that ask the translator for this pair."""
        return {"source": self.source, "target": self.target} if self.several else {}


def pairs(models: Models) -> list[ServedPair]:
    """All directions of all translators, in the order in which they are served."""
    return [pair for hosted in models.values() for pair in _pairs_of(hosted)]


def _pairs_of(hosted: Hosted) -> list[ServedPair]:
    several = hosted.row.directions()(hosted.served.about) if hosted.row.directions else []
    one = pair_of(hosted)
    return [ServedPair(hosted, *way, several=True) for way in several] if several and one else [one] if one else []


def pair_of(hosted: Hosted) -> ServedPair | None:
    found = hosted.row.languages and hosted.row.languages()(hosted.served.about)
    return ServedPair(hosted, *found) if found and TRANSLATE in hosted.row.asks else None


@functools.lru_cache(KEPT)
def code(name: str) -> str:
    """The ISO code for a language's name or code, without its region; other names stay, in lower case."""
    found = meaning(name.lower())
    return name.lower() if found is None or found in SIDES else found


@functools.lru_cache(KEPT)
def listed(name: str) -> str:
    """A language's name for clients: its code, with the region if its run has one."""
    plain, base = name.lower().replace("_", "-"), code(name)
    region = plain.removeprefix(f"{base}-")
    return f"{base}-{region.upper()}" if plain.startswith(f"{base}-") and len(region) == 2 else base


@functools.lru_cache(KEPT)
def in_english(listed: str) -> str:
    """A language's name in English; a name that is no code stays."""
    from babel import Locale
    from babel.core import UnknownLocaleError

    try:
        return str(Locale.parse(listed, sep="-").get_display_name("en") or listed)
    except (ValueError, UnknownLocaleError):
        return listed


def unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def nearest(name: str, among: list[str]) -> list[str]:
    """The names of the requested language: exact matches, or else those with another region or none."""
    exact = [each for each in among if listed(each) == listed(name)]
    return exact or [each for each in among if code(each) == code(name)]


def pair_for(found: list[ServedPair], source: str | None, target: str, *, keys: tuple[str, str]) -> ServedPair:
    """The first translator for this pair. Without a source it is the only one that leads to the target: the language of
    a text is not detected. Raises Refused, which names one of `keys`."""
    targets = unique(pair.target for pair in found)
    near = nearest(target, targets)
    if not near:
        raise Refused(400, f"{keys[1]}: {target!r} is not served: choose {said(targets)}", param=keys[1])
    found = [pair for pair in found if pair.target in near]
    sources = unique(pair.source for pair in found)
    if source is None:
        if len(unique(map(code, sources))) > 1:
            what = f"the language of a text is not detected here: choose {keys[0]} from {said(sources)}"
            raise Refused(400, what, param=keys[0])
        source = sources[0]
    from_here = nearest(source, sources)
    if not from_here:
        what = f"{keys[0]}: {source!r} to {target!r} is not served: choose {said(sources)}"
        raise Refused(400, what, param=keys[0])
    return min((pair for pair in found if pair.source in from_here), key=lambda pair: near.index(pair.target))


def said(names: Iterable[str]) -> str:
    return ", ".join(unique(map(listed, names))) or "nothing: no translator is served"


async def translated(hosted: Hosted, texts: Sequence[str], **settings: Any) -> list[list[str]]:
    """The translations of each text, all different, with these options of the verb."""
    return [own[0]["texts"] for own in await hosted.ask(FRAGMENT, texts, settings)]
