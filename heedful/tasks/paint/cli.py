"""`heed paint`."""

from pathlib import Path
from typing import Annotated

import typer

from heedful.decode.settings import SamplingOptions
from heedful.store import files
from heedful.store.refusals import refuse_read
from heedful.tasks.paint.options import PaintOptions
from heedful.tasks.shared.options import Device, Json, Offered, Run, by_groups, option_of
from heedful.tasks.shared.terminal import Command, OutputFiles, tell, write_png


@by_groups
def paint(
    run: Run,
    pictures: Annotated[
        list[str] | None, typer.Argument(help="Files of pictures to complete; without any, from nothing.")
    ] = None,
    keep: Annotated[float, option_of("keep", PaintOptions)] = 0.5,
    samples: Annotated[int | None, option_of("samples", PaintOptions, show_default="1; new, 16")] = None,
    batch: Annotated[int, typer.Option(min=1, help="How many pictures are made at a time.")] = 32,
    out: Annotated[
        Path, typer.Option(help="A .png file for all side by side, or a folder: NAME-1.png and so on of each picture.")
    ] = Path("painted"),
    device: Device = "auto",
    as_json: Json = False,
    *,
    sampling: Annotated[SamplingOptions, Offered("temperature", "top_k", "top_p", "seed")],
) -> None:
    """Make new pictures, or complete the upper part of given ones, pixel by pixel.

    Example: heed paint runs/paint digit.png --keep 0.5 --samples 4 --out completed.png
    """
    from heedful.data.images.files import to_image
    from heedful.look.sheet import contact_sheet
    from heedful.run.device import chosen_device
    from heedful.tasks.paint.use import Painter

    whole, samples = out.suffix == ".png", samples or (1 if pictures else 16)
    names = pictures or ["new"]
    if whole:
        files.need_output(out, makes_folder=True)
        refuse_read(out, pictures or ())
    ending = f"-{samples}.png"
    outputs = [out] * len(names) if whole else list(map(OutputFiles(names, out, folder=True, ending=ending), names))
    painter = Painter.load(run, device=chosen_device(device))
    begun = painter.begin(pictures, keep=keep) if pictures else None
    made = painter.paint(begun, samples=samples, batch=batch, **sampling)
    if whole:
        write_png(out, contact_sheet(made.flatten(0, 1), columns=samples if pictures else 4))
    for name, file, own in zip(names, outputs, made, strict=True):
        for number, picture in enumerate(own, 1):
            place = file if whole else file.with_stem(f"{file.stem}-{number}")
            if not whole:
                write_png(place, to_image(picture))
            if as_json:
                record = {"input": name if pictures else None, "sample": number, "picture": str(place)}
                tell(record, "", as_json=True)


COMMANDS = (Command("paint", paint),)
