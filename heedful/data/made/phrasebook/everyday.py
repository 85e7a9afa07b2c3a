"""Everyday sentences of the phrasebook: one function a kind, which draws a sentence in both languages."""

from random import Random
from typing import Literal

from heedful.data.made.phrasebook import grammar, parts
from heedful.data.made.phrasebook.figures import cardinal, counted
from heedful.data.made.phrasebook.grammar import Pair, Phrase, Tense, being, clause, finish, join, noun_phrase
from heedful.data.made.phrasebook.parts import FITTING, OBJECTS, TENSES, WITH_OBJECT, Complement, Left
from heedful.data.made.phrasebook.words import ADJECTIVES, NOUNS, VERBS, Adjective, Verb

_STILL = ("state", "taste")
_MOODS = ((False, False), (False, False), (True, False), (False, True))
_SAID_OF = parts.SOLID + parts.PLACES + parts.tagged("opening", "text", "mass", "event", "transport")
# Each gradable adjective, and its possible nouns: all adjectives are equally frequent.
_COMPARED = [
    (adjective, [noun for noun in _SAID_OF + parts.PEOPLE if not noun.tags.isdisjoint(adjective.tags)])
    for adjective in ADJECTIVES.values()
    if adjective.comparative
]
_REALMS = [NOUNS[name] for name in ("village", "city", "street", "store")]
_OWNED = [noun for noun in parts.SOLID + parts.FAMILY + parts.tagged("tale") if "fruit" not in noun.tags]
_HELPING = [verb for verb in WITH_OBJECT["past"] if "person" in verb.tags]
_DIRECT = (Phrase("me", "me", 0), Phrase("you", "te", 1), Phrase("us", "nous", 3))
_LINKS = parts.pairs("and: et, but: mais, because: parce que, when: quand")
_REASONS = parts.pairs("it is raining: il pleut, it is cold: il fait froid, it is hot: il fait chaud") + parts.pairs(
    "it is late: il est tard, it is early: il est tôt"
)
# English singular and plural, French, feminine, and the possible contents.
_MEASURES = (
    ("glass", "glasses", "verre", False, ("milk", "water", "wine", "lemonade", "beer")),
    ("cup", "cups", "tasse", True, ("coffee", "tea", "milk")),
    ("bottle", "bottles", "bouteille", True, ("milk", "water", "wine", "lemonade", "beer", "oil")),
    ("kilo", "kilos", "kilo", False, ("rice", "sugar", "flour", "meat", "cheese", "butter", "salt")),
    ("slice", "slices", "tranche", True, ("bread", "ham", "cheese", "meat")),
    ("jar", "jars", "pot", False, ("honey", "jam")),
)


def _tensed(rng: Random, *, negated: bool = False, ask: bool = False, adverb: str = "") -> Pair:
    tense: Tense = "present" if adverb else rng.choice(TENSES)
    verb, negating = parts.verb_for(rng, tense), negated or adverb in ("never", "no longer")
    while adverb and verb.style in _STILL:
        verb = parts.verb_for(rng, tense)
    subject = parts.who(rng, verb, every=not (negating or ask))
    left_out: Left = "time" if adverb else ""
    rest = parts.complements(rng, subject, verb, tense, negated=negating, ask=ask, without=left_out)
    return clause(subject, verb, tense, *rest, negated=negated, ask=ask, adverb=adverb)


def statement(rng: Random) -> Pair:
    """As in "She bought three red apples at the market yesterday." """
    return finish(_tensed(rng, adverb=rng.choice(("often", "always")) if rng.random() < 0.15 else ""))


def negation(rng: Random) -> Pair:
    """As in "He does not buy any apples." and "We never sing here." """
    if rng.random() < 0.25:
        return finish(_tensed(rng, adverb=rng.choice(("never", "no longer"))))
    return finish(_tensed(rng, negated=True))


def question(rng: Random) -> Pair:
    """As in "Did your sister find the key?" """
    return finish(_tensed(rng, ask=True), "?")


