"""Writes heedful/verbs/presets.json, which `heed info` lists: python -m docs.make_presets"""

import json
from pathlib import Path

from heedful.models.counts import PARAMETERS
from heedful.tasks import trained

TABLE = Path(__file__).parents[1] / "heedful" / "verbs" / "presets.json"


def table() -> str:
    found = {}
    for task, row in trained().items():
        assert row.recipe is not None
        found[task] = {name: PARAMETERS[name] for name in row.recipe().PRESETS()}
    return json.dumps(found, indent=1) + "\n"


if __name__ == "__main__":
    TABLE.write_text(table(), encoding="utf-8")
