"""Translators of few pairs: learnt from nothing, and from a model of general pairs, with and without these mixed in.

    python -m benchmarks.few_pairs --data PATH/TO/multi30k --general PATH/TO/tatoeba_eng_deu --source en --target de \\
        --out runs/few --minutes 10 --pairs 500 2000 8000 --seeds 3

The general model learns for MINUTES of one core's processor time, which other programs change less than those of the
clock, and on another device of the clock. Each seed draws pairs of its own from the training data, and all else that is
random. Each is trained as `heed train translate` does it, with nothing or with `--from` the general model, and with
`--at-once` several side by side. The best model by the validation pairs of DATA is scored on the first test set of DATA
and on 1,000 of the general one's, by the search of its recipe. What is in OUT is not made again.
"""

import argparse
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import NamedTuple

import torch

from benchmarks.budget import by_processor_time
from heedful.data.text.corpus import Corpus, read_parallel
from heedful.data.text.pairs import Pairs
from heedful.run.card import Scores
from heedful.run.events import Finished
from heedful.store import files
from heedful.verbs.train import planned, train

TESTED = 1000  # of the general pairs
MIXED = 0.2  # of each epoch
GENERAL = "general"  # the folder of the model of general pairs
SETTINGS = (
    "model.encoder_layers=4",
    "model.decoder_layers=4",
    "model.dropout=0.1",
    "train.lr=4e-3",
    "train.warmup=300",
    "train.epochs=100000",
)


def write(folder: Path, languages: tuple[str, str], parts: Mapping[str, Pairs]) -> Path:
    """A folder of tables with a header, as `heed train` reads it."""
    files.make_folder(folder)
    for name, pairs in parts.items():
        rows = [languages, *zip(pairs.source, pairs.target, strict=True)]
        lines = ("\t".join(" ".join(side.split()) for side in row) for row in rows)
        files.write_text(folder / f"{name}.tsv", "".join(f"{line}\n" for line in lines))
    return folder


class Run(NamedTuple):
    """A training: in which folder, from what, and which row of the table it belongs to."""

    out: Path
    way: str
    given: Mapping[str, object]
    settings: Sequence[str]

    def train(self, device: str) -> None:
        """Makes it, or continues it."""
        recipe, told = planned("translate", self.out, self.given, settings=[*self.settings], device=device)
        print(*(f"{self.out.name}: {line}" for line in told), sep="\n", flush=True)
        assert any(isinstance(event, Finished) for event in train(recipe, self.out, device=device))

    def scores(self) -> Scores:
        found: Scores = files.read_json(self.out / "scores.json")["scores"]
        return found


def told(name: str, found: list[Scores]) -> str:
    """A row of the table: the mean over seeds, and between what they lay."""
    cells = [name]
    for test, score in (("test_own", "bleu"), ("test_own", "chrf"), ("test_general", "bleu")):
        values = [float(scores[test][score]) for scores in found if test in scores]
        spread = f" ({min(values):.1f} to {max(values):.1f})" if len(values) > 1 else ""
        cells.append(f"{statistics.mean(values):.1f}{spread}" if values else "")
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--general", required=True)
    parser.add_argument("--source", required=True)
    parser.add_argument("--target", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--pairs", type=int, nargs="+", required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("--only", help="train this one alone, by the name of its folder")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    if chosen.device == "cpu":
        by_processor_time()
    runs = {run.out.name: run for run in runs_of(chosen)}
    if chosen.only is not None:
        runs[chosen.only].train(chosen.device)
        return

    def trained(name: str) -> Scores:
        if not (runs[name].out / "scores.json").is_file():
            subprocess.run([sys.executable, "-m", "benchmarks.few_pairs", *sys.argv[1:], "--only", name], check=True)
        found = runs[name].scores()
        print(told(name, [found]), flush=True)
        return found

    print(head := "| | BLEU | chrF | BLEU, general |\n|---|---|---|---|", flush=True)
    found = {runs[GENERAL].way: [trained(GENERAL)]}
    with ThreadPoolExecutor(chosen.at_once) as pool:
        others = [name for name in runs if name != GENERAL]
        for name, scores in zip(others, pool.map(trained, others), strict=True):
            found.setdefault(runs[name].way, []).append(scores)
    print(head, *(told(way, scores) for way, scores in found.items()), sep="\n")


def runs_of(chosen: argparse.Namespace) -> Iterator[Run]:
    """The general model, and then all others. Writes what they learn from."""
    languages = (chosen.source, chosen.target)
    own, general = (
        read_parallel(path, source=languages[0], target=languages[1]) for path in (chosen.data, chosen.general)
    )
    tests = {"test_own": first_test(own), "test_general": first_test(general, TESTED)}
    all_general, base = chosen.out / "data.general", chosen.out / GENERAL
    if not all_general.exists():
        write(all_general, languages, {"train": general.train, "valid": general.valid, **tests})
    given = {"data.path": str(all_general), "preset": "transformer-tiny", "train.minutes": chosen.minutes}
    yield Run(base, "the general model", given, SETTINGS)
    for seed in range(1, chosen.seeds + 1):
        for count in chosen.pairs:
            at = chosen.out / f"data.{count}.{seed}"
            if not at.exists():
                picked = own.train.rows(Random(seed).sample(range(len(own.train)), count))
                write(at, languages, {"train": picked, "valid": own.valid, **tests})
            begun = {"data.path": str(at), "start_from": str(base)}
            ways: dict[str, Mapping[str, object]] = {
                "from nothing": {"data.path": str(at)},
                "from the general model": begun,
                f"the same, {MIXED:.0%} general pairs mixed in": {**begun, "data.mix": [f"{all_general}:{MIXED}"]},
            }
            for number, (way, begin) in enumerate(ways.items()):
                name = f"{count}.{seed}.{number}"
                yield Run(chosen.out / name, f"{count:,} pairs, {way}", begin, [f"train.seed={seed}"])


def first_test(corpus: Corpus, most: int | None = None) -> Pairs:
    pairs = next(iter(corpus.tests.values()))
    return pairs.rows(range(len(pairs))[:most])


if __name__ == "__main__":
    main()
