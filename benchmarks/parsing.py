"""Constituency parsing by translation into brackets, from nothing, beside right-branching trees.

    python -m benchmarks.parsing --data PATH/TO/craft_treebank --minutes 10 --longest 40

Trains on the sentences of at most `--longest` words and scores all of the validation trees, and those of at most as
many words, by EVALB's labelled brackets. A right-branching tree has the root and the label that occur most.
"""

import argparse
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

from heedful.data.text.trees import Tree, read_treebank, right_branching
from heedful.metrics.brackets import bracket_scores
from heedful.run.events import Measured, Note
from heedful.tasks.parse.use import Parser
from heedful.tasks.recipes import build
from heedful.verbs.train import train


def baseline(learnt: list[Tree], asked: list[Tree]) -> list[Tree]:
    root = Counter(tree.label for tree in learnt).most_common(1)[0][0]
    label = Counter(label for tree in learnt for label, _, _ in tree.constituents()).most_common(1)[0][0]
    return [right_branching(list(tree.leaves()), root, label) for tree in asked]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--longest", type=int, default=40, help="words of the sentences that are learnt from")
    parser.add_argument("--preset", default="transformer-tiny")
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--beam", type=int, default=4)
    chosen = parser.parse_args()
    corpus = read_treebank(chosen.data)
    short = [tree for tree in corpus.train if len(tree.words()) <= chosen.longest]
    plan = {"minutes": chosen.minutes, "optimizer": "muon", "lr": chosen.lr, "warmup": 200, "eval_sentences": 100}
    recipe = build({"task": "parse", "preset": chosen.preset, "train": plan}, where="parsing")
    with tempfile.TemporaryDirectory() as out:
        for event in train(recipe, Path(out) / "run", corpus=replace(corpus, train=short)):
            if isinstance(event, Note):
                print(event.text, flush=True)
            elif isinstance(event, Measured):
                print(f"step {event.step}: loss {event.valid_loss:.3f}, F1 {event.scores['f1']:.4f}", flush=True)
        found = Parser.load(Path(out) / "run").measure(corpus.valid, beam=chosen.beam)[1]
    print(f"| trees | F1 | precision | recall | all right | F1 to {chosen.longest} words |\n|---|---|---|---|---|---|")
    for name, trees in (("right-branching", baseline(corpus.train, corpus.valid)), ("model", found)):
        every, few = (bracket_scores(corpus.valid, trees, longest=longest) for longest in (None, chosen.longest))
        cells = (every.f1, every.precision, every.recall, every.complete, few.f1)
        print(f"| {name} | {' | '.join(f'{100 * cell:.2f}' for cell in cells)} |")


if __name__ == "__main__":
    main()
