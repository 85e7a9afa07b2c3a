"""A run's folder as a model: what `config.json`, `model.safetensors`, the tokenizers and `task.json` say together."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from heedful.data.tokenizer import Tokenizer
from heedful.errors import InputError
from heedful.models import EncoderDecoder, config_of, model_from
from heedful.store.checkpoint import read_model, save_model
from heedful.store.files import read_json

ONE_RUN = "config.json and the weights must come from one run"


def write_run(
    folder: Path,
    model: EncoderDecoder,
    tensors: dict[str, Tensor],
    source: Tokenizer,
    target: Tokenizer,
    about: dict[str, Any],
) -> None:
    """Saves `tensors` as the weights of `model`, with all that is needed to use it. `about` becomes task.json."""
    extra: dict[str, Any] = {"task.json": about}
    if source is target:
        extra["tokenizer.json"] = source.json().encode()
    else:
        extra["tokenizer.source.json"] = source.json().encode()
        extra["tokenizer.target.json"] = target.json().encode()
    save_model(folder, config_of(model), tensors, extra)


def read_run(folder: Path) -> tuple[EncoderDecoder, Tokenizer, Tokenizer, dict[str, Any]]:
    """The model, the source's and the target's tokenizer (one object where they are one), and task.json."""
    config, tensors = read_model(folder)
    where = str(folder / "model.safetensors")
    with torch.device("meta"):  # a config may ask for any size: what the weights do not have is never allocated
        check_weights(model_from(config), tensors, where=where)
    model = model_from(config)
    load_weights(model, tensors, where=where)
    joint = folder / "tokenizer.json"
    if joint.is_file():
        source = target = Tokenizer.load(joint)
    else:
        source, target = (Tokenizer.load(folder / f"tokenizer.{side}.json") for side in ("source", "target"))
    return model, source, target, read_json(folder / "task.json")


def parameters(model: EncoderDecoder) -> dict[str, Tensor]:
    """Every parameter once, by name: matrices that are tied have one name."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def check_weights(model: EncoderDecoder, tensors: dict[str, Tensor], *, where: str) -> None:
    """Raises InputError where a name or a shape is not the model's."""
    own = dict(model.named_parameters())
    for name in sorted(own.keys() ^ tensors.keys()):
        what = "is missing" if name in own else "belongs to no parameter of this model"
        raise InputError(f"{name} {what}", where=where, fix=ONE_RUN)
    for name, parameter in own.items():
        if parameter.shape != tensors[name].shape:
            what = f"{name} has shape {list(tensors[name].shape)}, expected {list(parameter.shape)}"
            raise InputError(what, where=where, fix=ONE_RUN)


def load_weights(model: EncoderDecoder, tensors: dict[str, Tensor], *, where: str) -> None:
    """Copies tensors into the model. Raises InputError where a name or a shape does not fit."""
    check_weights(model, tensors, where=where)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(tensors[name])
