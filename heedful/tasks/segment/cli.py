"""`heed segment`."""

from pathlib import Path
from typing import Annotated

import typer

from heedful.tasks.shared.line_by_line import answers_to_pictures
from heedful.tasks.shared.options import Device, Json, Pictures, Run
from heedful.tasks.shared.terminal import Command, OutputFiles, printable, tell, write_png


def segment(
    run: Run,
    pictures: Pictures = None,
    out: Annotated[Path, typer.Option(help="A folder for the masks: NAME.png of each picture.")] = Path("segmented"),
    overlay: Annotated[
        bool, typer.Option("--overlay", help="Also NAME.overlay.png, colours over the picture.")
    ] = False,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Say what every pixel of a picture belongs to: a mask as large as the picture, of the numbers that the masks had
    which were learnt from.

    Example: heed segment runs/segment street.jpg --out segmented --overlay
    """
    import torch

    from heedful.data.images.files import read_image, to_image
    from heedful.look.marks import mask_image
    from heedful.look.marks import overlay as laid_over
    from heedful.run.device import chosen_device
    from heedful.tasks.segment.use import Segmenter, shares

    model = Segmenter.load(run, device=chosen_device(device))
    values = torch.tensor(model.spec.classes.values, dtype=torch.uint8)
    outputs = OutputFiles(pictures, out, folder=True, ending=".overlay.png" if overlay else ".png")
    for file, found in answers_to_pictures(pictures, model.segment, as_json=as_json, together=1):
        path = outputs(file)
        write_png(path, mask_image(values[found.long()].numpy()))
        if overlay:
            picture = to_image(read_image(file))
            write_png(path.with_name(f"{path.stem}.overlay.png"), laid_over(picture, found.numpy()))
        labels = shares(model, found)
        listed = ", ".join(f"{each['label']} {each['share']:.3f}" for each in labels)
        record = {"input": file, "mask": str(path), "labels": labels}
        tell(record, printable(str(path)) + f"\t{printable(listed)}\t{printable(file)}", as_json=as_json)


COMMANDS = (Command("segment", segment),)
