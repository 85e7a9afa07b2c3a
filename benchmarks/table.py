"""One table of speed on this machine: each figure beside the best peer's, and its share of what the machine allows.

    pip install transformers ctranslate2
    python -m benchmarks.table --threads 2 [--data PATH/TO/data]     # half an hour; with data, training too

A row is a race of its own script (`benchmarks.decode_lm`, `encode`, `decode`, `train`), in which all take turns. The
limit is what reading the weights once a token, or the products of matrices alone, would allow.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import torch

from benchmarks import decode, decode_lm, encode, train
from benchmarks.turns import Row, machine

HEADER = ("", "heedful", "the best peer", "ratio", "of the limit")


def rows(data: Path | None, *, threads: int, rounds: int, quick: bool) -> Iterator[Row]:
    yield from decode_lm.measured(decode_lm.SMALL if quick else {}, decode_lm.Asked(rounds=rounds), threads=threads)
    for kind in ("BERT", "ViT"):
        yield from encode.race(kind, encode.TINY if quick else {}, threads=threads, rounds=rounds, calls=3)
    yield from decode.measured("tiny" if quick else "small", threads=threads, rounds=rounds, count=64 if quick else 256)
    if data is not None:
        for name in train.SETTINGS:
            yield train.compare(name, data, threads=threads, rounds=rounds, steps=3 if quick else 6)


def cells(row: Row) -> tuple[str, ...]:
    """The cells of a row in Markdown. Rates are medians, with the lowest and the highest."""
    ours, low, high = row.ours.rate, min(row.ours.rates), max(row.ours.rates)
    name, share = row.ours.name, "" if row.limit is None else f"{ours / row.limit:.0%}"
    shown = f"{ours:,.1f} ({low:,.1f} to {high:,.1f}) {row.unit}"
    label = f"{row.what}{' by CTranslate2' if 'by CTranslate2' in name else ''}"
    if not row.peers:
        return label, shown, "", "", share
    best = max(row.peers, key=lambda peer: peer.rate)
    return label, shown, f"{best.rate:,.1f}, {best.name}", f"{ours / best.rate:.2f}", share


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--data", type=Path, help="the datasets; without them, nothing is trained")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="tiny models and a round: whether it runs, not how fast")
    chosen = parser.parse_args()
    rounds = 1 if chosen.quick else chosen.rounds
    found = [cells(row) for row in rows(chosen.data, threads=chosen.threads, rounds=rounds, quick=chosen.quick)]
    print(f"\n{machine(chosen.threads)}, medians of {rounds} rounds, the lowest and the highest in brackets\n")
    for line in (HEADER, ("---",) * len(HEADER), *found):
        print(f"| {' | '.join(line)} |")


if __name__ == "__main__":
    main()
