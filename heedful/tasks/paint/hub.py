"""A painter as a language model on the Hub, whose texts are pictures: ImageGPT's processor says the numbers of a
picture's colours, row by row, and the token after the last colour begins it."""

from pathlib import Path

from heedful.data.images.files import RESAMPLE
from heedful.exchange.hub import GENERATION, generation_config
from heedful.exchange.preprocessor import PREPROCESSOR
from heedful.run.task import Hub, HubFiles
from heedful.tasks.generate.hub import read_language_model
from heedful.tasks.paint.use import Painter


def write_painter(run: Path, painter: Painter) -> HubFiles:
    """That processor cuts nothing: pictures that are not square are to be cut before."""
    palette, fitting = painter.spec.palette, painter.spec.preparation
    rows, columns = fitting.size
    colours = [colour * (3 // len(colour)) for colour in palette.colours]
    processor = {
        "image_processor_type": "ImageGPTImageProcessor",
        "clusters": [[value / 127.5 - 1 for value in colour] for colour in colours],
        "do_color_quantize": True,
        "do_convert_rgb": True,
        "do_resize": True,
        "size": {"height": rows, "width": columns},
        "resample": int(RESAMPLE[fitting.resample]),
        "do_rescale": True,
        "rescale_factor": fitting.factor,
        "do_normalize": True,
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
    }
    begin = len(palette)
    search = {"bos_token_id": begin, "eos_token_id": begin, "max_length": rows * columns + 1, "do_sample": True}
    made = {PREPROCESSOR: processor, GENERATION: generation_config(search, [begin])}
    return HubFiles(made, {"start": begin, "end": begin})


HUB = Hub(read_language_model, write_painter)
