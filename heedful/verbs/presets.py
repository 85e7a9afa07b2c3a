"""The presets of each task, from a table beside this file, so that listing them does not load torch."""

import json
from importlib.resources import files


def presets_by_task() -> dict[str, dict[str, int]]:
    """The presets of each task, with their numbers of parameters. `docs/make_presets.py` writes the table; a test
    compares it with the recipes and models."""
    told: dict[str, dict[str, int]] = json.loads((files(__package__) / "presets.json").read_text(encoding="utf-8"))
    return told