def wh_question(rng: Random) -> Pair:
    """As in "Where does he work?", "What did they eat?" and "Who is going to sing?" """
    word, tense = rng.choice(("where", "when", "why", "what", "who")), rng.choice(TENSES)
    verb = rng.choice(WITH_OBJECT[tense]) if word == "what" else parts.verb_for(rng, tense)
    while word in ("where", "when") and verb.style in _STILL:
        verb = parts.verb_for(rng, tense)
    if word == "who":
        anybody = Phrase("who", "qui", human=True)
        return finish(clause(anybody, verb, tense, *parts.complements(rng, anybody, verb, tense)), "?")
    left_out: dict[str, Left] = {"where": "place", "when": "time", "what": "object", "why": ""}
    french = {"where": "où", "when": "quand", "what": "que", "why": "pourquoi"}[word]
    subject = parts.who(rng, verb)
    rest = parts.complements(rng, subject, verb, tense, without=left_out[word])
    return finish(clause(subject, verb, tense, *rest, ask=True, front=(word, french)), "?")


def _often_past(rng: Random) -> Tense:
    """For sentences where the past shows which participle agrees with which object."""
    return "past" if rng.random() < 0.4 else rng.choice(TENSES)


def which(rng: Random) -> Pair:
    """As in "Which apples did she buy?", "How many books do you have?" and "What a beautiful house!" """
    chance, tense = rng.random(), _often_past(rng)
    if chance < 0.3:
        noun, plural = rng.choice(parts.SOLID + parts.PLACES), rng.random() < 0.4
        marvel = noun_phrase("what" if plural else "what a", noun, rng.choice(FITTING[noun.english]), plural=plural)
        return finish(marvel[:2], "!")
    verb = rng.choice([verb for verb in WITH_OBJECT[tense] if verb.style != "taste" and verb.english != "drink"])
    noun = rng.choice([noun for noun in OBJECTS[verb.english] if noun.tags.isdisjoint(("mass", "family"))])
    many = chance > 0.65
    determiner, plural = "how many" if many else "which", many or rng.random() < 0.4
    chosen = noun_phrase(determiner, noun, *parts.adjectives_of(rng, noun), plural=plural)
    subject = parts.who(rng, verb)
    rest = parts.complements(rng, subject, verb, tense, without="object")
    return finish(clause(subject, verb, tense, *rest, ask=True, front=chosen[:2], agreement=chosen), "?")


def command(rng: Random) -> Pair:
    """As in "Open the door!", "Please do not touch the cake." and "Let us go to the beach!" """
    verb = rng.choice(WITH_OBJECT["want"] if rng.random() < 0.8 else [*parts.ACTIVITIES, VERBS["go"]])
    negated, together = rng.random() < 0.35, rng.random() < 0.35
    subject = grammar.PRONOUNS["we" if together else "you"]
    rest = parts.complements(rng, subject, verb, "want", negated=negated, without="time")
    english, french = grammar.command(verb, *rest, together=together, negated=negated)
    if not together and rng.random() < 0.4:
        return finish((f"please {english}", f"{french}, s'il te plaît"))
    return finish((english, french), "!")


def _known(rng: Random) -> tuple[Phrase, Adjective]:
    """A person or a thing, and an adjective that fits."""
    if rng.random() < 0.5:
        return parts.who(rng), rng.choice(parts.OF_PEOPLE)
    noun = rng.choice(_SAID_OF)
    return parts.definite(rng, [noun], plain=True), rng.choice(FITTING[noun.english])


def description(rng: Random) -> Pair:
    """As in "The cat is not black.", "Were the apples too expensive?" and "My brother is a doctor." """
    tense: Literal["present", "past", "future"] = rng.choice(("present", "present", "past", "past", "future"))
    negated, ask = rng.choice(_MOODS)
    if rng.random() < 0.2:
        job, subject = rng.choice(parts.tagged("job")), parts.who(rng)
        while subject.feminine != job.feminine or subject.plural or job.english in subject.english:
            subject = parts.who(rng)
        said = Pair(grammar.indefinite(job.english), job.french)
    else:
        subject, adjective = _known(rng)
        degree = rng.choice(("", "", "very", "too")) if adjective.comparative or adjective.before else ""
        said = grammar.predicate(adjective, subject, degree)
    return finish(being(subject, said, tense=tense, negated=negated, ask=ask), "?" if ask else ".")


