"""The files beside the weights of a classifier of pictures on the Hub."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.core.config import to_json
from heedful.errors import InputError
from heedful.exchange.hf.keys import PARAMS, params_of
from heedful.exchange.hub import Files
from heedful.exchange.preprocessor import PREPROCESSOR, hub_labels, preprocessor, read_preparation, unnumbered
from heedful.models.vit import ViTConfig
from heedful.run.task import Hub, HubFiles
from heedful.tasks.classify_images.use import ImageClassifier

OWN, MIRRORED = "image-classification", "mirrored"


def read_image_classifier(folder: Path, said: Mapping[str, Any], config: ViTConfig) -> Files:
    """`said`: their config.json. Classes of one name get their numbers behind it."""
    labels = hub_labels(said, config.n_classes)
    prepared = read_preparation(folder, channels=config.patches.channels)
    if not config.patches.holds(prepared.size):
        what = f"pictures of {prepared.size} pixels, smaller than a patch"
        raise InputError(what, where=str(folder / PREPROCESSOR))
    about = {"task": "classify-images", "labels": labels, "preparation": to_json(prepared)}
    if MIRRORED in (own := params_of(said, OWN)):
        about |= {"mirrored": own[MIRRORED]}
    return {"task.json": about}


def write_image_classifier(run: Path, classifier: ImageClassifier) -> HubFiles:
    """Their library looks at a picture once, also where this model averages over its mirror image too."""
    spec = classifier.spec
    said = {PARAMS: {OWN: {MIRRORED: True}}} if spec.mirrored else {}
    notes = (
        ["there a picture is looked at once: the run itself averages over its mirror image"] if spec.mirrored else []
    )
    made = {PREPROCESSOR: preprocessor(spec.preparation)}
    return HubFiles(made, {"labels": unnumbered(spec.labels)}, said, notes)


HUB = Hub(read_image_classifier, write_image_classifier)
