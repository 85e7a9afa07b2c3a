"""The files beside the weights of a segmenter on the Hub."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.core.config import from_json, to_json
from heedful.data.images.masks import IGNORE, Classes
from heedful.errors import InputError
from heedful.exchange.hf.folder import CONFIG, read_object
from heedful.exchange.hf.keys import PARAMS, params_of
from heedful.exchange.hub import Files
from heedful.exchange.preprocessor import PREPROCESSOR, hub_labels, read_preparation, uncropped, unnumbered
from heedful.models.pyramid import PyramidConfig
from heedful.run.task import Hub, HubFiles
from heedful.tasks.segment.use import Segmenter

OWN = "image-segmentation"


def read_segmenter(folder: Path, said: Mapping[str, Any], config: PyramidConfig) -> Files:
    """`said`: their config.json."""
    labels, theirs = hub_labels(said, config.n_classes), read_object(folder / PREPROCESSOR)
    prepared = read_preparation(folder, channels=config.channels)
    if prepared.crop:
        raise InputError("pictures are cropped, but every pixel has a class", where=str(folder / PREPROCESSOR))
    if len(labels) >= IGNORE:
        raise InputError(f"{len(labels)} classes, but masks have fewer numbers", where=str(folder))
    first = 1 if theirs.get("do_reduce_labels", theirs.get("reduce_labels")) else 0
    own = params_of(said, OWN)  # what other masks than theirs mean
    meant = {"labels": labels, "values": [*range(first, first + len(labels))]}
    meant |= {key: own[key] for key in ("values", "things") if key in own}
    classes = from_json(Classes, meant, str(folder / CONFIG))
    about = {"task": "segment", "classes": to_json(classes), "preparation": to_json(prepared)}
    return {"task.json": about}


def write_segmenter(run: Path, segmenter: Segmenter) -> HubFiles:
    spec, classes = segmenter.spec, segmenter.spec.classes
    first = classes.values[0]
    theirs = uncropped(spec.preparation, "Segformer") | {"do_reduce_labels": first == 1}
    plain = first in (0, 1) and classes == Classes(classes.labels, tuple(range(first, first + len(classes.labels))))
    said = {} if plain else {PARAMS: {OWN: {"values": [*classes.values], "things": classes.things}}}
    return HubFiles({PREPROCESSOR: theirs}, {"labels": unnumbered(spec.labels)}, said)


HUB = Hub(read_segmenter, write_segmenter)