def comparison(rng: Random) -> Pair:
    """As in "The cat is smaller than the dog." and "This is the most expensive car in the city." """
    chance, (adjective, nouns) = rng.random(), rng.choice(_COMPARED)
    noun = rng.choice(nouns)
    if chance < 0.4:
        realm = noun_phrase("the", rng.choice(_REALMS))
        of_all = (f"in {realm.english}", f"de {realm.french}")
        return finish(join(("this is", "c'est"), grammar.superlative(noun, adjective)[:2], of_all))
    if "family" in adjective.tags:
        subject, other = parts.who(rng), parts.who(rng, named=True)
        while other.english in subject.english:
            other = parts.who(rng, named=True)
    else:
        alike = [other for other in nouns if other is not noun and other.human == noun.human]
        subject, other = parts.definite(rng, [noun], plain=True), parts.definite(rng, alike, plain=True)
    # "Less small" would be odd: "less" goes with adjectives that take "more".
    long = adjective.comparative.startswith("more ")
    degree: Literal["more", "less", "as"] = rng.choice(("more", "less" if long else "more", "as"))
    tense: Literal["present", "past"] = rng.choice(("present", "present", "past"))
    return finish(being(subject, grammar.comparison(adjective, subject, degree, other), tense=tense))


def possession(rng: Random) -> Pair:
    """As in "This is my brother's car.", "Paul's dog is old." and "We saw the doctor's house." """
    owner, noun, chance = parts.who(rng, named=True), rng.choice(_OWNED), rng.random()
    plural = "one" not in noun.tags and rng.random() < 0.3
    if 0.25 < chance < 0.6:
        owned = grammar.possession(owner, noun, plural=plural)
        said = grammar.predicate(rng.choice(FITTING[noun.english]), owned)
        return finish(being(owned, said, tense=rng.choice(("present", "past")), negated=rng.random() < 0.3))
    owned = grammar.possession(owner, noun, *parts.adjectives_of(rng, noun), plural=plural)
    if chance < 0.25:
        return finish(join(("these are", "ce sont") if plural else ("this is", "c'est"), owned[:2]))
    verb = rng.choice([verb for verb in WITH_OBJECT["past"] if noun in OBJECTS[verb.english]])
    subject = rng.choice(parts.PRONOUNS) if rng.random() < 0.7 else rng.choice(parts.NAMES)
    tense: Tense = rng.choice(("present", "past", "future"))
    return finish(clause(subject, verb, tense, owned, negated=rng.random() < 0.3))


def pronoun(rng: Random) -> Pair:
    """As in "The apples, I ate them.", "As for the key, it is on the table." and "She helped us." """
    chance, negated = rng.random(), rng.random() < 0.4
    if chance < 0.3:
        lost = parts.definite(rng, parts.SMALL)
        found = Phrase(*lost.subject_pronouns, lost.person, lost.feminine)
        topic = Pair(f"as for {lost.english},", f"quant à {lost.french},")
        return finish(join(topic, being(found, parts.spot(rng), negated=negated)))
    tense = _often_past(rng)
    if chance < 0.6:
        verb, known = rng.choice(_HELPING), rng.choice(_DIRECT)
        tense = "past" if tense == "progressive" else tense
        subject = parts.who(rng, verb)
        while {subject.person, known.person} in ({0}, {1}, {3}, {0, 3}):
            subject = parts.who(rng, verb)
    else:
        verb = rng.choice([verb for verb in WITH_OBJECT[tense] if verb.style != "taste" and verb.english != "drink"])
        known = parts.definite(rng, OBJECTS[verb.english])
        subject = rng.choice(parts.PRONOUNS) if rng.random() < 0.8 else rng.choice(parts.NAMES)
    english, french = known.object_pronouns if chance > 0.6 else known[:2]
    rest = parts.complements(rng, subject, verb, tense, negated=negated, without="object")
    said = clause(subject, verb, tense, (english, ""), *rest, negated=negated, clitic=french, agreement=known)
    return finish(join((f"{known.english},", f"{known.french},"), said) if chance > 0.6 else said)


