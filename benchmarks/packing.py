"""Packed rows against one sentence a row sorted by length: real source tokens a second, on your own data.

python -m benchmarks.packing --data PATH/TO/multi30k --source en --target de
"""

import argparse
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

import torch

from heedful.data.text import read_parallel
from heedful.models import make_model
from heedful.tasks.recipe import DataRecipe, Recipe
from heedful.tasks.translate import TranslationTask
from heedful.tasks.translation_job import TranslationJob
from heedful.train.loop import Budget, State, Step, fit
from heedful.train.optim import Average, OptimConfig, Optimizer
from heedful.train.precision import DTYPES, choose_precision


@dataclass
class Contestant:
    name: str
    task: TranslationTask
    state: State
    rates: list[float]

    def run(self, steps: int) -> None:
        """Trains for so many steps, and notes the source tokens of each second."""
        goal = Budget(steps=self.state.step + steps)
        batches = self.task.batches(self.state.epoch)
        tokens = sum(batch.source_tokens for batch in batches[self.state.batch : self.state.batch + steps])
        begin = time.perf_counter()
        made = [step for step in fit(self.task, self.state, goal) if isinstance(step, Step)]
        assert len(made) == steps
        self.rates.append(tokens / (time.perf_counter() - begin))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--source", default="en")
    parser.add_argument("--target", default="de")
    parser.add_argument("--preset", default="transformer-small")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=12, help="a round")
    chosen = parser.parse_args()
    recipe = Recipe(preset=chosen.preset, data=DataRecipe(source=chosen.source, target=chosen.target, vocab_size=6000))
    corpus = read_parallel(chosen.data, source=chosen.source, target=chosen.target)
    job = TranslationJob(recipe, corpus)
    precision, why = choose_precision(torch.device("cpu"))
    print(f"{chosen.preset}, {precision} ({why}), {torch.get_num_threads()} threads, torch {torch.__version__}")
    contestants = []
    for name, packs in (("packed rows", True), ("sorted by length", False)):
        torch.manual_seed(1)
        model = make_model(job.config)
        average = Average(model, 0.998)
        model = model.to(DTYPES[precision])
        state = State(model=model, optimizer=Optimizer(model, OptimConfig()), average=average, seed=1)
        contestants.append(Contestant(name, TranslationTask(job.pairs, recipe.train, packs=packs), state, []))
    for _ in range(chosen.rounds):
        for contestant in contestants:
            contestant.run(chosen.steps)
    for contestant in contestants:
        contestant.rates = contestant.rates[1:]  # the first round warms up
        low, middle, high = min(contestant.rates), statistics.median(contestant.rates), max(contestant.rates)
        print(f"{contestant.name:18} {middle:8,.0f} source tokens/s  ({low:,.0f} to {high:,.0f})")
    packed, bucketed = (statistics.median(each.rates) for each in contestants)
    print(f"packed / sorted: {packed / bucketed:.2f}")


if __name__ == "__main__":
    main()
