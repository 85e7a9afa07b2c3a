"""`heed detect`."""

from pathlib import Path
from typing import Annotated

import typer

from heedful.tasks.detect.options import DetectOptions
from heedful.tasks.shared.line_by_line import answers_to_pictures
from heedful.tasks.shared.options import Device, Json, Pictures, Run, option_of
from heedful.tasks.shared.terminal import Command, OutputFiles, printable, tell, write_png


def detect(
    run: Run,
    pictures: Pictures = None,
    threshold: Annotated[float, option_of("threshold", DetectOptions)] = 0.5,
    out: Annotated[Path | None, typer.Option(help="Draw them: a .png file, or a folder for several pictures.")] = None,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Find things in pictures: their labels and boxes (left, upper, right and lower edge, in pixels).

    Example: heed detect runs/detect street.jpg --out found.png
    """
    from heedful.data.images.files import read_image, to_image
    from heedful.look.marks import draw_boxes
    from heedful.metrics.boxes import ScoredBox
    from heedful.run.device import chosen_device
    from heedful.tasks.detect.use import Detector, detected_record

    model = Detector.load(run, device=chosen_device(device))
    outputs, labels = OutputFiles(pictures, out), model.spec.labels

    def detected(files: list[str]) -> list[list[ScoredBox]]:
        return model.detect(files, threshold=threshold)

    for file, found in answers_to_pictures(pictures, detected, as_json=as_json, together=1):
        boxes = ((one, " ".join(f"{edge:.0f}" for edge in one.box)) for one in found)
        lines = (f"{printable(one.label)}\t{one.score:.3f}\t{edges}\t{printable(file)}" for one, edges in boxes)
        tell(detected_record(file, found), lines, as_json=as_json)
        if out is not None:
            marks = [(f"{one.label} {one.score:.2f}", one.box, labels.index(one.label)) for one in found]
            write_png(outputs(file), draw_boxes(to_image(read_image(file)), marks))


COMMANDS = (Command("detect", detect),)
