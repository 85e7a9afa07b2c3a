"""Parts of sentences, drawn at random from the words and rules of the phrasebook: who, what, where, when."""

from collections.abc import Sequence
from random import Random
from typing import Literal

from heedful.data.made.phrasebook import grammar
from heedful.data.made.phrasebook.figures import DAYS, counted
from heedful.data.made.phrasebook.grammar import Pair, Phrase, Tense, join, noun_phrase
from heedful.data.made.phrasebook.words import ADJECTIVES, NOUNS, VERBS, Adjective, Noun, Verb

Complement = tuple[str, str] | Phrase
Left = Literal["", "object", "place", "time"]


def tagged(*tags: str) -> list[Noun]:
    """The nouns that have any of these tags."""
    return [noun for noun in NOUNS.values() if not noun.tags.isdisjoint(tags)]


def styled(*styles: str) -> list[Verb]:
    """The verbs of these styles."""
    return [verb for verb in VERBS.values() if verb.style in styles]


def pairs(text: str) -> list[Pair]:
    """Parses entries such as "here: ici", separated by commas."""
    return [Pair(*entry.split(": ")) for entry in text.split(", ")]


FITTING = {noun.english: [a for a in ADJECTIVES.values() if a.tags & noun.tags] for noun in NOUNS.values()}
OF_PEOPLE = [adjective for adjective in ADJECTIVES.values() if "family" in adjective.tags]

OBJECTS = {verb.english: tagged(*verb.tags) for verb in VERBS.values()}
WITH_OBJECT = {
    "present": styled("action", "event", "state", "taste"),
    "past": styled("action", "event"),
    "future": styled("action", "event"),
    **dict.fromkeys(("progressive", "can", "must", "want"), styled("action")),
}
ACTIVITIES, MOTIONS, REFLEXIVES = styled("activity"), styled("motion"), styled("reflexive")
WITHOUT_OBJECT = ACTIVITIES + MOTIONS + REFLEXIVES
_OF_ANIMALS = frozenset(("sleep", "run", "swim", "see", "hear", "come", "come back", "wake up", "play", "arrive"))
_AWAY = frozenset(("run", "walk", "swim", "travel", "go out", "fall"))

PEOPLE, FAMILY, ANIMALS, PLACES = tagged("person"), tagged("family"), tagged("animal"), tagged("place")
SMALL = tagged("thing", "food", "animal")
SOLID = tagged("thing", "food", "animal", "furniture", "vehicle")
SITES, FURNITURE = tagged("at"), tagged("furniture")
_OWN_PEOPLE = [noun for noun in PEOPLE if "own" in noun.tags]
_SPOTS = [noun for noun in tagged("furniture", "place", "vehicle") if "at" not in noun.tags]
_INSIDE = tagged("in")
_CONTAINERS = [NOUNS[name] for name in ("box", "bag", "suitcase", "basket")]
_PERIODS = [NOUNS[name] for name in ("day", "week", "month", "year")]

TENSES: tuple[Tense, ...] = (
    *("present",) * 6,
    *("past",) * 6,
    *("future",) * 3,
    *("progressive",) * 2,
    *("can", "must", "want"),
)
PRONOUNS = tuple(grammar.PRONOUNS.values())
NAMES = [Phrase(n, n, human=True) for n in ("Paul", "Pierre", "Marc", "Luc", "Thomas", "Antoine", "Arthur")] + [
    Phrase(n, n, feminine=True, human=True) for n in ("Marie", "Julie", "Anne", "Sophie", "Claire", "Alice", "Emma")
]
POSSESSIVES = ("my", "your", "his", "her", "our", "their")
# Pronouns as objects, in the order of `PRONOUNS`; a subject does not act on itself without a reflexive verb.
TONIC = pairs("me: moi, you: toi, him: lui, her: elle, us: nous, them: eux")
INDIRECT = pairs("me: me, you: te, him: lui, her: lui, us: nous, them: leur")
_SELF = {0: (0, 4), 1: (1,), 2: (), 3: (0, 4), 4: ()}

_AROUND = pairs("near: près de, next to: à côté de, behind: derrière, in front of: devant, far from: loin de")
_HERE = pairs("here: ici, there: là-bas, outside: dehors")
ON_DAYS = [Pair(f"on {day.english}", day.french) for day in DAYS]
_WHEN: dict[str, list[Pair]] = {
    "present": [
        *pairs("every day: tous les jours, every morning: tous les matins, every evening: tous les soirs"),
        *pairs("every week: toutes les semaines, in the morning: le matin, today: aujourd'hui"),
        *pairs("in summer: en été, in winter: en hiver, in spring: au printemps"),
        *(Pair(f"on {day.english}s", f"le {day.french}") for day in DAYS),
    ],
    "progressive": pairs("now: maintenant, today: aujourd'hui, at the moment: en ce moment"),
    "past": [
        *pairs("yesterday: hier, yesterday morning: hier matin, last week: la semaine dernière"),
        *pairs("last month: le mois dernier, last year: l'année dernière, this morning: ce matin"),
        *ON_DAYS,
    ],
    "future": [
        *pairs("tomorrow: demain, tomorrow morning: demain matin, next week: la semaine prochaine"),
        *pairs("next month: le mois prochain, next year: l'année prochaine, tonight: ce soir, soon: bientôt"),
        *ON_DAYS,
    ],
}


