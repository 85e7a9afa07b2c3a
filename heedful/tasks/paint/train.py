"""Trains a painter, from scratch or from another's weights."""

from collections.abc import Mapping
from functools import cached_property
from hashlib import sha256
from math import isqrt
from pathlib import Path
from typing import Any, ClassVar

from heedful.core.config import from_json, to_json
from heedful.data.images.augment import AUGMENTS, Augment, seen
from heedful.data.images.files import Images, Preparation, SomeImages
from heedful.data.images.labelled import LabelledImages, Part, read_labelled_images
from heedful.data.images.palette import Palette, grey_palette, learn_palette
from heedful.data.parts import some_of
from heedful.errors import InputError, counted
from heedful.look.sheet import contact_sheet, png
from heedful.models.lm import LM, LMConfig
from heedful.models.presets import PAINTERS, lm_config
from heedful.run.card import CardText, Scores
from heedful.run.job import Measurement
from heedful.run.recipe import row_of
from heedful.store import files
from heedful.tasks.generate.losses import next_token_loss
from heedful.tasks.paint.recipe import PaintRecipe
from heedful.tasks.paint.use import Painter, PaintSpec
from heedful.tasks.shared.picture_job import PictureJob, augment_of
from heedful.tasks.shared.pictures import PictureBatch, picture_batches
from heedful.training.loss import Loss

GREYS, COLOURS = 16, 512
SHOWN = 16  # pictures in a sample


class PaintTask:
    """Batches of pictures, which are read and augmented only when their loss, in nats per pixel, is computed."""

    def __init__(self, images: Images, spec: PaintSpec, augment: Augment, recipe: PaintRecipe) -> None:
        self.images, self.spec, self.augment = images, spec, augment
        self.seed, self.size, self.smoothing = recipe.train.seed, recipe.images.batch, recipe.train.smoothing or 0.0

    def batches(self, epoch: int, model: object) -> list[PictureBatch]:
        return picture_batches(len(self.images), self.size, seed=self.seed, epoch=epoch)

    def loss(self, model: LM, batch: PictureBatch) -> Loss:
        spec = self.spec
        pictures = seen(self.images, batch.pictures, spec.preparation, self.augment, self.seed, batch.epoch)
        return next_token_loss(model, spec.batch(pictures), across=True, smoothing=self.smoothing)


class PaintJob(PictureJob[PaintRecipe, LabelledImages, LM]):
    """The training of a painter. Labels in the data are ignored."""

    kinds: ClassVar = "a folder of pictures, or an idx file"
    served: ClassVar = Painter
    config_kind: ClassVar = LMConfig
    spec_kind: ClassVar = PaintSpec
    score_names = ("bits_per_pixel",)
    answers: PaintSpec

    def __init__(self, recipe: PaintRecipe, corpus: LabelledImages | None = None, begun: Path | None = None) -> None:
        super().__init__(recipe, corpus, begun)
        corpus, plan = self.corpus, recipe.images
        found = self.read_pictures()
        if self.start is None:
            row = row_of(PAINTERS, recipe)
            size = plan.size or isqrt(row.context_length)
            preparation = Preparation(channels=corpus.channels, resize=(size,), crop=(size, size))
            palette = _palette(recipe, corpus, preparation) if begun is None else _begun_palette(begun)
            self.answers = PaintSpec(palette=palette, preparation=preparation)
            self.config = lm_config(row, vocab_size=len(palette) + 1, context_length=self.answers.pixels)
        elif plan.size or plan.colours:
            what = f"images.size and images.colours cannot be chosen: they are those of {recipe.start_from}"
            raise InputError(what, fix="leave them out, or start_from")
        else:
            self.config, self.answers = self.start
        some = some_of(len(corpus.valid), recipe.train.eval_sentences)
        self.valid = Part(SomeImages(corpus.valid.images, some), [corpus.valid.labels[i] for i in some])
        self.augment = augment_of(plan, AUGMENTS)
        self.fingerprint = found.fingerprint

    @cached_property
    def tokenizer_hash(self) -> str:
        return sha256(repr(self.answers.palette).encode()).hexdigest()

    def read(self) -> LabelledImages:
        return read_labelled_images(self.recipe.data.path, channels=self.channels, labelled=False)

    def describe(self) -> str:
        rows, columns = self.answers.preparation.size
        pictures = counted(len(self.corpus.train), "picture")
        return f"{pictures}, {rows} x {columns} pixels of {len(self.answers.palette)} colours"

    def own_facts(self) -> dict[str, object]:
        return to_json(self.answers)

    def task(self, model: LM) -> PaintTask:
        return PaintTask(self.corpus.train.images, self.answers, self.augment, self.recipe)

    def measure(self, model: LM) -> Measurement:
        """Measures the loss on validation pictures; the sample shows pictures that the model generates."""
        painter = Painter(model, self.spec())
        scores = painter.measure(self.valid.images)
        loss = scores.pop("loss")
        return Measurement(loss, scores, -loss, png(contact_sheet(painter.paint(samples=SHOWN)[0], columns=4)))

    def score(self, best: Painter, part: Part) -> Mapping[str, Any]:
        return best.measure(part.images)

    def tells(self, folder: Path, scores: Scores, best: Mapping[str, Any]) -> CardText:
        return self.told(
            scores,
            what=f"Draws pictures, and completes them, pixel by pixel in {len(self.answers.palette)} colours.",
            learnt_on=f"{counted(len(self.corpus.train), 'picture')} from `{self.corpus.name}`",
            kept=f"step {best['step']:,}, the best on validation pictures ({best['bits_per_pixel']:.4f} bits a pixel)",
            use=[
                f"heed paint {folder} --out new.png",
                f"heed paint {folder} PICTURE.png --keep 0.5 --out completed",
                f"heed eval {folder} --data MORE",
            ],
        )


def _palette(recipe: PaintRecipe, corpus: LabelledImages, preparation: Preparation) -> Palette:
    wanted = recipe.images.colours
    if preparation.channels == 1:
        return grey_palette(wanted or GREYS)
    return learn_palette(corpus.train.images, preparation, colours=wanted or COLOURS, seed=recipe.train.seed)


def _begun_palette(begun: Path) -> Palette:
    where = begun / "data.json"
    return from_json(Palette, files.read_json(where)["palette"], where=str(where))
