"""What a model that has read much text gives to tasks with few examples: each learnt from scratch, and from that model.

    python -m benchmarks.finetune --data PATH/TO/data --start runs/wikitext2

`--start` is a run of `heed train generate`, such as that of recipes/wikitext2.py, which is given classifiers by GPT-1's
transformations, or of `heed train fill`, which is given tags and answers to questions as well. For each set in the
folder (see `benchmarks/datasets.py`) the same architecture is trained with new weights and a tokenizer of its own, and
with weights and tokenizer of the run: as many epochs, each at the best of three learning rates on the validation part.
Baselines: `benchmarks/baselines.py`.
"""

import argparse
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from benchmarks.datasets import copa, mctest, mrpc, sick, sst2, trec, write, write_by_article
from heedful.data.text.labelled import Labelled
from heedful.run.events import Finished, Measured
from heedful.run.recipe import Recipe
from heedful.tasks.recipes import build, saved_recipe
from heedful.verbs.train import train

RATES = (1e-3, 2e-3, 3e-4)


class Set(NamedTuple):
    folder: str
    put: Callable[[Path, Path], None]  # from the folder to one that `heed` reads
    measure: str
    epochs: int
    task: str = "classify"


def labels(read: Callable[[Path], Labelled]) -> Callable[[Path, Path], None]:
    return lambda folder, out: write(out, read(folder))


def treebank(folder: Path, out: Path) -> None:
    out.symlink_to(folder.resolve())


SETS = {
    "SST-2": Set("sst", labels(sst2), "accuracy", 4),
    "TREC": Set("trec", labels(trec), "accuracy", 8),
    "SICK, entailment": Set("sick", labels(lambda folder: sick(folder, "label")), "accuracy", 8),
    "SICK, relatedness": Set("sick", labels(lambda folder: sick(folder, "score")), "spearman", 8),
    "COPA, balanced, one fold of five": Set("copa", labels(lambda folder: copa(folder, fold=0)), "accuracy", 8),
    "MCTest-500": Set("mctest", labels(lambda folder: mctest(folder, 500)), "accuracy", 3),
    "MRPC": Set("mrpc", labels(mrpc), "accuracy", 4),
    "ATIS, parts of speech": Set("ud_english_atis", treebank, "accuracy", 8, "tag"),
    "XQuAD, English": Set("xquad", write_by_article, "f1", 4, "answer"),
}


def trained(one: Set, data: Path, start: Path, epochs: int, *, begun: bool, rate: float, seed: int) -> list[float]:
    """The best of the set's measure on the validation part, and that model's on the test."""
    origin = saved_recipe(start)
    model = {"start_from": str(start)} if begun else {"preset": origin.preset, "model": origin.model}
    plan = {"epochs": epochs, "lr": rate, "warmup": 100, "seed": seed, "tokens": 1024, "average": 0.99}
    recipe: Recipe = build({"task": one.task, "data": {"path": str(data)}, "train": plan, **model}, where="finetune")
    with tempfile.TemporaryDirectory() as out:
        events = list(train(recipe, Path(out) / "run"))
    valid = max(event.scores[one.measure] for event in events if isinstance(event, Measured))
    (finished,) = [event for event in events if isinstance(event, Finished)]
    (test,) = finished.scores.values()
    return [valid, float(test[one.measure])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--start", required=True, type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--lr", type=float, action="append", help="try this one in place of three; may be given again")
    parser.add_argument("--quick", action="store_true", help="half the epochs, one seed, one learning rate")
    parser.add_argument("--only", action="append", choices=SETS, help="may be given again")
    chosen = parser.parse_args()
    rates, seeds, share = (RATES[:1], 1, 2) if chosen.quick else (RATES, chosen.seeds, 1)
    rates = tuple(chosen.lr) if chosen.lr else rates
    reads = saved_recipe(chosen.start).task == "fill"
    print("| set | measure | from scratch | from the model |\n|---|---|---|---|")
    for name in chosen.only or [name for name, one in SETS.items() if reads or one.task == "classify"]:
        one = SETS[name]
        epochs = one.epochs // share
        if not (chosen.data / one.folder).is_dir():
            print(f"| {name} | no folder {one.folder} | | |")
            continue
        with tempfile.TemporaryDirectory() as folder:
            data = Path(folder) / "data"
            one.put(chosen.data / one.folder, data)
            cells = []
            for begun in (False, True):
                first = {
                    rate: trained(one, data, chosen.start, epochs, begun=begun, rate=rate, seed=1) for rate in rates
                }
                rate = max(rates, key=lambda rate: first[rate][0])
                tests = [first[rate][1]] + [
                    trained(one, data, chosen.start, epochs, begun=begun, rate=rate, seed=seed)[1]
                    for seed in range(2, seeds + 1)
                ]
                spread = f" ({min(tests):.3f} to {max(tests):.3f})" if len(tests) > 1 else ""
                cells.append(f"{statistics.median(tests):.3f}{spread}, lr {rate:g}")
            print(f"| {name} | {one.measure} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
