"""What a translator loses where its sources are in capitals, in lower case, mistyped, or without punctuation.

    python -m benchmarks.robust RUN [RUN ...] --test test.en test.de

BLEU of each run, by the search of its recipe, on the sources as they are and on each rough kind of them; the references
stay. The typing errors are the same ones for every run.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from random import Random

from heedful.core.seeds import random_stream
from heedful.data.text.pairs import read_pairs
from heedful.data.text.rough import with_typos, without_punctuation
from heedful.metrics.texts import score_bleu
from heedful.tasks.translate.use import Translator

KINDS: dict[str, Callable[[str, Random], str]] = {
    "as they are": lambda text, draw: text,
    "CAPITALS": lambda text, draw: text.upper(),
    "lower case": lambda text, draw: text.lower(),
    "typing errors": with_typos,
    "no punctuation": lambda text, draw: without_punctuation(text),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--test", nargs=2, required=True)
    chosen = parser.parse_args()
    pairs = read_pairs(*chosen.test)
    print(f"| sources | {' | '.join(map(str, chosen.runs))} |")
    print(f"|---|{'---|' * len(chosen.runs)}")
    translators = [Translator.load(run) for run in chosen.runs]
    for name, rough in KINDS.items():
        sources = [rough(text, random_stream("robust", number)) for number, text in enumerate(pairs.source)]
        made = [[found.text for found in translator.search(sources)] for translator in translators]
        scores = [score_bleu(own, [[target] for target in pairs.target]).bleu for own in made]
        print(f"| {name} | {' | '.join(f'{score:.1f}' for score in scores)} |", flush=True)


if __name__ == "__main__":
    main()