def relative(rng: Random) -> Pair:
    """As in "The girl who sings is happy.", "the man that she helped" and "the city where she works"."""
    chance, tense = rng.random(), _often_past(rng)
    if chance < 0.4:
        verb, noun = parts.verb_for(rng, tense), rng.choice(parts.PEOPLE)
        head = noun_phrase("the", noun, plural=rng.random() < 0.35)
        subject = Phrase("who", "qui", head.person, head.feminine)
        tail = clause(subject, verb, tense, *parts.complements(rng, subject, verb, tense))
    elif chance < 0.75:
        verb = rng.choice([verb for verb in WITH_OBJECT[tense] if verb.english != "drink"])
        noun = rng.choice([noun for noun in OBJECTS[verb.english] if noun.tags.isdisjoint(("mass", "family"))])
        head = noun_phrase("the", noun, *parts.adjectives_of(rng, noun), plural=rng.random() < 0.35)
        tail = clause(parts.who(rng, verb), verb, tense, front=("that", "que"), agreement=head)
    else:
        verb, noun = rng.choice(parts.ACTIVITIES), rng.choice(parts.tagged("in", "at"))
        head = noun_phrase("the", noun, *parts.adjectives_of(rng, noun))
        tail = clause(parts.who(rng, verb), verb, tense, front=("where", "où"))
    whole = Phrase(*join(head[:2], tail), head.person, head.feminine)
    if rng.random() < 0.6:
        return finish(being(whole, grammar.predicate(rng.choice(FITTING[noun.english]), whole)))
    main: Verb = VERBS[rng.choice(("see", "look for", "know") if noun.human else ("see", "choose"))]
    main_tense: Tense = "present" if main.style == "state" else rng.choice(("present", "past", "future"))
    return finish(clause(parts.who(rng), main, main_tense, whole, negated=rng.random() < 0.25))


def coordination(rng: Random) -> Pair:
    """As in "He sings and she dances.", "He is rich but sad." and "She stays here because it is raining." """
    chance, (link, turn) = rng.random(), rng.choice(_LINKS)
    if chance < 0.3:
        subject, first, second = parts.who(rng), rng.choice(parts.OF_PEOPLE), rng.choice(parts.OF_PEOPLE)
        while second is first:
            second = rng.choice(parts.OF_PEOPLE)
        said = (grammar.predicate(first, subject), rng.choice(_LINKS[:2]))
        tense: Literal["present", "past"] = rng.choice(("present", "past"))
        return finish(being(subject, *said, grammar.predicate(second, subject), tense=tense))
    tense = rng.choice(("present", "present" if link == "when" else "past"))
    verb = parts.verb_for(rng, tense)
    while link == "when" and verb.style in _STILL:
        verb = parts.verb_for(rng, tense)
    subject, negated = parts.who(rng, verb), rng.random() < 0.2
    rest = parts.complements(rng, subject, verb, tense, negated=negated, without="time")
    main = clause(subject, verb, tense, *rest, negated=negated)
    other = rng.choice(parts.PRONOUNS) if chance < 0.8 else rng.choice(parts.NAMES)
    if link in ("because", "when") and chance < 0.7:
        if tense == "present" and rng.random() < 0.5:
            return finish(join(main, (link, turn), rng.choice(_REASONS)))
        feeling = grammar.predicate(rng.choice(parts.OF_PEOPLE), other, rng.choice(("", "very", "too")))
        return finish(join(main, (link, turn), being(other, feeling, tense=tense)))
    verb = parts.verb_for(rng, tense)
    rest = parts.complements(rng, other, verb, tense, without="time")[:1]
    return finish(join(main, (link, turn), clause(other, verb, tense, *rest)))


