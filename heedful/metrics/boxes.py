"""Scores of detected boxes, by COCO's own program."""

import contextlib
import io
from collections.abc import Sequence
from typing import Any, NamedTuple

from heedful.data.images.boxes import Box, Things
from heedful.errors import InputError


class ScoredBox(NamedTuple):
    label: str
    score: float
    box: Box


def average_precision(
    found: Sequence[Sequence[ScoredBox]], right: Sequence[Things], crowds: Sequence[Things] = ()
) -> dict[str, float]:
    """`map`, the mean over labels, and over overlaps (intersection over union) from 0.5 to 0.95, of the average
    precision of at most 100 boxes per picture; `map50` and `map75` at one overlap; `recall`, the mean share of boxes
    that are found (Lin et al. 2014, as pycocotools counts). Boxes found in the `crowds` of a picture count neither as
    right nor as wrong. Raises InputError where there is no box to find.
    """
    from pycocotools.cocoeval import COCOeval

    labels = sorted({thing.label for things in right for thing in things})
    if not labels:
        raise InputError("no box in any of these pictures", fix="give pictures with boxes")
    known = set(labels)
    said = [[one for one in own if one.label in known] for own in found]
    with contextlib.redirect_stdout(io.StringIO()):
        measure = COCOeval(_coco(right, labels, crowds), _coco(said, labels), "bbox")
        measure.evaluate()
        measure.accumulate()
        measure.summarize()
    names = {"map": 0, "map50": 1, "map75": 2, "recall": 8}
    return {name: float(measure.stats[place]) for name, place in names.items()}


def _coco(boxes: Sequence[Sequence[Any]], labels: Sequence[str], crowds: Sequence[Things] = ()) -> Any:
    from pycocotools.coco import COCO

    made = COCO()
    numbered = [(picture, one, 0) for picture, own in enumerate(boxes, 1) for one in own]
    numbered += [(picture, one, 1) for picture, own in enumerate(crowds, 1) for one in own if one.label in labels]
    made.dataset = {
        "images": [{"id": picture} for picture in range(1, len(boxes) + 1)],
        "categories": [{"id": number, "name": label} for number, label in enumerate(labels, 1)],
        "annotations": [
            {
                "id": number,
                "image_id": picture,
                "category_id": 1 + labels.index(one.label),
                "bbox": [left, upper, right - left, lower - upper],
                "area": (right - left) * (lower - upper),
                "iscrowd": crowd,
                "score": getattr(one, "score", 1.0),
            }
            for number, (picture, one, crowd) in enumerate(numbered, 1)
            for left, upper, right, lower in [one.box]
        ],
    }
    made.createIndex()
    return made
