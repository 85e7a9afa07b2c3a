"""A painter as a language model of pixels on the Hub: ImageGPT's processor makes the numbers of a picture's colours,
row by row; the token after the last colour comes before them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.core.config import from_json, to_json
from heedful.data.images.files import RESAMPLE
from heedful.errors import InputError
from heedful.exchange.hf.folder import read_object
from heedful.exchange.hub import GENERATION, Files, generation_config
from heedful.exchange.lists import optional
from heedful.exchange.preprocessor import IRRELEVANT, PREPROCESSOR
from heedful.models.lm import LMConfig
from heedful.run.task import Hub, HubFiles
from heedful.tasks.paint.use import Painter, PaintSpec

PROCESSOR = "ImageGPTImageProcessor"


def is_painter(folder: Path) -> bool:
    return optional(folder / PREPROCESSOR).get("image_processor_type") == PROCESSOR


def read_painter(folder: Path, said: Mapping[str, Any], config: LMConfig) -> Files:
    """Reads a painter. `said`: config.json, with the ids that it leaves out. Raises InputError for a preparation of
    pictures that `write_painter` would not write, and for colours that do not fit the model."""
    where = str(folder / PREPROCESSOR)
    theirs = read_object(folder / PREPROCESSOR)
    resample = theirs.get("resample")
    try:
        colours = [[round((value + 1) * 127.5) for value in colour] for colour in theirs["clusters"]]
        edges = [int(theirs["size"][edge]) for edge in ("height", "width")]
    except (KeyError, TypeError, ValueError, OverflowError):
        raise InputError("no clusters of colours, or no height and width", where=where) from None
    grey = all(len({*colour}) == 1 for colour in colours)
    square = edges[0] == edges[1]
    preparation = {
        "channels": 1 if grey else 3,
        "resize": edges[:1] if square else edges,
        "crop": edges if square else [],
        "resample": next((name for name, number in RESAMPLE.items() if number == resample), resample),
    }
    palette = {"colours": [colour[:1] if grey else colour for colour in colours]}
    spec = from_json(PaintSpec, {"palette": palette, "preparation": preparation}, where)
    expected = _processor(spec) | {"clusters": theirs["clusters"]}
    for key in (theirs | expected).keys() - IRRELEVANT:
        if theirs.get(key) != expected.get(key):
            raise InputError(f"{key} is {theirs.get(key)!r}: only {expected.get(key)!r} can be followed", where=where)
    begin = optional(folder / GENERATION).get("bos_token_id", said.get("bos_token_id"))
    made = (len(spec.palette) + 1, spec.pixels, len(spec.palette))
    if made != (config.embed.vocab_size, config.embed.context_length, begin):
        what = f"{made[0] - 1} colours and {made[1]} pixels, for which the model was not made"
        raise InputError(what, where=where, fix="get the whole folder again")
    return {"task.json": {"task": "paint", **to_json(spec)}}


def write_painter(run: Path, painter: Painter) -> HubFiles:
    """The files of the Hub. Its processor does not crop: pictures that are not square must be cropped before."""
    spec, begin = painter.spec, len(painter.spec.palette)
    search = {"bos_token_id": begin, "eos_token_id": begin, "max_length": spec.pixels + 1, "do_sample": True}
    made = {PREPROCESSOR: _processor(spec), GENERATION: generation_config(search | {"top_k": 0}, [begin])}
    return HubFiles(made, {"start": begin, "end": begin})


def _processor(spec: PaintSpec) -> dict[str, Any]:
    rows, columns = spec.preparation.size
    colours = [colour * (3 // len(colour)) for colour in spec.palette.colours]
    return {
        "image_processor_type": PROCESSOR,
        "clusters": [[value / 127.5 - 1 for value in colour] for colour in colours],
        "do_color_quantize": True,
        "do_convert_rgb": True,
        "do_resize": True,
        "size": {"height": rows, "width": columns},
        "resample": int(RESAMPLE[spec.preparation.resample]),
        "do_rescale": True,
        "rescale_factor": spec.preparation.factor,
        "do_normalize": True,
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
    }


HUB = Hub(read_painter, write_painter, told_by=is_painter)
