"""Sentences as people type them: in capitals or without any, with typing errors, without punctuation, with a URL.

Pure functions over a text and a `random.Random` of its own (`heedful.core.seeds`). They know no language: an error
takes its letters from the text.
"""

import random
import re
import string
import unicodedata

TYPOS = 0.1  # of the words that are long enough
LONG = 4  # letters of such a word
DOMAINS = ("com", "org", "net", "info", "eu")


def with_typos(text: str, draw: random.Random) -> str:
    """A tenth of the longer words, and at least one, with an error: two letters the other way round, one left out, one
    twice, or another letter of the text in its place."""
    words = [found.span() for found in re.finditer(r"[^\W\d_]+", text) if len(found[0]) >= LONG]
    letters = [letter for letter in text if letter.isalpha()]
    chosen = draw.sample(words, max(1, round(TYPOS * len(words)))) if words else []
    for start, end in sorted(chosen, reverse=True):
        at = draw.randrange(start, end - 1)
        one, two = text[at], text[at + 1]
        wrong = draw.choice((two + one, two, one + one + two, draw.choice(letters) + two))
        text = text[:at] + wrong + text[at + 2 :]
    return text


def without_punctuation(text: str) -> str:
    """What stands within a word or a number stays; a text of nothing else as well."""
    outer = re.compile(r"(?<!\w)[^\w\s]|[^\w\s](?!\w)")
    bare = outer.sub(lambda found: "" if unicodedata.category(found[0])[0] == "P" else found[0], text)
    return " ".join(bare.split()) or text


def made_url(draw: random.Random) -> str:
    """Such as "https://www.zomk.org/ab31"."""
    name = "".join(draw.choices(string.ascii_lowercase, k=draw.randint(3, 10)))
    path = "".join(draw.choices(string.ascii_lowercase + string.digits, k=draw.randint(0, 8)))
    return f"https://{draw.choice(('www.', ''))}{name}.{draw.choice(DOMAINS)}{'/' * bool(path)}{path}"
