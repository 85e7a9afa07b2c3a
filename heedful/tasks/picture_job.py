"""What the trainings of models share that see whole pictures: views, sizes, models to begin with, model cards."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from heedful.core.config import from_json, to_json
from heedful.data.augment import Augment
from heedful.data.images import Images, Preparation
from heedful.data.views import VIEWS
from heedful.errors import InputError
from heedful.models.vision_presets import TwoTowers, Vision
from heedful.store import files
from heedful.store.checkpoint import read_model
from heedful.tasks.card import model_card, origin, score_table
from heedful.tasks.folder import load_weights, parameters
from heedful.tasks.job import Scores
from heedful.tasks.load import load_model, task_of
from heedful.tasks.pictures import Viewer
from heedful.tasks.recipe import ImagesRecipe, Recipe

Row = TypeVar("Row", Vision, TwoTowers)
SMALL = 64  # pixels of an edge: so many or fewer are seen as they are, and presets for them keep their grid
LARGEST = 256  # pixels of the longer edge that a new model sees, where the recipe names none
MULTIPLE = 8  # of pixels that edges are rounded to


def make_viewer(images: Images, preparation: Preparation, recipe: Recipe) -> Viewer:
    """By what the recipe says of pictures. Raises InputError for what only a classifier can do."""
    plan = recipe.images
    return Viewer(images, preparation, augment_of(plan, VIEWS), recipe.train.seed, plan.batch)


def augment_of(plan: ImagesRecipe, known: Mapping[str, Augment], *, labels: bool = False) -> Augment:
    """What `images.augment` names. Raises InputError for what asks for pictures with `labels`, where they have none."""
    if plan.mixup and not labels:
        raise InputError("images.mixup: pictures are mixed where they have one label each", fix="leave it out")
    if plan.mirrored and not labels:
        raise InputError("images.mirrored: it says which label a picture has", fix="leave it out")
    return replace(known[plan.augment], flip=known[plan.augment].flip and plan.flip)


def view_size(size: tuple[int, int], longest: int | None) -> tuple[int, int]:
    """Rows and columns of about the shape of `size`, the longer edge `longest` pixels, or by itself at most LARGEST."""
    share = (longest or min(LARGEST, max(size))) / max(size)
    rows, columns = (max(MULTIPLE, round(edge * share / MULTIPLE) * MULTIPLE) for edge in size)
    return rows, columns


def fitted(row: Row, recipe: Recipe, pictures: tuple[int, int]) -> tuple[Row, int]:
    """A preset for pictures of about this size, and the edge that it sees. Of one for small pictures the patches are as
    large as leaves about its grid, unless `model.patch` is given."""
    size = recipe.images.size or (row.size if row.size > SMALL else min(SMALL, *pictures))
    if "patch" in recipe.model or row.size > SMALL:
        return row, size
    wanted, whole = size * row.patch / row.size, (patch for patch in range(1, size + 1) if size % patch == 0)
    return replace(row, patch=min(whole, key=lambda patch: abs(patch - wanted))), size


class Start(NamedTuple):
    """The model that training begins with, and what its task.json says."""

    config: Any
    about: Any

    def facts(self) -> dict[str, object]:
        return {"start": [to_json(self.config), to_json(self.about)]}


def read_start(recipe: Recipe, begun: Path | None, config: type, about: type) -> Start | None:
    """The model of `recipe.start_from`; a run that has begun knows it by itself. Raises InputError or MissingError."""
    if not recipe.start_from:
        return None
    if begun is not None:
        saved = files.read_json(begun / "data.json")["start"]
        return Start(from_json(config, saved[0]), from_json(about, saved[1]))
    folder = Path(recipe.start_from)
    if task_of(folder) != recipe.task:
        raise InputError(f"not a model of heed train {recipe.task}", where=str(folder), fix="start from another run")
    if recipe.model:
        key = next(iter(recipe.model))
        what = f"model.{key} cannot be chosen: the model is that of {folder}"
        raise InputError(what, fix=f"leave out model.{key}, or start_from")
    served = load_model(folder)
    return Start(served.model.config, served.says)


def begin_from(run: str, model: Any, *, new: Collection[str] = ()) -> None:
    """Gives the model the weights of a run, but for those whose names begin with one of `new`."""
    _, tensors = read_model(Path(run))
    own = parameters(model)
    kept = {name: own[name] for name in own if any(name.startswith(f"{part}.") for part in new)}
    load_weights(model, tensors | kept, where=f"{run}/model.safetensors")


def picture_card(
    folder: Path,
    recipe: Recipe,
    scores: Scores,
    *,
    what: str,
    trained: str,
    preparation: Preparation,
    kept: str,
    minutes: float,
    use: Sequence[str],
    notes: Sequence[str],
) -> str:
    """README.md of a run's folder."""
    return model_card(
        folder,
        what=f"{what} Trained {origin(recipe.start_from)} by heedful on {trained}.",
        table=score_table("pictures", scores),
        how=f"Pictures are resized to {' x '.join(map(str, preparation.size))} pixels.",
        kept=kept,
        minutes=minutes,
        use=use,
        limits="It has seen only the pictures above: on others expect worse than the table says.",
        notes=notes,
    )
