"""What a run says of itself: the machine that it ran on, and a model card made from facts alone."""

import platform
import sys
from collections.abc import Iterable, Mapping, Sequence, Sized
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch

from heedful.store import files
from heedful.tasks.job import Scores

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


@runtime_checkable
class Data(Protocol):
    """What a run is trained and measured on."""

    @property
    def train(self) -> Sized: ...
    @property
    def valid(self) -> Sized: ...
    @property
    def tests(self) -> Mapping[str, Sized]: ...
    @property
    def files(self) -> Sequence[Path]: ...


def data_facts(data: Data, unit: str) -> dict[str, Any]:
    """Of data.json: the files, and how many examples of this unit each part has."""
    counts = {"train": len(data.train), "valid": len(data.valid)} | {name: len(own) for name, own in data.tests.items()}
    plain = (path for path in data.files if path.is_file())  # and no folder
    read = [{"path": str(path), "sha256": files.size_and_sha256(path)[1]} for path in plain]
    return {"files": read, unit: counts}


def fingerprint(texts: Iterable[str]) -> str:
    """Of all the texts in their order, in hexadecimal."""
    digest = sha256()
    for text in texts:
        digest.update(text.encode() + b"\0")
    return digest.hexdigest()


def origin(start_from: str) -> str:
    return f"from the model in `{start_from}`" if start_from else "from scratch"


def score_table(unit: str, scores: Scores) -> list[str]:
    """A row a test set, of texts or another unit, in the columns of the first."""
    names = list(next(iter(scores.values())))
    header = f"| {unit} | {' | '.join(name.replace('_', ' ') for name in names)} |"
    rows = [f"| {test} | {' | '.join(f'{each[name]:.4f}' for name in names)} |" for test, each in scores.items()]
    return [header, "|---|" + "---|" * len(names), *rows]


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
