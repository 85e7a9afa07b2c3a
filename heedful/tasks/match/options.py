"""What is asked of models of pictures and texts, and the options of `heed look` for them."""

from dataclasses import dataclass
from typing import Annotated

import typer

from heedful.decode.settings import setting

TEMPLATE = "{}"  # in which a text is said


@dataclass(frozen=True, kw_only=True)
class MatchOptions:
    texts: tuple[str, ...] = setting((), "What a picture may show; give it twice or more.")
    templates: tuple[str, ...] = setting((TEMPLATE,), 'How each text is said: "a picture of {}"; of several, the mean.')


@dataclass(frozen=True, kw_only=True)
class PictureSearchOptions:
    images: str = setting("", "A folder, or a zip file, in which pictures that belong to a text are found.")
    templates: tuple[str, ...] = setting((TEMPLATE,), 'How each text is said: "a picture of {}"; of several, the mean.')
    top: int = setting(10, "Of a folder, how many pictures.", 1)


@dataclass(frozen=True, kw_only=True)
class MatchLook:
    """The options of `heed look` for a model of pictures and texts."""

    shown: Annotated[
        list[str] | None, typer.Option("--text", help="Where in a picture is this near? May be given again.")
    ] = None
