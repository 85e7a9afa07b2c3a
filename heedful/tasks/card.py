"""What a run says of itself: the machine that it ran on, and a model card made from facts alone."""

import platform
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

LIBRARIES = ("heedful", "torch", "tokenizers", "safetensors", "sacrebleu", "numpy")


def environment(device: torch.device, precision: str) -> dict[str, Any]:
    """The machine, the libraries, and all else that the numbers of a run depend on."""
    return {
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "processor": torch.backends.cpu.get_cpu_capability(),
        "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
        "threads": torch.get_num_threads(),
        "precision": precision,
        "versions": {name: metadata.version(name) for name in LIBRARIES},
    }


def model_card(
    folder: Path,
    *,
    what: str,
    table: Sequence[str],
    how: str,
    kept: str,
    minutes: float,
    use: Sequence[str],
    limits: str,
    notes: Sequence[str],
) -> str:
    """README.md of a run's folder, from what its task says."""
    lines = [
        f"# {folder.name}",
        "",
        what,
        "",
        *table,
        "",
        how,
        "",
        f"The weights are those of {kept}; training took {minutes:.1f} minutes. `recipe.yaml` is the whole recipe, "
        "`environment.json` the machine, `data.json` the data, `metrics.jsonl` every measurement.",
        "",
        "![loss and scores](plots/training.png)",
        "",
        "## Use",
        "",
        "```",
        *use,
        "```",
        "",
        "## Limits",
        "",
        limits,
    ]
    if notes:
        lines += ["", "## Notes on the data", "", *(f"- {note}" for note in notes)]
    return "\n".join(lines) + "\n"
