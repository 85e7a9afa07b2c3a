"""The files beside the weights of a detector on the Hub."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from heedful.core.config import to_json
from heedful.errors import InputError
from heedful.exchange.hf.rules import Recast
from heedful.exchange.hub import Files
from heedful.exchange.preprocessor import PREPROCESSOR, hub_labels, read_preparation, uncropped, unnumbered
from heedful.models.detr import DETRConfig
from heedful.run.task import Hub, HubFiles
from heedful.tasks.detect.use import Detector


def read_detector(folder: Path, said: Mapping[str, Any], config: DETRConfig) -> Files:
    """`said`: their config.json."""
    prepared, where = read_preparation(folder, channels=config.backbone.channels), str(folder / PREPROCESSOR)
    if prepared.crop:
        raise InputError("pictures are cropped, but boxes may be anywhere in them", where=where)
    if len(prepared.resize) == 1 and prepared.longest is None:
        raise InputError("size has a shortest_edge without the longest_edge that DETR's pictures have", where=where)
    about = {"task": "detect", "labels": hub_labels(said, config.n_classes), "preparation": to_json(prepared)}
    return {"task.json": about}


def write_detector(run: Path, detector: Detector) -> HubFiles:
    spec = detector.spec
    return HubFiles({PREPROCESSOR: uncropped(spec.preparation, "Detr")}, {"labels": unnumbered(spec.labels)})


def with_batch_norms(detector: Detector) -> Recast[DETRConfig]:
    """The same, where scales and shifts that have learned are those of norms that stand still."""
    config = detector.model.config
    norm = "batch" if config.backbone.norm == "affine" else config.backbone.norm
    return Recast(replace(config, backbone=replace(config.backbone, norm=norm)), dict)


HUB = Hub(read_detector, write_detector, with_batch_norms)
