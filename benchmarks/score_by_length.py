"""BLEU by length of the source, for several runs on one test set: where a memory of one vector would break down.

python -m benchmarks.score_by_length RUN RUN... --source test.en --target test.de --out by_length.png
"""

import argparse
from itertools import pairwise
from pathlib import Path

from heedful.data.text.pairs import Pairs, read_pairs
from heedful.look.draw import score_by_length, to_bytes
from heedful.metrics.texts import score_bleu
from heedful.store.files import write_bytes
from heedful.tasks.translate.use import Translator

EDGES = (1, 8, 11, 14, 17, 21, 1000)  # words: about equal numbers of captions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--source", required=True)
    parser.add_argument("--target", required=True)
    parser.add_argument("--out", type=Path, required=True)
    chosen = parser.parse_args()
    pairs = read_pairs(chosen.source, chosen.target)
    bins = {f"{low}-{high - 1}": _between(pairs, low, high) for low, high in pairwise(EDGES)}
    bins = {name.replace("-999", "+"): rows for name, rows in bins.items() if rows}
    scores = {}
    for run in chosen.runs:
        made = Translator.load(run).translate(pairs.source)
        scores[run.name] = [
            score_bleu([made[i] for i in rows], [[pairs.target[i]] for i in rows]).bleu for rows in bins.values()
        ]
        print(run.name, " ".join(f"{name}: {bleu:.1f}" for name, bleu in zip(bins, scores[run.name], strict=True)))
    figure = score_by_length(scores, list(bins), [len(rows) for rows in bins.values()])
    write_bytes(chosen.out, to_bytes(figure, "png"))


def _between(pairs: Pairs, low: int, high: int) -> list[int]:
    return [i for i, source in enumerate(pairs.source) if low <= len(source.split()) < high]


if __name__ == "__main__":
    main()
