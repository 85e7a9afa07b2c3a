"""What a translator is tuned with that has learnt already: how fast and for how long, by how many pairs there are."""

from pathlib import Path
from typing import Any

from heedful.data.text.reading import read_whole
from heedful.run.resume import plain_recipe
from heedful.store import files
from heedful.tasks.translate.recipe import TranslateRecipe

# Of the peak rate that a model of our own was trained with: at a fifth of it, 500 and 2,000 pairs of another kind of
# text taught it in 120 steps more than they did at a twenty-fifth in all (docs/measured.md).
OWN_RATE = 0.2
# Up to so many pairs, the share of what a published model may have been trained with: few are soon learnt by heart.
RATES = ((2_000, 0.04), (20_000, 0.06))
RATE = 0.1
PUBLISHED = 5e-4  # of published translators, about (Tiedemann and Thottingal 2020; Fan et al. 2020)
ADAPTED = 5e-3  # adapters begin as zeros and take more (Hu et al. 2021, appendix D)
PATIENCE = 3  # measurements
PAIRS = 60_000  # that are read at least, some of them again and again: patience ends what is enough


def tuned(recipe: TranslateRecipe) -> tuple[dict[str, Any], str]:
    """The settings of a training that begins with a translator, and a line that says why. Raises InputError or
    MissingError."""
    start, data = Path(recipe.start_from), recipe.data
    about = files.read_json(start / "task.json") if (start / "task.json").is_file() else {}
    if not data.path or "noise" in about or about.get("task") != "translate":
        return {}, ""
    count = len(read_whole(data.path, source=data.source or None, target=data.target or None)[0].train)
    own_rate = plain_recipe(start).get("train", {}).get("lr")  # its peak, where its recipe says it
    few = next((share for most, share in RATES if count <= most), RATE)
    if own_rate is not None and not recipe.train.lora:
        rate = OWN_RATE * float(own_rate)
    else:
        rate = few * (ADAPTED if recipe.train.lora else PUBLISHED)
    lr = float(f"{rate:.2g}")
    epochs = max(2, min(12, round(12 * (500 / count) ** 0.25)), -(-PAIRS // count))
    own: dict[str, Any] = {"train.optimizer": "adam", "train.lr": lr, "train.warmup": 100}
    own["train.patience"] = PATIENCE
    if recipe.train.steps is None and recipe.train.epochs is None and recipe.train.minutes is None:
        own["train.epochs"] = epochs
    return own, f"as there are {count:,} pairs"
