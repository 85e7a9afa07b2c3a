"""A translator that is held to a glossary: how many of the terms it uses, what that does to BLEU, and what it costs.

python -m benchmarks.glossary RUN --train train.en train.de --test test.en test.de [--terms 500]

The terms are words of the test's sources, each with the stem of the other language that most often comes with its own
(Dice's coefficient over the pairs of both, 0.4 and more), in all of its forms: those terms whose translation is in the
reference of every sentence that has them. The searches are timed in turns, by the clock and by the
processor, which other programs change less: medians of three.
"""

import argparse
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from heedful.data.text.glossary import WORD, Glossary, Term
from heedful.data.text.pairs import read_pairs
from heedful.metrics.texts import score_bleu
from heedful.tasks.translate.use import Translator
from heedful.tasks.translate.wishes import Wishes

LEAST = 0.4  # Dice's coefficient
LETTERS = 4  # of a word, at least


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--train", nargs=2, required=True)
    parser.add_argument("--test", nargs=2, required=True)
    parser.add_argument("--terms", type=int, default=500)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--sentences", type=int, help="the first of the test alone")
    chosen = parser.parse_args()
    translator = Translator.load(chosen.run)
    train, test = read_pairs(*chosen.train), read_pairs(*chosen.test)
    test = test.rows(range(min(len(test), chosen.sentences or len(test))))
    known = [*train.source, *test.source], [*train.target, *test.target]
    terms = pairs_of_terms(*known, test.source, test.target, translator.languages)
    terms = terms[: chosen.terms]
    wishes = Wishes(glossary=Glossary(tuple(terms), translator.languages[0]))
    times: dict[str, list[tuple[float, float]]] = {"without": [], "with": []}
    made = {}
    for _ in range(chosen.turns):
        for name, own in (("without", Wishes()), ("with", wishes)):
            begin = time.perf_counter(), time.process_time()
            made[name] = translator.search(test.source, wishes=own)
            times[name].append((time.perf_counter() - begin[0], time.process_time() - begin[1]))
    plain, held = made["without"], made["with"]
    wanted = [wishes.of(source) for source in test.source]
    asked = sum(map(len, wanted))
    print(f"{len(terms)} terms, {asked:,} times in {sum(map(bool, wanted)):,} of {len(wanted):,} sentences")
    for name, found in made.items():
        used = sum(one.met(own.text) for own, each in zip(found, wanted, strict=True) for one in each)
        bleu = score_bleu([own.text for own in found], [[target] for target in test.target]).bleu
        print(f"{name:8} used {used / asked:.1%}  BLEU {bleu:.2f}")
    for clock, column in (("by the clock", 0), ("by the processor", 1)):
        plain_time, held_time = (median(own[column] for own in times[name]) for name in ("without", "with"))
        print(f"{clock}: without {plain_time:.1f} s, with {held_time:.1f} s: {held_time / plain_time:.2f} times")
    changed = sum(one.text != other.text for one, other in zip(plain, held, strict=True))
    print(f"{changed:,} translations are others")


def pairs_of_terms(
    source: Sequence[str],
    target: Sequence[str],
    test_source: Sequence[str],
    test_target: Sequence[str],
    languages: tuple[str, str],
) -> list[Term]:
    """The most frequent ones of the test first."""
    stems = [Glossary((), language).stem for language in languages]
    counts = Counter[str](), Counter[str]()
    spelled = defaultdict[str, Counter[str]](Counter)
    both = defaultdict[str, Counter[str]](Counter)
    forms = defaultdict[str, Counter[str]](Counter)
    for pair in zip(source, target, strict=True):
        sides = [{stem(word) for word in words(text)} for stem, text in zip(stems, pair, strict=True)]
        for side, own in zip(sides, counts, strict=True):
            own.update(side)
        for stem in sides[0]:
            both[stem].update(sides[1])
        for word in words(pair[0]):
            spelled[stems[0](word)][word.lower()] += 1
        for word in words(pair[1]):
            forms[stems[1](word)][word] += 1
    best = {}
    for stem, others in both.items():
        other = max(others, key=lambda own: others[own] / (counts[0][stem] + counts[1][own]))
        if 2 * others[other] / (counts[0][stem] + counts[1][other]) >= LEAST:
            best[stem] = other
    terms = [Term(min(spelled[one], key=len), tuple(forms[other])) for one, other in best.items()]
    glossary = Glossary(tuple(terms), languages[0])
    there, honoured = Counter[str](), Counter[str]()
    for wanted, reference in zip(map(Wishes(glossary=glossary).of, test_source), test_target, strict=True):
        there.update(str(one.source) for one in wanted)
        honoured.update(str(one.source) for one in wanted if one.met(reference))
    kept = {name for name, count in there.items() if honoured[name] == count}
    return sorted((term for term in glossary.terms if term.source in kept), key=lambda term: -there[term.source])


def words(text: str) -> list[str]:
    return [word for word in WORD.findall(text) if len(word) >= LETTERS]


if __name__ == "__main__":
    main()
