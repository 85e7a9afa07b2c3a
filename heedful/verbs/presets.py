"""The presets of each task, told at once: from a table beside this file, because what makes them loads torch."""

import json
from importlib.resources import files


def presets_by_task() -> dict[str, dict[str, int]]:
    """The presets of each task, with their numbers of parameters. `docs/make_presets.py` writes the table, and a test
    holds it to what recipes and models say."""
    told: dict[str, dict[str, int]] = json.loads((files(__package__) / "presets.json").read_text(encoding="utf-8"))
    return told
