"""Figures of the phrasebook: numbers, ordinals, dates, times of day and prices, in words or in digits."""

import datetime
import re
from functools import cache

from babel.dates import get_day_names, get_month_names
from babel.numbers import format_currency
from num2words import num2words

from heedful.data.made.phrasebook.grammar import Pair, Phrase, about, described
from heedful.data.made.phrasebook.words import Adjective, Noun

_MONTHS = [get_month_names("wide", locale=locale) for locale in ("en", "fr")]
_DAYS = [get_day_names("wide", locale=locale) for locale in ("en", "fr")]
DAYS = [Pair(_DAYS[0][day], _DAYS[1][day]) for day in range(7)]
MONTHS = [Pair(_MONTHS[0][month], _MONTHS[1][month]) for month in range(1, 13)]
_PARTS = {
    "morning": Pair("in the morning", "du matin"),
    "afternoon": Pair("in the afternoon", "de l'après-midi"),
    "evening": Pair("in the evening", "du soir"),
}


@cache
def cardinal(number: int) -> Pair:
    """A number in words: "two hundred and one", "deux cent un"."""
    return Pair(num2words(number), num2words(number, lang="fr"))


@cache
def ordinal(number: int, *, feminine: bool = False) -> Pair:
    """A rank in words: "first", "première"."""
    french = num2words(number, lang="fr", to="ordinal")
    return Pair(num2words(number, to="ordinal"), "première" if number == 1 and feminine else french)


def counted(number: int, noun: Noun, *adjectives: Adjective) -> Phrase:
    """A number of things, in words: "twenty-one red apples", "vingt et une pommes rouges"."""
    words, plural = cardinal(number), number > 1
    english, french = described(noun, adjectives, plural=plural)
    ending = "e" if noun.feminine and words.french.endswith("un") else ""
    whole = f"{words.french}{ending} {french}"
    return about(noun, f"{words.english} {english}", whole, plural=plural)


def ranked(number: int, noun: Noun, *adjectives: Adjective) -> Phrase:
    """A thing with its rank: "the third red house", "la troisième maison rouge"."""
    words, (english, french) = ordinal(number, feminine=noun.feminine), described(noun, adjectives)
    article = "la" if noun.feminine else "le"
    return about(noun, f"the {words.english} {english}", f"{article} {words.french} {french}")


@cache
def year_words(year: int) -> Pair:
    """A year in words: "nineteen ninety-eight", "mille neuf cent quatre-vingt-dix-huit"."""
    french = num2words(year, lang="fr")
    # In a date "cent" is an ordinal in disguise, and takes no s.
    return Pair(num2words(year, to="year"), french.removesuffix("s") if french.endswith("cents") else french)


def date(day: datetime.date, *, weekday: bool = False, year: bool = False) -> Pair:
    """A date in digits, after "on" and *le*: "on Tuesday, March 3, 1998", "le mardi 3 mars 1998"."""
    names, month = DAYS[day.weekday()], MONTHS[day.month - 1]
    english = (
        (f"{names.english}, " if weekday else "") + f"{month.english} {day.day}" + (f", {day.year}" if year else "")
    )
    french = (f"{names.french} " if weekday else "") + f"{'1er' if day.day == 1 else day.day} {month.french}"
    return Pair(f"on {english}", f"le {french}{f' {day.year}' if year else ''}")


def date_words(day: datetime.date) -> Pair:
    """A day and month in words: "on the first of March", "le premier mars"."""
    french = "premier" if day.day == 1 else cardinal(day.day).french
    month = MONTHS[day.month - 1]
    return Pair(f"on the {ordinal(day.day).english} of {month.english}", f"le {french} {month.french}")


def clock(hour: int, minute: int, *, part: bool = False) -> Pair:
    """A time of day in words, every five minutes, from the 24-hour `hour`; `part` tells the part of the day.

    As in "a quarter past three in the afternoon", "trois heures et quart de l'après-midi".
    """
    later = (hour + (minute > 30)) % 24
    whole = later % 12 == 0
    if whole:
        english, french = ("noon", "midi") if later else ("midnight", "minuit")
    else:
        words = cardinal(later % 12)
        english, french = words.english, "une heure" if later % 12 == 1 else f"{words.french} heures"
    minutes = cardinal(60 - minute if minute > 30 else minute)
    if minute == 0:
        english += "" if whole else " o'clock"
    elif minute == 30:
        english, french = f"half past {english}", f"{french} et {'demi' if whole else 'demie'}"
    elif minute in (15, 45):
        english = f"a quarter {'past' if minute == 15 else 'to'} {english}"
        french += " et quart" if minute == 15 else " moins le quart"
    else:
        english = f"{minutes.english} {'past' if minute < 30 else 'to'} {english}"
        french += f" {'' if minute < 30 else 'moins '}{minutes.french}"
    if whole or not part:
        return Pair(english, french)
    tail = _PARTS["morning" if later < 12 else "afternoon" if later < 18 else "evening"]
    return Pair(f"{english} {tail.english}", f"{french} {tail.french}")


def digital_clock(hour: int, minute: int) -> Pair:
    """A time of day in digits, from the 24-hour `hour`: "3:05 p.m.", "15 h 05"."""
    twelve = f"{(hour - 1) % 12 + 1}:{minute:02} {'a.m.' if hour < 12 else 'p.m.'}"
    return Pair(twelve, f"{hour} h {minute:02}" if minute else f"{hour} h")


def price_words(euros: int, cents: int = 0) -> Pair:
    """A price in words: "twelve euros and fifty cents", "douze euros et cinquante centimes"."""
    whole, rest = cardinal(euros), cardinal(cents)
    english, french = (f"{words} euro{'s' if euros > 1 else ''}" for words in whole)
    if cents:
        english += f" and {rest.english} cent{'s' if cents > 1 else ''}"
        french += f" et {rest.french} centime{'s' if cents > 1 else ''}"
    return Pair(english, french)


@cache
def price(euros: int, cents: int = 0) -> Pair:
    """A price in digits, as each country writes it: "€1,250" and "1 250 €", "€12.50" and "12,50 €"."""
    amount = euros + cents / 100
    english, french = (
        format_currency(amount, "EUR", locale=locale, currency_digits=cents > 0, format=None if cents else pattern)
        for locale, pattern in (("en", "¤#,##0"), ("fr", "#,##0 ¤"))
    )
    # The narrow and unbreakable spaces of the locale become plain ones.
    return Pair(english, re.sub(r"\s", " ", french))
