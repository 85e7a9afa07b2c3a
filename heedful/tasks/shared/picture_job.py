"""Shared by the trainings of models that read whole pictures: views, sizes, starts, model cards."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, TypeVar

from heedful.core.config import from_json, to_json
from heedful.data.images.augment import Augment
from heedful.data.images.files import Images, Preparation, SomeImages, Survey, survey
from heedful.data.images.views import VIEWS
from heedful.data.parts import spread
from heedful.models import config_from
from heedful.models.vision_presets import ClipSize, ViTSize
from heedful.run.card import CardText, Scores, fingerprint, score_table
from heedful.run.job import C, Job, M
from heedful.run.recipe import Recipe
from heedful.run.start import begun_with, started_from
from heedful.store import files
from heedful.tasks.shared.pictures import Prepared, Viewer
from heedful.tasks.shared.sections import ImagesRecipe, ImagesSection
from heedful.tasks.shared.served import spec_of

R = TypeVar("R", bound=ImagesRecipe)
Row = TypeVar("Row", ViTSize, ClipSize)
SMALL = 64  # pixels of an edge, up to which pictures are not resized and presets keep their grid
LARGEST = 256  # pixels of the longer edge of a new model, where the recipe names none
MULTIPLE = 8  # edges are rounded to multiples of this many pixels


class PictureStart(NamedTuple):
    """The model that the training starts from, and its task.json."""

    config: Any
    spec: Any

    def facts(self) -> dict[str, object]:
        return {"start": [to_json(self.config), to_json(self.spec)]}


def some_pictures(part: Any, numbers: list[int]) -> Any:
    """A part with only these pictures and their annotations."""
    own = {one.name: getattr(part, one.name) for one in fields(part)}
    picked = {
        name: [values[i] for i in numbers if values] if isinstance(values, list) else SomeImages(values, numbers)
        for name, values in own.items()
    }
    return replace(part, **picked)


class PictureJob(Job[R, C, M]):
    """All pictures are read once at the beginning, so that a damaged one is reported before the training."""

    unit: ClassVar = "pictures"
    config_kind: ClassVar[type]
    spec_kind: ClassVar[type]
    start: PictureStart | None
    answers: Prepared
    learnt: tuple[str, ...]  # a hash of each training picture

    def read_start(self) -> PictureStart | None:
        """The model of `start_from`; a run that has begun has it in its own files. Raises InputError or
        MissingError."""
        recipe = self.recipe
        if not recipe.start_from:
            return None
        if self.begun is not None:
            saved = files.read_json(self.begun / "data.json")["start"]
            return PictureStart(from_json(self.config_kind, saved[0]), from_json(self.spec_kind, saved[1]))
        folder, about = started_from(recipe, recipe.task)
        config = config_from(begun_with(recipe, folder), where=f"{folder}/config.json")
        return PictureStart(config, spec_of(self.spec_kind, about))

    def read_pictures(self) -> Survey:
        """Reads the pictures of all parts, and returns facts about the training pictures. Raises InputError for a
        damaged picture."""
        corpus: Any = self.corpus
        found = survey(corpus.train.images)
        self.learnt = found.each
        for part in (corpus.valid, *corpus.tests.values()):
            survey(part.images)
        return found

    def seen_whole(self, found: Survey, *, longest: int = LARGEST) -> Preparation:
        """The preparation of pictures without cropping: that of the model that is started from, or to the size of the
        recipe, or to the pictures' own size, of which the longer edge has at most `longest` pixels."""
        corpus: Any = self.corpus
        size = view_size(corpus.size, self.recipe.images.size or min(longest, max(corpus.size)))
        if self.start is None:
            return Preparation(channels=corpus.channels, resize=size, mean=found.mean, std=found.std)
        seen: Preparation = self.start.spec.preparation
        if self.recipe.images.size is not None or len(seen.resize) != 2:
            return replace(seen, resize=size, longest=None)
        return seen

    def portion(self, valid: Any, share: float) -> Any:
        """A part with a share of its pictures and their annotations."""
        return some_pictures(valid, spread(len(valid), share))

    @property
    def channels(self) -> int | None:
        """The channels that pictures are read with; None: those of the pictures."""
        return self.recipe.images.channels if self.start is None else self.start.spec.preparation.channels

    def trained_on(self) -> Sequence[str]:
        return self.learnt

    @cached_property
    def valid_fingerprint(self) -> str:
        """A hash of the pixels, masks and annotations, but not of the file names."""
        valid: Any = self.corpus.valid
        parts = [getattr(valid, one.name) for one in fields(valid) if one.name != "names"]
        return fingerprint(repr(part) if isinstance(part, list) else survey(part).fingerprint for part in parts)

    def told(
        self,
        scores: Scores,
        *,
        what: str,
        learnt_on: str,
        kept: str,
        use: Sequence[str],
    ) -> CardText:
        return CardText(
            what=what,
            learnt_on=learnt_on,
            table=score_table("pictures", scores),
            how=f"{seen_as(self.answers.preparation)}.",
            kept=kept,
            use=use,
            limits="It has seen only the pictures above: on others expect worse than the table says.",
        )

    def notes_on_data(self) -> Sequence[str]:
        return self.notes


def seen_as(seen: Preparation) -> str:
    """How pictures are prepared for a model, in words."""
    size = " x ".join(map(str, seen.size))
    if len(seen.resize) == 1 and seen.crop:
        return (
            f"Of each picture, its shorter edge resized to {seen.resize[0]} pixels, the middle {size} pixels are seen"
        )
    return f"Pictures are resized to {size} pixels"


def make_viewer(images: Images, preparation: Preparation, plan: ImagesSection, seed: int) -> Viewer:
    """The viewer that the recipe describes."""
    return Viewer(images, preparation, augment_of(plan, VIEWS), seed, plan.batch)


def augment_of(plan: ImagesSection, known: Mapping[str, Augment]) -> Augment:
    """The augmentation that `images.augment` names."""
    return replace(known[plan.augment], flip=known[plan.augment].flip and plan.flip)


def view_size(size: tuple[int, int], longest: int) -> tuple[int, int]:
    """Rows and columns with about the proportions of `size`; the longer edge has `longest` pixels."""
    share = longest / max(size)
    rows, columns = (max(MULTIPLE, round(edge * share / MULTIPLE) * MULTIPLE) for edge in size)
    return rows, columns


def fitted(row: Row, recipe: Recipe, wanted: int | None, pictures: tuple[int, int]) -> tuple[Row, int]:
    """A preset fitted to pictures of about this size, and the edge that it sees, `wanted` or its own. For small
    pictures the size of the patches is changed so that the grid stays about the same, unless `model.patch` is given."""
    size = wanted or (row.size if row.size > SMALL else min(SMALL, *pictures))
    if "patch" in recipe.model or row.size > SMALL:
        return row, size
    aim, whole = size * row.patch / row.size, (patch for patch in range(1, size + 1) if size % patch == 0)
    return replace(row, patch=min(whole, key=lambda patch: abs(patch - aim))), size