def other_person(rng: Random, subject: Phrase) -> int:
    """Returns an index of `TONIC` and `INDIRECT` that is not the subject's."""
    person = rng.randrange(6)
    while person in _SELF[subject.person]:
        person = rng.randrange(6)
    return person


def adjectives_of(rng: Random, noun: Noun) -> tuple[Adjective, ...]:
    """None, one, or one for each side of the French noun."""
    fitting, chance = FITTING[noun.english], rng.random()
    if not fitting or chance < 0.55:
        return ()
    first = rng.choice(fitting)
    second = rng.choice(fitting) if chance > 0.85 else first
    said = {first.english, second.english}
    # That a thing is open or closed is said of it; it is not called so.
    if "family" in noun.tags or said & {"open", "closed"} or said == {"long", "short"}:
        return ()
    if first.before == second.before:
        return (first,)
    return (first, second) if first.before else (second, first)


def item(rng: Random, nouns: Sequence[Noun], *, negated: bool = False, ask: bool = False) -> Phrase:
    """Any phrase of one of the nouns, as an object; "any" replaces "some" under negation and in questions."""
    noun = rng.choice(nouns)
    if noun.human and rng.random() < 0.2:
        return rng.choice(NAMES)
    if "family" in noun.tags:
        return definite(rng, [noun])
    adjectives, some = adjectives_of(rng, noun), "any" if negated or ask else "some"
    known = rng.choice(POSSESSIVES) if "own" in noun.tags and rng.random() < 0.5 else "the"
    if "mass" in noun.tags:
        return noun_phrase(rng.choice((known, some, some)), noun, *adjectives, negated=negated)
    if rng.random() < 0.6:
        return noun_phrase(rng.choice((known, known, "a", "a", "this")), noun, *adjectives, negated=negated)
    if negated or rng.random() < 0.6:
        determiner = rng.choice((known, some, some, "these"))
        return noun_phrase(determiner, noun, *adjectives, plural=True, negated=negated)
    if rng.random() < 0.6:
        return counted(rng.randint(2, 20), noun, *adjectives)
    return noun_phrase(rng.choice(("several", "a few", "many", "all the")), noun, *adjectives, plural=True)


def definite(rng: Random, nouns: Sequence[Noun], *, plural: bool | None = None, plain: bool = False) -> Phrase:
    """A definite phrase of one of the nouns: with "the", "this" or a possessive; without adjectives if `plain`."""
    noun = rng.choice(nouns)
    adjectives = () if plain else adjectives_of(rng, noun)
    many = noun.tags.isdisjoint(("mass", "one")) and (rng.random() < 0.3 if plural is None else plural)
    if "family" in noun.tags:
        return noun_phrase(rng.choice(POSSESSIVES), noun, plural=many)
    known = rng.choice(POSSESSIVES) if "own" in noun.tags and rng.random() < 0.4 else "the"
    return noun_phrase(rng.choice((known, known, "these" if many else "this")), noun, *adjectives, plural=many)


def who(rng: Random, verb: Verb | None = None, *, named: bool = False, every: bool = False) -> Phrase:
    """A person, or an animal if the verb allows it; with `named`, neither a pronoun nor a pair of names."""
    if verb and verb.english in _OF_ANIMALS and rng.random() < 0.2:
        return definite(rng, ANIMALS)
    chance = rng.uniform(0.55, 1) if named else rng.random()
    if chance < 0.5:
        return rng.choice(PRONOUNS)
    if chance < 0.55:
        return _two_names(rng)
    if chance < 0.66:
        return rng.choice(NAMES)
    if chance < 0.82:
        return definite(rng, FAMILY)
    if every and chance < 0.85:
        noun = rng.choice(PEOPLE)
        return noun_phrase("every", noun, *adjectives_of(rng, noun))
    return definite(rng, _OWN_PEOPLE if chance < 0.88 else PEOPLE)


def _two_names(rng: Random) -> Phrase:
    first, second = rng.choice(NAMES), rng.choice(NAMES)
    while second is first:
        second = rng.choice(NAMES)
    feminine = first.feminine and second.feminine
    return Phrase(
        f"{first.english} and {second.english}", f"{first.french} et {second.french}", 4, feminine, human=True
    )


