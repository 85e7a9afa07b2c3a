"""The demonstration: trains a translator on the phrasebook, uses it, and looks inside, without a download."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from heedful.data.made.phrasebook import phrasebook
from heedful.data.text.corpus import Corpus
from heedful.data.text.pairs import Pairs
from heedful.run.device import chosen_device
from heedful.run.events import Event, Measured, Note
from heedful.run.recipe import override
from heedful.run.train import train
from heedful.store import files
from heedful.tasks.shared.look import draw_text
from heedful.tasks.translate import TRANSLATE
from heedful.tasks.translate.inside.look import look_at_translation
from heedful.tasks.translate.recipe import TranslateRecipe
from heedful.tasks.translate.use import Translator

PAIRS, TESTED = 60_000, 1_000
LABEL = "reference  "  # all labels of a sample have this width
SHOWN = "My brother is going to buy three red apples."


def demo_recipe(settings: Sequence[str] = ()) -> TranslateRecipe:
    """Enough steps to get 96 % right, or as many as four minutes allow: about 900 on two cores with AVX2 only."""
    recipe = TranslateRecipe.model_validate(
        {
            "preset": "transformer-small",
            "model": {
                "d_model": 96,
                "n_heads": 3,
                "d_ff": 384,
                "encoder_layers": 3,
                "decoder_layers": 2,
                "dropout": 0.0,
            },
            "data": {"path": "phrasebook", "source": "en", "target": "fr", "vocab_size": 3000},
            "train": {
                "minutes": 4.0,
                "steps": 1000,
                "optimizer": "muon",
                "lr": 8e-3,
                "schedule": "linear",
                "warmup": 100,
                "average": 0.99,
                "smoothing": 0.0,
                "eval_every": 160,
                "eval_sentences": 1000,
            },
        }
    )
    return override(recipe, settings)


def train_demo(out: Path, recipe: TranslateRecipe, device: str = "auto") -> Iterator[Event]:
    """Trains on the phrasebook into `out`, yielding what `train` yields."""
    book = phrasebook(PAIRS, seed=recipe.train.seed)
    train_pairs, valid, test = (
        Pairs([source for source, _ in pairs], [target for _, target in pairs], "the phrasebook")
        for pairs in (book.train, book.valid, book.test)
    )
    corpus = Corpus(train_pairs, valid, {"test": test}, "made", source="en", target="fr")
    where = None if device == "auto" else torch.device(chosen_device(device))
    told = False
    for event in train(TRANSLATE, recipe, out, corpus=corpus, device=where):
        yield event
        if isinstance(event, Measured) and not told and (pair := _first_right(event.sample)):
            told = True
            yield Note(f"the first that is right: {pair[0]} -> {pair[1]}")


def _first_right(sample: str | bytes) -> tuple[str, str] | None:
    """The first translation in a measurement's sample that equals the reference, and its source."""
    assert isinstance(sample, str)
    for shown in sample.strip().split("\n\n"):
        source, made, reference = (line[len(LABEL) :] for line in shown.split("\n"))
        if made == reference:
            return source, made
    return None


def examples(out: Path) -> list[tuple[str, str]]:
    """Five unseen sentences of different kinds, and their translations by the trained model."""
    book = phrasebook(PAIRS, seed=1)
    first: dict[str, str] = {}
    for source, _ in book.test:
        first.setdefault(book.kinds[source], source)
    kinds = ("date", "price", "wh_question", "pronoun", "relative")
    sources = [first[kind] for kind in kinds if kind in first]
    return list(zip(sources, Translator.load(out).translate(sources), strict=True))


def pictures(out: Path) -> tuple[Path, Path]:
    """Writes a picture of the cross-attention, and a page with all attention, into the run's folder."""
    looked = look_at_translation(Translator.load(out), SHOWN)
    paths = out / "plots" / "attention.png", out / "plots" / "attention.html"
    for path in paths:
        files.write_bytes(path, draw_text(looked, path.suffix.removeprefix(".")))
    return paths