def quantity(rng: Random) -> Pair:
    """As in "She drinks a cup of tea." and "We bought two kilos of flour." """
    one, many, french, feminine, contents = rng.choice(_MEASURES)
    number, noun, tense = rng.randint(1, 12), NOUNS[rng.choice(contents)], rng.choice(TENSES)
    verbs = ["buy", "bring", "take"]
    if rng.random() < 0.3:
        amount = rng.choice(parts.pairs("a lot of: beaucoup de, too much: trop de, a little: un peu de"))
    else:
        words = cardinal(number)
        amount = Pair(f"{words.english} {many} of", f"{words.french} {french}s de")
        if number == 1:
            amount = Pair(f"a {one} of", f"{'une' if feminine else 'un'} {french} de")
        verbs += ["eat"] if one == "slice" else ["drink"] if "drink" in noun.tags else []
    whole = join(amount, grammar.described(noun, parts.adjectives_of(rng, noun)))
    verb, subject = VERBS[rng.choice(verbs)], parts.who(rng, every=True)
    rest = parts.complements(rng, subject, verb, tense, without="object")
    return finish(clause(subject, verb, tense, whole, *rest))


def giving(rng: Random) -> Pair:
    """As in "He gave a book to the girl." and "She is going to send me the letters." """
    verb, tense, subject = rng.choice(parts.styled("exchange")), rng.choice(TENSES), parts.who(rng)
    negated, ask = rng.choice(_MOODS)
    rest: list[Complement] = [parts.object_for(rng, verb, subject, negated=negated, ask=ask)]
    clitic, told = "", Pair("", "")
    if rng.random() < 0.5:
        receiver = parts.who(rng, named=True)
        while receiver.english in subject.english:
            receiver = parts.who(rng, named=True)
        rest.append(parts.placed(("to", "à"), receiver))
    else:
        english, clitic = parts.INDIRECT[parts.other_person(rng, subject)]
        told = Pair(english, "")
    if rng.random() < 0.3:
        rest.append(parts.when(rng, tense))
    said = clause(subject, verb, tense, told, *rest, negated=negated, ask=ask, clitic=clitic)
    return finish(said, "?" if ask else ".")


def location(rng: Random) -> Pair:
    """As in "There is a cat under the table.", "There are no books here." and "Is the key in the box?" """
    human, chance, plural = rng.random() < 0.2, rng.random(), rng.random() < 0.5
    noun, where = (rng.choice(parts.PEOPLE if human else parts.SMALL), parts.place(rng) if human else parts.spot(rng))
    adjectives, verb = parts.adjectives_of(rng, noun), "are" if plural else "is"
    if chance < 0.35:
        negated, ask = rng.choice(_MOODS)
        tense: Literal["present", "past"] = rng.choice(("present", "past"))
        known = parts.definite(rng, [noun])
        return finish(being(known, where, tense=tense, negated=negated, ask=ask), "?" if ask else ".")
    if chance < 0.5:
        english, french = grammar.described(noun, adjectives, plural=plural)
        return finish(join((f"there {verb} no {english}", f"il ne y a pas de {french}"), where))
    if chance < 0.65:
        thing = noun_phrase("any" if plural else "a", noun, *adjectives, plural=plural)
        return finish(join((f"{verb} there {thing.english}", f"est-ce que il y a {thing.french}"), where), "?")
    thing = noun_phrase("a", noun, *adjectives)
    if plural:
        some = rng.choice(("some", "several", "many", "a few", "too many", ""))
        number = rng.randint(2, 99)
        thing = noun_phrase(some, noun, *adjectives, plural=True) if some else counted(number, noun, *adjectives)
    return finish(join((f"there {verb} {thing.english}", f"il y a {thing.french}"), where))
