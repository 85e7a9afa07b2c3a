"""The architecture of a run or a preset as a figure, from its configuration only."""

from pathlib import Path
from typing import Any

from torch import nn

from heedful.core.config import unknown_key
from heedful.figures import architecture
from heedful.look.architecture import Architecture, rows
from heedful.models import config_from, config_of
from heedful.models.named import PRESETS, preset
from heedful.run.folder import read_saved
from heedful.store.files import need_folder
from heedful.tasks.load import row_of_run


def drawn(name: str) -> Architecture:
    """The figure of a run's folder or of a preset. Raises InputError for a name that is neither, MissingError or
    StorageError where the folder cannot be read."""
    if name in PRESETS:
        return architecture(preset(name), name)
    folder = Path(name)
    if len(folder.parts) > 1:
        need_folder(folder)
    if not folder.is_dir():
        raise unknown_key(name, [*PRESETS], where="heed draw: neither a folder nor a preset")
    row_of_run(folder)  # raises where it is no run
    return architecture(read_saved(folder).config, folder.resolve().name)


def drawn_model(model: nn.Module, title: str) -> Architecture:
    """The figure of a loaded model."""
    return architecture(config_from(config_of(model), where=title), title)


def facts(figure: Architecture) -> dict[str, Any]:
    """The figure for programs: its boxes from the bottom up, each with its repetitions and its parameters."""
    parts = [
        {"column": row.column, "times": row.times, "part": row.box.label, "notes": [*row.box.notes]}
        | {"parameters": row.box.parameters}
        for row in rows(figure)
    ]
    links = [{"from": link.source, "to": link.target, "what": link.label} for link in figure.links]
    return {"title": figure.title, "parameters": figure.parameters, "parts": parts, "links": links}
