"""Training a painter, from scratch or from another's weights: from a recipe and its pictures to a palette and the
configuration of a language model over it."""

from collections.abc import Mapping
from hashlib import sha256
from math import isqrt
from pathlib import Path
from typing import Any

from heedful.core.config import from_json, to_json
from heedful.data.augment import AUGMENTS
from heedful.data.images import Preparation, survey
from heedful.data.labelled_images import LabelledImages, read_labelled_images
from heedful.data.palette import Palette, grey_palette, learn_palette
from heedful.errors import InputError
from heedful.look.sheet import contact_sheet, png
from heedful.models.lm import LMConfig
from heedful.models.presets import PAINTERS, language_model
from heedful.store import files
from heedful.tasks.folder import parameters, write_model
from heedful.tasks.job import Measured, Scores
from heedful.tasks.paint import About, Painter, PaintTask
from heedful.tasks.picture_job import augment_of, begin_from, picture_card, read_start
from heedful.tasks.recipe import Recipe, row_of

GREYS, COLOURS = 16, 512
SHOWN = 16  # pictures of a sample


class PaintJob:
    """`corpus` stands in for the recipe's data, labels and all; `begun`, a run's folder, has the palette. All pictures
    are read once, so that what is wrong with one is said before anything is trained. Raises InputError."""

    def __init__(self, recipe: Recipe, corpus: LabelledImages | None = None, begun: Path | None = None) -> None:
        self.recipe, plan = recipe, recipe.images
        if corpus is None and not recipe.data.path:
            raise InputError("no data was given", fix="--data PATH: a folder of pictures, or an idx file")
        self.start = read_start(recipe, begun, LMConfig, About)
        channels = plan.channels if self.start is None else self.start.about.preparation.channels
        self.corpus = corpus = corpus or read_labelled_images(recipe.data.path, channels=channels, labelled=False)
        found = survey(corpus.train.images)
        for part in (corpus.valid, *corpus.tests.values()):
            survey(part.images)
        if self.start is None:
            row = row_of(PAINTERS, recipe)
            size = plan.size or isqrt(row.context)
            preparation = Preparation(channels=corpus.channels, resize=(size,), crop=(size, size))
            palette = _palette(recipe, corpus, preparation) if begun is None else _known(begun)
            self.about = About(palette=palette, preparation=preparation)
            self.config = language_model(row, vocab_size=len(palette) + 1, context=self.about.pixels)
        elif plan.size or plan.colours:
            what = f"images.size and images.colours cannot be chosen: they are those of {recipe.start_from}"
            raise InputError(what, fix="leave them out, or start_from")
        else:
            self.config, self.about = self.start
        self.augment = augment_of(plan, AUGMENTS)
        self.notes = list(corpus.notes)
        self.fingerprint = found.fingerprint
        self.tokenizer_hash = sha256(repr(self.about.palette).encode()).hexdigest()
        self.score_names: tuple[str, ...] = ("bits_per_pixel",)

    def describe(self) -> str:
        rows, columns = self.about.preparation.size
        return f"{len(self.corpus.train):,} pictures, {rows} x {columns} pixels of {len(self.about.palette)} colours"

    def tokenizers(self) -> dict[str, bytes]:
        return {}

    def facts(self) -> dict[str, object]:
        parts = {"train": self.corpus.train, "valid": self.corpus.valid, **self.corpus.tests}
        return {
            "pictures": {name: len(part) for name, part in parts.items()},
            **to_json(self.about),
            "fingerprint": self.fingerprint,
            "notes": self.notes,
        } | (self.start.facts() if self.start else {})

    def begin(self, model: Any) -> None:
        if self.start is not None:
            begin_from(self.recipe.start_from, model)

    def task(self, model: Any) -> PaintTask:
        return PaintTask(self.corpus.train.images, self.about, self.augment, self.recipe)

    def measure(self, model: Any) -> Measured:
        """On the first of the validation pictures, with some that the model draws."""
        painter = Painter(model, self._task())
        most = min(self.recipe.train.eval_sentences, len(self.corpus.valid))
        scores = painter.evaluate([self.corpus.valid.images[i] for i in range(most)])
        loss = scores.pop("loss")
        return Measured(loss, scores, -loss, png(contact_sheet(painter.paint(samples=SHOWN)[0], columns=4)))

    def write(self, folder: Path, model: Any) -> None:
        write_model(folder, model, parameters(model), {"task.json": self._task()})

    def finish(self, folder: Path, device: str) -> Scores:
        best = Painter.load(folder, device=device)
        sets = self.corpus.tests or {"valid": self.corpus.valid}
        return {name: best.evaluate(part.images) for name, part in sets.items()}

    def card(self, folder: Path, scores: Scores, best: Mapping[str, Any], minutes: float) -> str:
        return picture_card(
            folder,
            self.recipe,
            scores,
            what=f"Draws pictures, and completes them, pixel by pixel in {len(self.about.palette)} colours.",
            trained=f"{len(self.corpus.train):,} pictures from `{self.corpus.name}`",
            preparation=self.about.preparation,
            kept=f"step {best['step']:,}, the best on validation pictures ({best['bits_per_pixel']:.4f} bits a pixel)",
            minutes=minutes,
            use=[
                f"heed paint {folder} --out new.png",
                f"heed paint {folder} PICTURE.png --keep 0.5 --out completed",
                f"heed eval {folder} --data MORE",
            ],
            notes=self.notes,
        )

    def _task(self) -> dict[str, object]:
        return {"task": "paint", **to_json(self.about)}


def _palette(recipe: Recipe, corpus: LabelledImages, preparation: Preparation) -> Palette:
    wanted = recipe.images.colours
    if preparation.channels == 1:
        return grey_palette(wanted or GREYS)
    return learn_palette(corpus.train.images, preparation, colours=wanted or COLOURS, seed=recipe.train.seed)


def _known(begun: Path) -> Palette:
    where = begun / "data.json"
    return from_json(Palette, files.read_json(where)["palette"], where=str(where))
