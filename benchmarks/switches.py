"""What settings of a translator give, chosen without a look at any test set.

    python -m benchmarks.switches --data PATH/TO/multi30k --pairs 2000 --held "water|beach|snow" --minutes 1.2 \\
        "" "model.dropout=0.3" "model.dropout=0.3 train.rdrop=5"

One training a list of settings, from RECIPE or the defaults, on one core and each for as many minutes of processor
time, which other programs change less than those of the clock; settings may have a `train.minutes` of their own. Pairs
whose source has a word that matches HELD, a regular expression, are not learnt from: a stand-in for texts of another
kind, which is measured beside the validation pairs, in nats a token and BLEU of greedy translations. The data's own
tests are left alone.
"""

import argparse
import re
import tempfile
from dataclasses import replace
from pathlib import Path
from random import Random

import torch

from benchmarks.budget import by_processor_time
from heedful.data.text.corpus import Corpus, read_parallel
from heedful.run.events import Finished, Measured, Trained
from heedful.run.recipe import override
from heedful.tasks.recipes import read_recipe
from heedful.tasks.translate.use import Translator
from heedful.verbs.train import train

MEASURED = 1000  # held pairs, at most
NEVER = 10**9  # steps: it is measured at the end alone


def parted(corpus: Corpus, held: str, pairs: int | None) -> Corpus:
    """Without what is held, of which a part becomes the only test; and of the others so many."""
    kind = re.compile(rf"\b({held})\b", re.IGNORECASE) if held else None
    like = {i for i, text in enumerate(corpus.train.source) if kind is not None and kind.search(text)}
    others = [i for i in range(len(corpus.train)) if i not in like]
    Random(1).shuffle(others)
    tests = {"held": corpus.train.rows(Random(1).sample(sorted(like), min(MEASURED, len(like))))} if like else {}
    return replace(corpus, train=corpus.train.rows(others[:pairs]), tests=tests)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("settings", nargs="+")
    parser.add_argument("--data", required=True)
    parser.add_argument("--source")
    parser.add_argument("--target")
    parser.add_argument("--recipe", default="translate")
    parser.add_argument("--pairs", type=int)
    parser.add_argument("--held", default="")
    parser.add_argument("--minutes", type=float, required=True)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    by_processor_time()
    corpus = parted(read_parallel(chosen.data, source=chosen.source, target=chosen.target), chosen.held, chosen.pairs)
    print(f"{len(corpus.train):,} pairs to learn from, {len(corpus.valid):,} to choose by")
    print("| settings | steps | epochs | loss | BLEU | held: loss | BLEU |\n|---|---|---|---|---|---|---|")
    fixed = [f"train.minutes={chosen.minutes}", "train.epochs=100000", f"train.eval_every={NEVER}", "decode.beam=1"]
    for settings in chosen.settings:
        recipe = override(read_recipe(chosen.recipe), [*fixed, f"train.eval_sentences={MEASURED}", *settings.split()])
        with tempfile.TemporaryDirectory() as folder:
            run = Path(folder) / "run"
            for event in train(recipe, run, corpus=corpus):
                match event:
                    case Trained():
                        last = event.step
                    case Measured():
                        measured = event
                    case Finished():
                        scores = event.scores
            told = [f"{measured.valid_loss:.3f}", f"{measured.scores['bleu']:.1f}"]
            if "held" in scores:
                loss = Translator.load(run).loss(corpus.tests["held"])
                told += [f"{loss:.3f}", f"{scores['held']['bleu']:.1f}"]
        print(f"| {settings or 'none'} | {last.step:,} | {last.epoch + 1} | {' | '.join(told)} |", flush=True)


if __name__ == "__main__":
    main()
