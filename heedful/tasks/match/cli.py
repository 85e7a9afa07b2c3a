"""`heed match`."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.errors import InputError
from heedful.tasks.match.options import TEMPLATE, MatchOptions, PictureSearchOptions
from heedful.tasks.shared.line_by_line import answer_lines, answers_to_pictures, one_each
from heedful.tasks.shared.options import Device, Json, Run, option_of
from heedful.tasks.shared.terminal import Command, printable, say, tell

if TYPE_CHECKING:
    from heedful.tasks.match.use import MatchedText


def match(
    run: Run,
    inputs: Annotated[
        list[str] | None,
        typer.Argument(help="Files of pictures; with --images, texts. Without any, lines of standard input."),
    ] = None,
    text: Annotated[list[str] | None, option_of("texts", MatchOptions)] = None,
    images: Annotated[Path | None, option_of("images", PictureSearchOptions)] = None,
    template: Annotated[list[str] | None, option_of("templates", MatchOptions)] = None,
    top: Annotated[int, option_of("top", PictureSearchOptions)] = 10,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Say which of some texts belongs to a picture, with probabilities; or find pictures for a text.

    Example: heed match runs/match cat.png --text "a cat" --text "a dog"
    """
    from heedful.run.device import chosen_device
    from heedful.tasks.match.use import (
        Matcher,
        PictureSearch,
        match_pictures,
    )

    if (images is None) == (text is None):
        raise InputError("which texts, for which pictures?", fix="give --text for pictures, or --images for texts")
    matcher, templates = Matcher.load(run, device=chosen_device(device)), tuple(template or [TEMPLATE])
    if images is not None:
        search = PictureSearch(matcher, PictureSearchOptions(images=str(images), templates=templates, top=top))

        def answers(lines: list[str], first: int) -> Iterator[Sequence["MatchedText"]]:
            return one_each(search(lines))

        def show(found: "MatchedText") -> Iterator[str]:
            own = printable(found["text"])
            return (f"{each['score']:.3f}\t{printable(each['input'])}\t{own}" for each in found["images"])

        answer_lines(inputs, answers, show, as_json=as_json)
        return
    options = MatchOptions(texts=tuple(text or ()), templates=templates)
    told = ""
    answered = partial(match_pictures, matcher, options=options)
    for _, seen in answers_to_pictures(inputs, answered, as_json=as_json):
        if told != (told := seen.get("warning", "")):
            say(f"warning: {told}")
        best = seen["texts"][0]
        tell(seen, f"{printable(best['text'])}\t{best['score']:.3f}\t{printable(seen['input'])}", as_json=as_json)


COMMANDS = (Command("match", match),)
