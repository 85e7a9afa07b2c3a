"""Translators of few pairs: learnt from nothing, and from a model of general pairs, with and without these mixed in.

    python -m benchmarks.few_pairs --data PATH/TO/multi30k --general PATH/TO/tatoeba_eng_deu --source en --target de \\
        --out runs/few --minutes 10 --pairs 500 2000 8000 --seeds 3

The general model learns for MINUTES of one core's processor time, which other programs change less than those of the
clock. Each seed draws pairs of its own from the training data, and all else that is random. Each is trained as
`heed train translate` does it, with nothing or with `--from` the general model. The best
model by the validation pairs of DATA is scored on the first test set of DATA and on 1,000 of the general one's, by the
search of its recipe. What is in OUT is not made again.
"""

import argparse
import statistics
from collections.abc import Iterable, Mapping
from pathlib import Path
from random import Random

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
GENERAL = ("model.encoder_layers=4", "model.decoder_layers=4", "model.dropout=0.1", "train.lr=4e-3", "train.warmup=300")


def write(folder: Path, languages: tuple[str, str], parts: Mapping[str, Pairs]) -> Path:
    """A folder of tables with a header, as `heed train` reads it."""
    files.make_folder(folder)
    for name, pairs in parts.items():
        rows = [languages, *zip(pairs.source, pairs.target, strict=True)]
        lines = ("\t".join(" ".join(side.split()) for side in row) for row in rows)
        files.write_text(folder / f"{name}.tsv", "".join(f"{line}\n" for line in lines))
    return folder


def scores_of(out: Path, given: Mapping[str, object], settings: Iterable[str]) -> Scores:
    """Those of the run in `out`, which is made or continued where it is not finished."""
    if not (out / "scores.json").is_file():
        recipe, told = planned("translate", out, given, settings=[*settings], device="cpu")
        print(*(f"{out.name}: {line}" for line in told), sep="\n", flush=True)
        assert any(isinstance(event, Finished) for event in train(recipe, out, device="cpu"))
    return files.read_json(out / "scores.json")["scores"]


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
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    by_processor_time()
    languages = (chosen.source, chosen.target)
    own, general = (
        read_parallel(path, source=languages[0], target=languages[1]) for path in (chosen.data, chosen.general)
    )
    tests = {"test_own": first_test(own), "test_general": first_test(general, TESTED)}
    at = write(chosen.out / "data.general", languages, {"train": general.train, "valid": general.valid, **tests})
    given = {"data.path": str(at), "preset": "transformer-tiny", "train.minutes": chosen.minutes}
    base = chosen.out / "general"
    before = scores_of(base, given, (*GENERAL, "train.epochs=100000"))
    head = "| | BLEU | chrF | BLEU, general |\n|---|---|---|---|"
    print(head, told("the general model", [before]), sep="\n", flush=True)
    rows = [head, told("the general model", [before])]
    for count in chosen.pairs:
        found: dict[str, list[Scores]] = {}
        for seed in range(1, chosen.seeds + 1):
            picked = own.train.rows(Random(seed).sample(range(len(own.train)), count))
            at = write(chosen.out / f"data.{count}.{seed}", languages, {"train": picked, "valid": own.valid, **tests})
            mix = [f"{chosen.out / 'data.general'}:{MIXED}"]
            begun: dict[str, object] = {"data.path": str(at), "start_from": str(base)}
            ways: dict[str, dict[str, object]] = {
                "from nothing": {"data.path": str(at)},
                "from the general model": begun,
                f"the same, {MIXED:.0%} general pairs mixed in": {**begun, "data.mix": mix},
            }
            for number, (way, given) in enumerate(ways.items()):
                run = chosen.out / f"{count}.{seed}.{number}"
                found.setdefault(way, []).append(scores_of(run, given, [f"train.seed={seed}"]))
                print(told(f"{count:,} pairs, {way}, seed {seed}", found[way][-1:]), flush=True)
        rows += [told(f"{count:,} pairs, {way}", scores) for way, scores in found.items()]
    print(*rows, sep="\n")


def first_test(corpus: Corpus, most: int | None = None) -> Pairs:
    pairs = next(iter(corpus.tests.values()))
    return pairs.rows(range(len(pairs))[:most])


if __name__ == "__main__":
    main()
