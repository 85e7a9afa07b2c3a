"""Byte pair encoding of the sailor rhyme, merge by merge; and how tokenizers split awkward words."""

import re
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Literal

from heedful.lab.drawn import bars
from heedful.lab.exhibit import Draws, Says, Shown, beside, holds, unsaid
from heedful.lab.words.rhymes import SAILOR, ordered, symbols

Word = tuple[str, ...]
CLITIC = r"'(?:s|m|d|re|ve|ll)\b"
SHAKESPEARE = "Friends, Romans, Countrymen, lend me your ears;"


def merges(
    text: tuple[str, ...], count: int, *, across: bool = False, tie: Literal["first", "last"] = "first"
) -> list[tuple[tuple[str, str], int, Counter[str]]]:
    """The first merges of byte pair encoding (Sennrich et al. 2016, section 3.2): the pair, its count, and all
    symbol counts afterwards. Merges stop at the ends of words, unless they may go `across` them, within a line. Among
    equally frequent pairs, the `first` in alphabetical order is merged, or the last."""
    lines = [tuple("".join(f"{word}_" for word in line.split())) for line in text]
    words = Counter(lines if across else [tuple(f"{word}_") for line in text for word in line.split()])
    found = []
    for _ in range(count):
        pairs: Counter[tuple[str, str]] = Counter()
        for word, times in words.items():
            for pair in pairwise(word):
                pairs[pair] += times
        if not pairs:
            break
        most = max(pairs.values())
        best = sorted(pair for pair, times in pairs.items() if times == most)[0 if tie == "first" else -1]
        words = Counter({merged(word, best): times for word, times in words.items()})
        counts = Counter({symbol: 0 for word in words for symbol in word})
        for word, times in words.items():
            for symbol in word:
                counts[symbol] += times
        found.append((best, most, counts))
    return found


def merged(word: Word, pair: tuple[str, str]) -> Word:
    out, at = [], 0
    while at < len(word):
        both = word[at : at + 2] == pair
        out.append("".join(pair) if both else word[at])
        at += 2 if both else 1
    return tuple(out)


def told(counts: Counter[str]) -> str:
    return " ".join(f"{symbol} {times}" for symbol, times in ordered(counts))


def sailor(says: Says, *, count: int = 8, across: bool = False, tie: Literal["first", "last"] = "first") -> Shown:
    """The deck's two tables, and the merges that follow; with `across`, merges may cross the ends of words."""
    start, steps = symbols(), merges(SAILOR, count, across=across, tie=tie)
    computed = {
        "kinds of symbols": len(start),
        "symbols": sum(start.values()),
        "at the start": told(start),
        "first merge": f"{''.join(steps[0][0])} {steps[0][1]}",
        "second merge": f"{''.join(steps[1][0])} {steps[1][1]}",
    }
    computed |= {f"after merge {i}": told(counts) for i, (_, _, counts) in enumerate(steps[:2], 1)}
    lines = beside(says, computed)
    pair, times, _ = merges(SAILOR, 1, across=not across)[0]
    other = {f"the first merge {'within' if across else 'across'} words": f"{''.join(pair)} {times}"}
    title = f"Symbols after {len(steps)} merges"
    text = "\n".join(f"  merge {i}: {a} + {b}, {times} times" for i, ((a, b), times, _) in enumerate(steps, 1))
    return Shown(lines + unsaid(other), bars(dict(steps[-1][2].most_common()), y="how often", title=title), text)


RULES: dict[str, Callable[[str], list[str]]] = {
    "at blanks": lambda text: text.split(),
    "words, punctuation dropped": lambda text: re.findall(r"\w+(?:'\w+)*", text),
    "at each apostrophe": lambda text: re.findall(r"\w+", text),
    "a letter and its apostrophe apart": lambda text: re.findall(r"\b\w'|\w+(?:'\w+)*", text),
    "a letter and its apostrophe dropped": lambda text: re.findall(r"\w+(?:'\w+)*", re.sub(r"\b\w'", "", text)),
    "clitics apart": lambda text: re.findall(rf"\w+(?=n't)|n't|{CLITIC}|\w+(?:(?!{CLITIC})'\w+)*|[^\w\s]", text),
    "apostrophes dropped": lambda text: re.findall(r"\w+", text.replace("'", "")),
}


def awkward(says: Says, *, words: str = "O'Neill aren't") -> Shown:
    """The same words by seven tokenizers; what these make of O'Neill and of aren't (Manning et al. 2008, section
    2.2.1); and Mark Antony's line without punctuation."""

    def cut(text: str) -> dict[str, str]:
        return {name: " | ".join(rule(text)) for name, rule in RULES.items()}

    computed: dict[str, object] = {f'tokens of "{SHAKESPEARE}"': len(RULES["words, punctuation dropped"](SHAKESPEARE))}
    computed |= {f"candidates of {word}": len({*cut(word).values()}) for word in ("O'Neill", "aren't")}
    return Shown(beside(says, computed) + unsaid(cut(words)))


def unknown_words(says: Says, *, merges_learnt: Draws = 30) -> Shown:
    """Learns merges from words such as "walk" and "talked", and applies them to forms that were never seen."""
    seen = ("walk walks talk talks talked talking looked looking walk walks",)
    learnt = [pair for pair, times, _ in merges(seen, merges_learnt) if times > 1]
    cut = {}
    for word in ("walk", "walks", "walked", "walking", "stalking"):
        parts: Word = tuple(f"{word}_")
        for pair in learnt:
            parts = merged(parts, pair)
        cut[word] = " | ".join(parts)
    whole = cut["walked"].count("|") < len("walked")
    return Shown([holds(says, "an unknown word has known parts", cut["walked"], right=whole), *unsaid(cut)])
