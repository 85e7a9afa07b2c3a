"""Sentences of the phrasebook with figures: one function a kind, which draws a sentence in both languages."""

import datetime
from random import Random
from typing import Literal

from heedful.data.made.phrasebook import figures, grammar, parts
from heedful.data.made.phrasebook.figures import cardinal, counted
from heedful.data.made.phrasebook.grammar import Pair, Tense, being, clause, finish, join
from heedful.data.made.phrasebook.words import ADJECTIVES, NOUNS, VERBS

_HOLDINGS = [entry.split() for entry in ("book page", "novel page", "village inhabitant", "hotel room", "castle room")]
_SIGNS = parts.pairs("plus: plus, minus: moins, times: fois")
_MOODS = ((False, False), (False, False), (True, False), (False, True))
_PRICED = parts.tagged("thing", "vehicle", "furniture", "food")
_SPANS = {"minute": 59, "hour": 12, "day": 10}
_TRAVEL = [*parts.tagged("transport"), NOUNS["boat"]]
_RANKED = [verb for verb in parts.WITH_OBJECT["past"] if not verb.tags.isdisjoint(("thing", "animal"))]
_TIMELY: tuple[Tense, ...] = ("present", "present", "past", "past", "future", "can", "must", "want")


def number(rng: Random) -> Pair:
    """As in "four thousand, three hundred and twelve" and "The book has two hundred and one pages." """
    chance, value = rng.random(), rng.randint(2, 9999) if rng.random() < 0.5 else rng.randint(2, 999)
    if chance < 0.35:
        return cardinal(value)
    if chance < 0.7:
        whole, part = rng.choice(_HOLDINGS)
        holder = parts.definite(rng, [NOUNS[whole]], plural=False)
        return finish(clause(holder, VERBS["have"], "present", counted(value, NOUNS[part])))
    if chance < 0.85:
        start, end = (parts.definite(rng, parts.PLACES, plural=False) for _ in range(2))
        distance = counted(value, NOUNS["kilometer"])
        way = Pair(f"{distance.english} from {start.english}", f"à {distance.french} de {start.french}")
        return finish(being(end, way))
    tense: Tense = rng.choice(("past", "future", "must"))
    noun = rng.choice(parts.OBJECTS["count"])
    return finish(clause(parts.who(rng), VERBS["count"], tense, counted(value, noun, *parts.adjectives_of(rng, noun))))


def arithmetic(rng: Random) -> Pair:
    """As in "Three plus four is seven." """
    first, second, sign = rng.randint(1, 99), rng.randint(1, 99), rng.choice(_SIGNS)
    result = first + second
    if sign.english == "minus":
        first, result = result, first
    elif sign.english == "times":
        result = first * second
    return finish(join(cardinal(first), sign, cardinal(second), ("is", "font"), cardinal(result)))


def rank(rng: Random) -> Pair:
    """As in "She chose the third book." and "He lives on the first floor." """
    chance, position = rng.random(), rng.randint(1, 31)
    if chance < 0.25:
        floor = figures.ordinal(position)
        place = (f"on the {floor.english} floor", f"à le {floor.french} étage")
        tense: Tense = rng.choice(("present", "want", "future"))
        return finish(clause(parts.who(rng), VERBS["live"], tense, place, negated=rng.random() < 0.25))
    verb = rng.choice(_RANKED)
    noun = rng.choice([noun for noun in parts.OBJECTS[verb.english] if noun.tags.isdisjoint(("mass", "family"))])
    chosen = figures.ranked(position, noun, *parts.adjectives_of(rng, noun))
    if chance < 0.4:
        return finish(join(("this is", "c'est"), chosen[:2]))
    tense = rng.choice(("past", "past", "future", "want" if verb.style == "action" else "past"))
    return finish(clause(parts.who(rng), verb, tense, chosen, negated=rng.random() < 0.2))


def age(rng: Random) -> Pair:
    """As in "My sister is twelve years old." """
    subject = parts.who(rng)
    years = counted(rng.randint(18 if " " in subject.english else 1, 99), NOUNS["year"])
    tense: Literal["present", "future"] = rng.choice(("present", "present", "future"))
    negated, ask = rng.choice(_MOODS)
    english = being(subject, (f"{years.english} old", ""), tense=tense, negated=negated, ask=ask).english
    french = clause(subject, VERBS["have"], tense, ("", years.french), negated=negated, ask=ask).french
    return finish((english, french), "?" if ask else ".")


def _day(rng: Random, tense: str) -> datetime.date:
    first, last = (1950, 2020) if tense == "past" else (2030, 2050)
    start = datetime.date(first, 1, 1)
    return start + datetime.timedelta(days=rng.randrange((datetime.date(last, 12, 31) - start).days + 1))


def _date(rng: Random, tense: str) -> Pair:
    if rng.random() < 0.2:
        return figures.date_words(_day(rng, tense))
    return figures.date(_day(rng, tense), weekday=rng.random() < 0.5, year=rng.random() < 0.5)


