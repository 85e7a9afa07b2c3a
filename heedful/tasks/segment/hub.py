"""What stands beside the weights of a segmenter on the Hub."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.core.config import to_json
from heedful.data.images.masks import IGNORE, Classes
from heedful.errors import InputError
from heedful.exchange.hf.folder import read_object
from heedful.exchange.hub import Files
from heedful.exchange.preprocessor import PREPROCESSOR, hub_labels, read_preparation, uncropped, unnumbered
from heedful.models.pyramid import PyramidConfig
from heedful.run.task import Hub, HubFiles
from heedful.tasks.segment.use import Segmenter


def read_segmenter(folder: Path, said: Mapping[str, Any], config: PyramidConfig) -> Files:
    """`said`: their config.json."""
    labels, theirs = hub_labels(said, config.n_classes), read_object(folder / PREPROCESSOR)
    prepared = read_preparation(folder, channels=config.channels)
    if prepared.crop:
        raise InputError("pictures are cropped, but every pixel has a class", where=str(folder / PREPROCESSOR))
    if len(labels) >= IGNORE:
        raise InputError(f"{len(labels)} classes, but masks have fewer numbers", where=str(folder))
    first = 1 if theirs.get("do_reduce_labels", theirs.get("reduce_labels")) else 0
    classes = Classes(tuple(labels), tuple(range(first, first + len(labels))))
    about = {"task": "segment", "classes": to_json(classes), "preparation": to_json(prepared)}
    return {"task.json": about}


def write_segmenter(run: Path, segmenter: Segmenter) -> HubFiles:
    spec = segmenter.spec
    theirs = uncropped(spec.preparation, "Segformer") | {"do_reduce_labels": spec.classes.values[0] == 1}
    return HubFiles({PREPROCESSOR: theirs}, {"labels": unnumbered(spec.labels)})


HUB = Hub(read_segmenter, write_segmenter)
