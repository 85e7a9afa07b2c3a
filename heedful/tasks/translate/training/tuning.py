"""What a translator is trained with where nothing is said, by how many pairs there are.

One that has learnt already is tuned more slowly, until it gets no better. One that begins with nothing, of few pairs,
is small, drops more out, takes smaller batches (Sennrich and Zhang 2019, section 3), and is to say the same under any
dropout; of some ten thousand pairs it is narrow and deep.
"""

from pathlib import Path
from typing import Any

from heedful.data.text.corpus import Corpus
from heedful.data.text.reading import paths_of, read_whole
from heedful.run.prepared import prepared_for, read_manifest
from heedful.run.recipe import plain_recipe
from heedful.tasks.shared.sections import PackedTrain
from heedful.tasks.translate.recipe import TranslateRecipe
from heedful.tasks.translate.spec import spec_in
from heedful.tasks.translate.training.prepared import preparation

# Of the peak rate that a model of our own was trained with: at half of it 500, 2,000 and 8,000 pairs of another kind of
# text taught it more than at a fifth (docs/measured.md).
OWN_RATE = 0.5
OWN_EPOCHS, OWN_PAIRS = 30, 2_000  # of so many pairs so many epochs, and fewer of more pairs, by the root
# Up to so many pairs, the share of what a published model may have been trained with: few are soon learnt by heart.
RATES = ((2_000, 0.04), (20_000, 0.06))
RATE = 0.1
PUBLISHED = 5e-4  # of published translators, about (Tiedemann and Thottingal 2020; Fan et al. 2020)
ADAPTED = 5e-3  # adapters begin as zeros and take more (Hu et al. 2021, appendix D)
PATIENCE = 3  # measurements
PAIRS = 60_000  # that a published one reads at least

FEW = 10_000  # pairs, up to which a model that begins with nothing is trained so
OF_FEW: dict[str, Any] = {
    "preset": "transformer-tiny",
    "model.dropout": 0.2,
    "train.tokens": 1024,
    "train.lr": 4e-3,
}
AGREED = 1.0  # train.rdrop of long trainings
LONG = 3.0  # minutes, at least
SOME = 100_000  # pairs, up to which it is trained so
OF_SOME: dict[str, Any] = {
    "preset": "transformer-tiny",
    "model.encoder_layers": 4,
    "model.decoder_layers": 4,
    "model.dropout": 0.2,
    "train.lr": 4e-3,
}
READ = 470_000  # pairs that it reads at least where no budget is given, some of them again and again
EPOCHS = 10  # at least
LARGE = 1 << 24  # bytes of files that are not read only to be counted


def suited(recipe: TranslateRecipe, corpus: Corpus | None = None) -> tuple[dict[str, Any], str]:
    """The settings of a training that begins with nothing, and a line that says why; `corpus` stands in for its data.
    Raises InputError or MissingError."""
    data = recipe.data
    if data.synthetic or data.mix or (corpus is None and (not data.path or _large(data.path))):
        return {}, ""
    count = _count(recipe) if corpus is None else len(corpus.train)
    why, plan = f"as there are {count:,} pairs", recipe.train
    if count <= FEW:
        return OF_FEW | {"train.rdrop": AGREED if _long(plan) else 0.0}, why
    if count <= SOME and (plan.minutes or LONG) >= LONG and data.scores == "bleu":
        epochs = {"train.epochs": max(EPOCHS, round(READ / count))}
        unbounded = plan.steps is None and plan.epochs is None and plan.minutes is None
        return OF_SOME | (epochs if unbounded else {}), why
    return {}, ""


def _large(path: str | tuple[str, ...]) -> bool:
    """Whether so much is there, or none of it on this machine, that it is read but once."""
    paths = [one for one, _ in paths_of((path,) if isinstance(path, str) else path)]
    inside = [file for one in paths for file in (one.rglob("*") if one.is_dir() else (one,)) if file.is_file()]
    return not inside or sum(file.stat().st_size for file in inside) > LARGE


def _count(recipe: TranslateRecipe) -> int:
    """How many pairs there are; of very many about."""
    data = recipe.data
    if folder := prepared_for(recipe.data.path, None):
        return int(read_manifest(folder)["counts"].get("pairs", 0))  # 0 of other data, which are refused later
    if _large(data.path):
        return preparation(recipe).pairs
    return len(read_whole(data.path, source=data.source, target=data.target, tag=data.tag).train)


def tuned(recipe: TranslateRecipe) -> tuple[dict[str, Any], str]:
    """The settings of a training that begins with a translator, and a line that says why. Raises InputError or
    MissingError."""
    start = Path(recipe.start_from)
    spec = spec_in(start)
    if not recipe.data.path or spec is None or spec.noise is not None:
        return {}, ""
    count = _count(recipe)
    plan, twice = recipe.train, dict[str, Any]()
    own_rate = plain_recipe(start).get("train", {}).get("lr")  # its peak, where its recipe says it
    if own_rate is not None and not plan.lora:
        rate = OWN_RATE * float(own_rate)
        epochs = max(2, round(OWN_EPOCHS * (OWN_PAIRS / count) ** 0.5))
        if count <= FEW:
            twice = {"train.tokens": OF_FEW["train.tokens"], "train.rdrop": AGREED if _long(plan) else 0.0}
    else:
        few = next((share for most, share in RATES if count <= most), RATE)
        rate = few * (ADAPTED if plan.lora else PUBLISHED)
        epochs = max(2, min(12, round(12 * (500 / count) ** 0.25)), -(-PAIRS // count))
    lr = float(f"{rate:.2g}")
    own: dict[str, Any] = {"train.optimizer": "adam", "train.lr": lr, "train.warmup": 100, **twice}
    own["train.patience"] = PATIENCE
    if plan.steps is None and plan.epochs is None and plan.minutes is None:
        own["train.epochs"] = epochs
    return own, f"as there are {count:,} pairs"


def _long(plan: PackedTrain) -> bool:
    """Whether no budget is given, or one of some minutes: each batch may pass twice then."""
    return plan.steps is None and plan.epochs is None and (plan.minutes or LONG) >= LONG
