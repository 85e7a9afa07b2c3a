"""`heed describe`."""

from typing import Annotated

from heedful.decode.settings import DecodingOptions
from heedful.tasks.describe.options import DescribeOptions
from heedful.tasks.shared.line_by_line import answers_to_pictures
from heedful.tasks.shared.options import Device, Json, Offered, Pictures, Run, by_groups, option_of
from heedful.tasks.shared.terminal import Command, printable, tell


@by_groups
def describe(
    run: Run,
    pictures: Pictures = None,
    question: Annotated[str | None, option_of("question", DescribeOptions)] = None,
    device: Device = "auto",
    as_json: Json = False,
    *,
    decode: Annotated[DecodingOptions, Offered("beam", "length_penalty", beam=None, length_penalty=None)],
) -> None:
    """Write a text about each picture: a caption, what is printed on it, or the answer to a question.

    Example: heed describe runs/describe cat.png
    """
    from heedful.run.device import chosen_device
    from heedful.tasks.describe.use import Describer, describe_pictures

    describer = Describer.load(run, device=chosen_device(device))
    options = DescribeOptions(question=question, decode=decode)
    for file, record in answers_to_pictures(
        pictures, lambda files: describe_pictures(describer, files, options), as_json=as_json
    ):
        text = record["text"]
        tell(record, text if pictures and len(pictures) == 1 else f"{text}\t{printable(file)}", as_json=as_json)


COMMANDS = (Command("describe", describe),)
