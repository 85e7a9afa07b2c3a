"""Saves a run with new weights, of a module that was trained outside of heedful."""

from pathlib import Path
from typing import Any

from torch import nn

from heedful.errors import InputError, NonFiniteError
from heedful.exchange.hub import chat_files
from heedful.models import class_of_config
from heedful.run.folder import filled_then_renamed, need_empty, parameters, read_saved, write_model
from heedful.run.learnt import LEARNT
from heedful.run.tokenizers import read_tokenizers, tokenizer_files
from heedful.store import files
from heedful.store.memory import memory_limit

TOLD = ("data.json", LEARNT)  # the original training data were still trained on


def beside_weights(run: Path) -> dict[str, Any]:
    """The files of a run, besides its weights, that the model needs."""
    tokenizers = read_tokenizers(run)
    found = {} if tokenizers is None else tokenizer_files(*tokenizers)
    return found | {"task.json": files.read_json(run / "task.json")} | chat_files(run)


def save_trained(run: Path, model: nn.Module, out: Path) -> None:
    """Makes the run `out` of `run`, with the weights of `model`; see `Opened.save`."""
    out = files.with_proper_name(out)
    need_empty(out)
    config = read_saved(run).config
    if not isinstance(model, class_of_config(config)) or model.config != config:
        what = f"a {type(model).__name__} of another configuration than {run}"
        fix = "save what heedful.load(RUN).trainable() gave: what torch.compile makes of it shares its weights"
        raise InputError(what, fix=fix)
    own = {name: tensor.float().cpu() for name, tensor in parameters(model).items()}
    for name, tensor in own.items():
        if not tensor.isfinite().all():
            raise NonFiniteError(f"{name} is not finite", fix="train with a lower rate")
    with filled_then_renamed(out) as growing:
        write_model(growing, model, own, beside_weights(run))
        for name in TOLD:
            if (run / name).is_file():
                files.write_bytes(growing / name, files.read_bytes(run / name, limit=memory_limit()))
