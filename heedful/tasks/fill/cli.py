"""`heed fill`."""

from typing import Annotated

import typer

from heedful.tasks.shared.cli import Command, Device, Json, Run, Texts, tell, texts_given


def fill(
    run: Run,
    texts: Texts = None,
    top: Annotated[int, typer.Option(min=1, help="How many candidates for each mask.")] = 5,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Name what may stand in place of each "<mask>" in a text, a line for each, with probabilities.

    Example: heed fill runs/fill "The cat sat on the <mask>." --top 3
    """
    from heedful.run.device import chosen_device
    from heedful.tasks.fill.use import Filler, FillOptions, fill_texts

    filler = Filler.load(run, device=chosen_device(device))
    for lines in texts_given(texts):
        for each in fill_texts(filler, lines, FillOptions(top=top)):
            listed = "  ".join(f"{one['token']} {one['score']:.3f}" for one in each["candidates"])
            tell(each, f"{each['text']}\t{listed}", as_json=as_json)


COMMANDS = (Command("fill", fill),)
