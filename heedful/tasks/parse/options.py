"""Options of `heed eval` for parsers."""

from dataclasses import dataclass

from heedful.tasks.shared.options import Beam, DataOptions


@dataclass(frozen=True, kw_only=True)
class TreeScoring(DataOptions):
    """The options of `heed eval` for a parser."""

    beam: Beam = None
