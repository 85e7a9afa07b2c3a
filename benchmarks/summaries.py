"""Summaries by sequence to sequence, from nothing or from a denoiser, beside the first sentence of each text.

    python -m benchmarks.summaries --data PATH/TO/scitldr_a --start runs/denoise --minutes 10

ROUGE (F1, stemmed, the best of several references) on the test set. `--start` is a run of `heed train denoise`.
"""

import argparse
import tempfile
from pathlib import Path

from heedful.data.text.corpus import read_parallel
from heedful.data.text.noise import sentences_of
from heedful.metrics.names import LABELS
from heedful.metrics.texts import ROUGE, score_rouge
from heedful.run.events import Measured, Note
from heedful.run.recipe import override
from heedful.tasks.recipes import read_recipe
from heedful.tasks.translate.use import Translator
from heedful.verbs.train import train

RECIPE = Path(__file__).parent.parent / "recipes" / "scitldr.py"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--start", type=Path, help="a run of heed train denoise")
    parser.add_argument("--minutes", type=float, default=10)
    chosen = parser.parse_args()
    test = next(iter(read_parallel(chosen.data).tests.values()))
    made = {"the first sentence": [sentences_of(text)[0] for text in test.source]}
    for name, start in {"from nothing": None, "from the denoiser": chosen.start}.items():
        if name != "from nothing" and start is None:
            continue
        recipe = override(read_recipe(str(RECIPE)), [f"data.path={chosen.data}", f"train.minutes={chosen.minutes}"])
        if start is not None:
            recipe = recipe.model_copy(update={"start_from": str(start), "model": {}})
        with tempfile.TemporaryDirectory() as out:
            for event in train(recipe, Path(out) / "run"):
                if isinstance(event, Note):
                    print(event.text, flush=True)
                elif isinstance(event, Measured):
                    print(f"{name}, step {event.step}: {event.valid_loss:.3f} {event.scores}", flush=True)
            made[name] = Translator.load(Path(out) / "run").translate(test.source)
    print(f"| summaries | {' | '.join(LABELS[name] for name in ROUGE)} |\n|---|---|---|---|")
    for name, texts in made.items():
        scores = score_rouge(texts, test.references)
        print(f"| {name} | {scores.rouge1:.2f} | {scores.rouge2:.2f} | {scores.rougeL:.2f} |", flush=True)


if __name__ == "__main__":
    main()
