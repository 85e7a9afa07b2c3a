"""What the Hub's config.json says of a model that decides, besides its sizes. There is no other file beside its
weights."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.core.config import from_json, to_json
from heedful.exchange.hf.decision_transformer import OURS
from heedful.exchange.hf.keys import PARAMS, params_of
from heedful.exchange.hub import Files
from heedful.models.decision import DecisionTransformerConfig
from heedful.run.task import Hub, HubFiles
from heedful.tasks.decide.layout import DecideSpec
from heedful.tasks.decide.use import Decider

NOTE = (
    "there states are (observation - mean) / deviation and returns are divided by scale: config.json has these "
    f"numbers, in {PARAMS}.{OURS}"
)


def read_decider(folder: Path, theirs: Mapping[str, Any], config: DecisionTransformerConfig) -> Files:
    """`theirs`: their config.json. What it does not say of observations and returns is that of numbers that are read as
    they are."""
    kind = "vector" if config.continuous else "discrete"
    spaces = {
        "observations": {"kind": "vector", "size": config.d_state},
        "actions": {"kind": kind, "size": config.n_actions},
    }
    spec = from_json(DecideSpec, spaces | params_of(theirs, OURS), where=f"{folder}/config.json: {PARAMS}.{OURS}")
    return {"task.json": {"task": "decide", **to_json(spec)}}


def write_decider(run: Path, decider: Decider) -> HubFiles:
    return HubFiles({}, {"params": {OURS: to_json(decider.spec)}}, notes=[NOTE])


HUB = Hub(read_decider, write_decider)
