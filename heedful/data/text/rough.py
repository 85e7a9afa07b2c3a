"""Makes sentences look like typed ones: in capitals or lower case, with typing errors, without punctuation, with a URL.

Pure functions of a text and a `random.Random` (`heedful.core.seeds`). They work for any language: an error takes its
letters from the text.
"""

import random
import re
import string
import unicodedata

TYPOS = 0.1  # of the longer words
LONG = 4  # letters of a longer word, at least
DOMAINS = ("com", "org", "net", "info", "eu")


def with_typos(text: str, draw: random.Random) -> str:
    """Puts a typing error into a tenth of the longer words, and at least one: two letters are swapped, one is left out,
    doubled, or replaced by another letter of the text."""
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
    """Removes punctuation, except inside a word or a number. A text of punctuation alone is unchanged."""
    outer = re.compile(r"(?<!\w)[^\w\s]|[^\w\s](?!\w)")
    bare = outer.sub(lambda found: "" if unicodedata.category(found[0])[0] == "P" else found[0], text)
    return " ".join(bare.split()) or text


def made_url(draw: random.Random) -> str:
    """Makes up a URL such as "https://www.zomk.org/ab31"."""
    name = "".join(draw.choices(string.ascii_lowercase, k=draw.randint(3, 10)))
    path = "".join(draw.choices(string.ascii_lowercase + string.digits, k=draw.randint(0, 8)))
    return f"https://{draw.choice(('www.', ''))}{name}.{draw.choice(DOMAINS)}{'/' * bool(path)}{path}"
