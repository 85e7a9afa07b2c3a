"""What parsers are asked, and the options of `heed eval` for them."""

from dataclasses import dataclass

from heedful.decode.settings import setting
from heedful.tasks.shared.options import Beam, DataOptions


@dataclass(frozen=True, kw_only=True)
class ParseOptions:
    beam: int | None = setting(None, "Width of the beam, where it is not as the model has it.", 1)


@dataclass(frozen=True, kw_only=True)
class TreeScoring(DataOptions):
    """The options of `heed eval` for a parser."""

    beam: Beam = None