def placed(preposition: tuple[str, str], phrase: Phrase) -> Pair:
    """A preposition before a phrase."""
    return join(preposition, phrase[:2])


def place(rng: Random, verb: Verb | None = None) -> Pair:
    """The place of an action."""
    chance = rng.random()
    if chance < 0.2:
        home = verb is not None and verb.english not in _AWAY
        return Pair("at home", "à la maison") if home and chance < 0.06 else rng.choice(_HERE)
    if chance < 0.5:
        return placed(("in", "dans"), definite(rng, _INSIDE, plural=False))
    if chance < 0.75:
        noun = rng.choice(SITES)
        return placed(("at", "à"), noun_phrase("the", noun, *adjectives_of(rng, noun)))
    return placed(rng.choice(_AROUND), definite(rng, PLACES, plural=False))


def destination(rng: Random) -> Pair:
    """The destination of a movement."""
    noun = rng.choice(SITES)
    return placed(("to", "à"), noun_phrase("the", noun, *adjectives_of(rng, noun)))


def spot(rng: Random) -> Pair:
    """The place of a thing."""
    chance = rng.random()
    if chance < 0.4:
        preposition = rng.choice((Pair("on", "sur"), Pair("under", "sous")))
        return placed(preposition, definite(rng, FURNITURE, plural=False))
    if chance < 0.65:
        nouns = _CONTAINERS if chance < 0.55 else _INSIDE
        return placed(("in", "dans"), definite(rng, nouns, plural=False))
    return placed(rng.choice(_AROUND), definite(rng, _SPOTS, plural=False))


def company(rng: Random, subject: Phrase) -> Pair:
    """The persons with or without whom something is done."""
    preposition = rng.choice((Pair("with", "avec"), Pair("with", "avec"), Pair("without", "sans")))
    if rng.random() < 0.5:
        return join(preposition, TONIC[other_person(rng, subject)])
    return placed(preposition, definite(rng, FAMILY if rng.random() < 0.5 else PEOPLE, plain=True))


def when(rng: Random, tense: str) -> Pair:
    """An adverb of time that suits the tense; modal verbs take those of the future."""
    chance = rng.random()
    if tense == "past" and chance < 0.25:
        span = counted(rng.randint(2, 20), rng.choice(_PERIODS))
        return Pair(f"{span.english} ago", f"il y a {span.french}")
    if tense == "future" and chance < 0.2:
        return placed(("in", "dans"), counted(rng.randint(2, 20), rng.choice(_PERIODS)))
    if tense in ("past", "future") and chance < 0.3:
        year = rng.randint(1950, 2020) if tense == "past" else rng.randint(2030, 2050)
        return Pair(f"in {year}", f"en {year}")
    return rng.choice(_WHEN.get(tense, _WHEN["future"]))


def verb_for(rng: Random, tense: Tense) -> Verb:
    """A verb that can be used in the tense."""
    return rng.choice(WITH_OBJECT[tense]) if rng.random() < 0.65 else rng.choice(WITHOUT_OBJECT)


def object_for(rng: Random, verb: Verb, subject: Phrase, *, negated: bool = False, ask: bool = False) -> Phrase:
    """An object that suits the verb, other than its subject."""
    if verb.style == "taste":
        noun = rng.choice(OBJECTS[verb.english])
        return grammar.generic(noun, *adjectives_of(rng, noun))
    found = item(rng, OBJECTS[verb.english], negated=negated, ask=ask)
    while found.english in subject.english:
        found = item(rng, OBJECTS[verb.english], negated=negated, ask=ask)
    return found


def complements(
    rng: Random,
    subject: Phrase,
    verb: Verb,
    tense: Tense,
    *,
    negated: bool = False,
    ask: bool = False,
    without: Left = "",
) -> list[Complement]:
    """What follows the verb: its object, a place or company, a time; `without` leaves one out."""
    found: list[Complement] = []
    chance, takes_object = rng.random(), bool(verb.tags)
    if takes_object and without != "object":
        found.append(object_for(rng, verb, subject, negated=negated, ask=ask))
    if verb.style in ("state", "taste"):
        return found
    if verb.english == "go" and without != "place":
        found.append(destination(rng))
    elif verb.style in ("activity", "motion") and chance < 0.25:
        found.append(company(rng, subject))
    elif verb.english in ("go", "go out", "leave") or without == "place":
        pass
    elif chance < (0.35 if takes_object else 0.65):
        found.append(destination(rng) if verb.english in ("come", "come back") else place(rng, verb))
    if without != "time" and rng.random() < 0.5:
        found.append(when(rng, tense))
    return found