def date(rng: Random) -> Pair:
    """As in "Paul was born on Tuesday, March 3, 1998." and "Today is Monday, May 1." """
    chance, year = rng.random(), rng.randint(1950, 2020)
    if chance < 0.2:
        today = figures.date(_day(rng, rng.choice(("past", "future"))), weekday=True, year=rng.random() < 0.6)
        return finish((f"today is {today.english.removeprefix('on ')}", f"aujourd'hui, c'est {today.french}"))
    if chance < 0.6:
        month = join(("in", "en"), rng.choice(figures.MONTHS), (f"{year}", f"{year}"))
        words = join(("in", "en"), figures.year_words(year))
        when, subject = rng.choice((_date(rng, "past"), month, words)), parts.who(rng)
        participle = grammar.agreed_participle("né", subject.feminine, subject.plural)
        english = being(subject, (f"born {when.english}", ""), tense="past").english
        return finish((english, being(subject, ("", f"{participle} {when.french}")).french))
    verb = rng.choice([verb for verb in parts.MOTIONS if verb.english not in ("go", "fall")])
    tense = rng.choice(_TIMELY)
    negated = rng.random() < 0.25
    return finish(clause(parts.who(rng, verb), verb, tense, _date(rng, tense), negated=negated))


def _clock(rng: Random) -> Pair:
    chance, minute = rng.random(), rng.randrange(0, 60, 5)
    if chance < 0.3:
        return figures.digital_clock(rng.randint(1, 23), minute)
    if chance < 0.4:
        return figures.clock(rng.choice((0, 12)), rng.choice((0, 0, 5, 10, 15, 20, 30)))
    return figures.clock(rng.choice((*range(1, 12), *range(13, 23))), minute, part=chance < 0.8)


def clock(rng: Random) -> Pair:
    """As in "It is a quarter past three in the afternoon." and "They get up at half past six." """
    chance = rng.random()
    if chance < 0.15:
        return finish(join(("it is", "il est"), _clock(rng)))
    if chance < 0.35:
        place = parts.definite(rng, parts.SITES, plain=True, plural=False)
        state = grammar.predicate(ADJECTIVES[rng.choice(("open", "closed"))], place)
        hours, minutes = (rng.randint(7, 11), rng.randint(12, 22)), [rng.randrange(0, 60, 5) for _ in range(2)]
        told = [figures.digital_clock(*time) for time in zip(hours, minutes, strict=True)]
        if chance < 0.27:
            told = [figures.clock(*time, part=True) for time in zip(hours, minutes, strict=True)]
        return finish(being(place, state, join(("from", "de"), told[0]), join(("to", "à"), told[1])))
    verb = rng.choice(parts.REFLEXIVES if chance < 0.6 else parts.WITHOUT_OBJECT)
    tense, subject = rng.choice(_TIMELY), parts.who(rng, verb)
    where = [parts.destination(rng)] if verb.english == "go" else []
    at = join(("at", "à"), _clock(rng))
    return finish(clause(subject, verb, tense, *where, at, negated=rng.random() < 0.2))


def _price(rng: Random) -> Pair:
    chance, cents = rng.random(), rng.randrange(5, 100, 5)
    if chance < 0.3:
        return figures.price_words(rng.randint(1, 199))
    if chance < 0.5:
        return figures.price_words(rng.randint(1, 99), cents)
    if chance < 0.6:
        return figures.price(rng.randrange(1000, 10_000, 50))
    return figures.price(rng.randint(1, 99)) if chance < 0.8 else figures.price(rng.randint(1, 99), cents)


def price(rng: Random) -> Pair:
    """As in "The dress costs €12.50.", "How much does it cost?" and "I paid forty euros for this lamp." """
    thing, chance = parts.definite(rng, _PRICED), rng.random()
    if chance < 0.15:
        english = f"how much {'do' if thing.plural else 'does'} {thing.english} cost"
        return finish((english, f"combien {VERBS['cost'].present[thing.person]} {thing.french}"), "?")
    if chance < 0.65:
        tense: Tense = rng.choice(("present", "present", "future"))
        return finish(clause(thing, VERBS["cost"], tense, _price(rng), negated=rng.random() < 0.25))
    tense = rng.choice(("past", "future", "must", "can"))
    goods = parts.placed(("for", "pour"), thing)
    return finish(clause(parts.who(rng), VERBS["pay"], tense, _price(rng), goods, negated=rng.random() < 0.2))


def shopping(rng: Random) -> Pair:
    """As in "My brother is going to buy three red apples for twelve euros." """
    verb, noun, tense = VERBS[rng.choice(("buy", "buy", "sell"))], rng.choice(_PRICED), rng.choice(parts.TENSES)
    goods = counted(rng.randint(2, 60), noun, *parts.adjectives_of(rng, noun))
    if rng.random() < 0.3:
        goods = parts.item(rng, [noun])
    when = [parts.when(rng, tense)] if rng.random() < 0.3 else []
    return finish(clause(parts.who(rng), verb, tense, goods, join(("for", "pour"), _price(rng)), *when))


def appointment(rng: Random) -> Pair:
    """As in "The train leaves at 3:05 p.m." and "The concert began on Monday, May 1, at noon." """
    chance = rng.random()
    tense: Tense = rng.choice(("present", "past", "future"))
    if chance < 0.3:
        verb, subject = VERBS[rng.choice(("leave", "arrive", "come back"))], parts.definite(rng, _TRAVEL)
    elif chance < 0.55:
        verb, subject = VERBS[rng.choice(("open", "close"))], parts.definite(rng, parts.SITES, plural=False)
    else:
        verb, subject = VERBS[rng.choice(("begin", "end", "last"))], parts.definite(rng, parts.tagged("event"))
    if verb.english == "last":
        unit, most = rng.choice(list(_SPANS.items()))
        return finish(clause(subject, verb, tense, counted(rng.randint(2, most), NOUNS[unit])))
    at, day = join(("at", "à"), _clock(rng)), _date(rng, tense)
    times = rng.choice(([at], [Pair(f"{day.english},", day.french), at], [at, rng.choice(parts.ON_DAYS)]))
    return finish(clause(subject, verb, tense, *times, negated=rng.random() < 0.2))
