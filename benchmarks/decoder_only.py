"""A decoder alone against an encoder and a decoder of the same width and depth: source and target as one sequence
through N layers (Liu et al. 2018), or N and N (Vaswani et al. 2017).

python -m benchmarks.decoder_only --data PATH/TO/multi30k --out runs/decoder_only --minutes 8

Each gets the same pairs, tokens, batches, recipe and search, and as many minutes, or `--epochs`. "target only" does
not learn from the source's words, and with "prefix" these also see each other both ways. The loss is that of the
target's words on the validation pairs, in nats a token.
"""

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import heedful
from heedful.data.text.corpus import Corpus, read_parallel
from heedful.run.events import Finished, Measured, Note, Trained
from heedful.run.recipe import Recipe
from heedful.tasks.translate.recipe import TranslateRecipe
from heedful.tasks.translate.train import TranslateJob
from heedful.tasks.translate.training.epochs import TranslationTask
from heedful.tasks.translate.use import Translator
from heedful.verbs.train import train


@dataclass(frozen=True)
class Result:
    """Parameters, those outside the embedding, the best validation loss, BLEU, epochs made, and what one costs: by the
    clock, and of processor time, which other programs change less."""

    parameters: int
    inside: int
    loss: float
    bleu: float
    epochs: float
    seconds: float
    processor: float


def contestants(layers: int) -> dict[str, tuple[str, dict[str, Any]]]:
    """Preset and changes to its row, by name."""
    alone = {"n_layers": layers}
    return {
        "encoder and decoder": ("transformer", {"encoder_layers": layers, "decoder_layers": layers}),
        "decoder alone": ("decoder", alone),
        "decoder alone, target only": ("decoder", alone | {"input_loss": 0.0}),
        "decoder alone, prefix": ("decoder", alone | {"input_loss": 0.0, "prefix": True}),
        "decoder alone, twice as deep": ("decoder", alone | {"n_layers": 2 * layers}),
    }


def run(recipe: Recipe, corpus: Corpus, out: Path, test: str) -> Result:
    """Trains one and scores it."""
    assert isinstance(recipe, TranslateRecipe)
    job = TranslateJob(recipe, corpus)
    steps = len(TranslationTask(job.pairs, recipe.train, packs=True).batches(0, None))  # an epoch
    losses: list[float] = []
    made, seconds, timed, processor, bleu = 0, 0.0, 0, 0.0, 0.0
    before = None  # the processor time after the last step, where nothing came in between
    for event in train(recipe, out, corpus=corpus):
        match event:
            case Trained(step):
                now = time.process_time()
                made, seconds = step.step, step.seconds
                if before is not None:
                    timed, processor = timed + 1, processor + now - before
                before = now
                continue
            case Note(text):
                print(f"  {text}", flush=True)
            case Measured(number, loss, found):
                losses.append(loss)
                print(f"  step {number:,}  valid loss {loss:.3f}  BLEU {found['bleu']:.1f} (greedy)", flush=True)
            case Finished():
                bleu = float(event.scores[test]["bleu"])
        before = None
    named = dict(Translator.load(out).model.named_parameters())
    inside = sum(weight.numel() for name, weight in named.items() if not name.endswith("tokens.weight"))
    total = sum(weight.numel() for weight in named.values())
    return Result(
        total, inside, min(losses), bleu, made / steps, seconds / made * steps, processor / max(1, timed) * steps
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--out", required=True, type=Path, help="a new folder for the runs")
    parser.add_argument("--source", default="en")
    parser.add_argument("--target", default="de")
    parser.add_argument("--test", default="test_2016_flickr")
    parser.add_argument("--size", default="tiny", choices=("tiny", "small", "base"))
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--epochs", type=float)
    parser.add_argument("--which", nargs="+", default=list(contestants(0)), help="some of these, by name")
    chosen = parser.parse_args()
    if (chosen.minutes is None) == (chosen.epochs is None):
        parser.error("give either --minutes or --epochs")
    if chosen.out.exists():
        parser.error(f"{chosen.out} is there already")
    corpus = read_parallel(chosen.data, source=chosen.source, target=chosen.target)
    results = {}
    for name, (kind, model) in contestants(chosen.layers).items():
        if name not in chosen.which:
            continue
        print(name, flush=True)
        recipe = heedful.recipe(
            "translate",
            preset=f"{kind}-{chosen.size}",
            model=model | {"dropout": 0.2},
            data={"path": str(chosen.data), "source": chosen.source, "target": chosen.target, "vocab_size": 6000},
            train={"minutes": chosen.minutes, "epochs": chosen.epochs, "lr": 4e-3, "warmup": 400, "average": 0.998},
        )
        results[name] = run(recipe, corpus, chosen.out / name.replace(", ", "-").replace(" ", "_"), chosen.test)
    budget = f"{chosen.minutes:g} minutes each" if chosen.minutes else f"{chosen.epochs:g} epochs each"
    print(f"\n{chosen.size}, {chosen.layers} layers, {budget}, {torch.get_num_threads()} threads, {chosen.test}\n")
    print("| model | parameters | without embeddings | valid loss | BLEU | epochs | seconds an epoch | of processor |")
    print("|---|---|---|---|---|---|---|---|")
    for name, found in results.items():
        print(
            f"| {name} | {found.parameters:,} | {found.inside:,} | {found.loss:.3f} | {found.bleu:.1f} | "
            f"{found.epochs:.1f} | {found.seconds:.0f} | {found.processor:.0f} |"
        )


if __name__ == "__main__":
    main()
