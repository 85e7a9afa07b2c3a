"""Runs of models that were not trained."""

from pathlib import Path
from typing import Any

from torch import nn

from heedful.data.tokenizer import Tokenizer
from heedful.run.folder import parameters, write_model
from heedful.run.tokenizers import tokenizer_files


def save_run(folder: Path, model: nn.Module, source: Tokenizer, target: Tokenizer, about: dict[str, Any]) -> Path:
    """Writes a run's folder of the model; `about` becomes task.json."""
    write_model(folder, model, parameters(model), tokenizer_files(source, target) | {"task.json": about})
    return folder
