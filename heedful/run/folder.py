"""The model in a run's folder: `config.json`, `model.safetensors`, the tokenizers and `task.json`."""

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from heedful.apply.lora import LoRAConfig
from heedful.core.config import from_json, to_json
from heedful.core.init import uninitialised
from heedful.data.tokenizer import Tokenizer
from heedful.errors import InputError, MissingError, StorageError
from heedful.models import config_from, config_of, model_from, outline
from heedful.run.tokenizers import read_tokenizers
from heedful.store import files
from heedful.store.files import read_json
from heedful.store.lock import held_alone
from heedful.store.migrations import FORMAT, in_todays_format, named_before, renamed
from heedful.store.model import CONFIG, read_config, read_model, read_small, save_model
from heedful.store.tensors import read_tensors, save_tensors

ADAPTERS = "adapters.safetensors"  # low-rank adapters, where they were trained
MASK = "mask.safetensors"  # which weights of a pruned model stay
METRICS = "metrics.jsonl"  # the losses and scores of the training, a line for each time
ONE_RUN = "config.json and the weights must come from one run"


class Saved(NamedTuple):
    """What a run's folder says about its model, without making it. `tokenizers`: the source's and the target's."""

    config: Any
    about: dict[str, Any]
    tokenizers: tuple[Tokenizer, Tokenizer] | None
    parameters: int
    zeros: int  # of these


def write_model(folder: Path, model: nn.Module, tensors: dict[str, Tensor], beside: dict[str, Any]) -> None:
    """Saves `tensors` as the weights of `model`, and the files of `beside` (name: bytes or a JSON value)."""
    config = _config_in(folder, model)
    kept = {name: _value_in(folder / name, value) for name, value in beside.items()}
    save_model(folder, config, named_before(tensors, config["format"]), kept)


def write_adapters(folder: Path, adapters: dict[str, Tensor], config: LoRAConfig) -> None:
    """Saves the low-rank adapters that a training has learnt."""
    files.make_folder(folder)
    save_tensors(folder / ADAPTERS, adapters, {"config": json.dumps(to_json(config))})


def read_adapters(folder: Path) -> tuple[dict[str, Tensor], LoRAConfig]:
    """Reads what `write_adapters` saved. Raises MissingError or StorageError."""
    path = folder / ADAPTERS
    if not path.is_file():
        raise MissingError("no adapters were trained here", where=str(folder), fix="heed train ... --from RUN --lora 8")
    adapters, notes = read_tensors(path)
    config = files.parse_json(notes.get("config", "{}").encode(), where=path)
    return adapters, from_json(LoRAConfig, config, where=str(path))


def write_masks(folder: Path, masks: dict[str, Tensor], start: str) -> None:
    """Saves which weights of a pruned model stay, by parameter, and what its training began with, for its card."""
    save_tensors(folder / MASK, masks, {"format": str(FORMAT), "start": start})


def pruned_from(folder: Path) -> str:
    """What a training began with, in words, where that was pruned; "" elsewhere."""
    return read_tensors(folder / MASK)[1]["start"] if (folder / MASK).is_file() else ""


def read_masks(folder: Path, within: str = "") -> dict[str, Tensor]:
    """Reads what `write_masks` saved, for a model of which the saved one is the part `within`; {} where nothing was
    pruned. Raises StorageError."""
    if not (folder / MASK).is_file():
        return {}
    masks, notes = read_tensors(folder / MASK)
    prefix = f"{within}." if within else ""
    return {f"{prefix}{name}": mask for name, mask in renamed(masks, int(notes["format"])).items()}


def _config_in(folder: Path, model: nn.Module) -> dict[str, Any]:
    """The model's configuration; in an older format where the folder already has it so: a run that is continued keeps
    its files, whatever keys were added or renamed since."""
    if (folder / CONFIG).is_file():
        older = read_config(folder)
        if config_from(in_todays_format(older)) == model.config:
            return older
    return config_of(model) | {"format": FORMAT}


def _value_in(path: Path, value: Any) -> Any:
    """The JSON value, or the one that an older version wrote there, if the new one only has more keys."""
    older = read_json(path) if isinstance(value, dict) and path.is_file() else value
    return older if _says_no_other(older, value) else value


def _says_no_other(older: Any, value: Any) -> bool:
    if isinstance(older, dict) and isinstance(value, dict):
        return all(key in value and _says_no_other(item, value[key]) for key, item in older.items())
    return bool(older == value)


def read_run(folder: Path) -> tuple[Any, Tokenizer, Tokenizer, dict[str, Any]]:
    """The model, the source's and the target's tokenizer (one object if they are the same), and task.json."""
    model, about = read_textless_run(folder)
    tokenizers = read_tokenizers(folder)
    if tokenizers is None:
        raise MissingError("the model has no tokenizer", where=str(folder), fix="get the whole folder from its source")
    return model, *tokenizers, about


def read_textless_run(folder: Path) -> tuple[Any, dict[str, Any]]:
    """The model and task.json of a run, without its tokenizers."""
    config, tensors = read_model(folder)
    where = str(folder / "model.safetensors")
    described = config_from(config, where=str(folder / CONFIG))  # any size: it is compared with the weights first
    check_weights(outline(described, most=2 * len(tensors) + 100, where=str(folder / CONFIG)), tensors, where=where)
    with uninitialised():
        model = model_from(config)
    load_weights(model, tensors, where=where)
    return model, read_json(folder / "task.json")


def read_saved(folder: Path) -> Saved:
    """What the folder says about its model, without making it. Raises as `read_run`."""
    config, tensors = read_model(folder)
    size = sum(tensor.numel() for tensor in tensors.values())
    zeros = size - sum(int(tensor.count_nonzero()) for tensor in tensors.values())
    about = read_json(folder / "task.json")
    return Saved(config_from(config, where=str(folder / CONFIG)), about, read_tokenizers(folder), size, zeros)


def task_name(folder: Path) -> tuple[Any, dict[str, Any]]:
    """The task of the model in a folder, and all of task.json. Raises MissingError or InputError where the folder holds
    no model."""
    files.need_folder(folder)
    if not (folder / "task.json").is_file():
        if (folder / CONFIG).is_file():
            read_config(folder)  # raises for a folder of another library
        if runs := sorted(folder.glob("*/task.json")):
            fix = f"name one: {runs[0].parent}"
            raise MissingError("a folder of runs, and none itself", where=str(folder), fix=fix)
        raise MissingError("no model has been saved here yet", where=str(folder), fix="train it first")
    about = read_small(folder, "task.json")
    name = about.get("task") if isinstance(about, dict) else None
    return name, about if isinstance(about, dict) else {}


def need_empty(out: Path) -> None:
    """Raises InputError where `out` is not empty or is the current folder, MissingError or StorageError where it cannot
    be made."""
    files.need_access(out)
    there = out.resolve()  # also x/.. where x does not exist
    if files.children(there):
        raise InputError("is not empty", where=str(out), fix="choose another --out")
    if there == Path.cwd():
        raise InputError("is the current folder, which cannot be replaced", where=str(out), fix="name one in it")
    files.need_access(there.parent)  # where it will be renamed


@contextmanager
def filled_then_renamed(out: Path) -> Iterator[Path]:
    """A temporary folder to fill, which becomes `out` by one rename. Raises as `need_empty`, and InputError where
    another command is filling it."""
    need_empty(out)
    out = out.resolve()
    growing = files.temporary_name(out)
    try:
        files.make_folder(growing)
    except BaseException:
        with suppress(OSError):
            files.disk.rmdir(growing)
        raise
    with held_alone(growing):
        try:
            if out.is_dir():
                files.inherit_folder(growing, out)
            for left in files.children(growing):  # by a command that was killed
                files.remove_tree(left)
            yield growing
            files.rename_folder(growing, out)
        except BaseException:
            with suppress(StorageError):
                files.remove_tree(growing)
            raise


def parameters(model: nn.Module) -> dict[str, Tensor]:
    """Every parameter once, by name: tied matrices have one name. Works on models that were loaded for use too, whose
    weights may be stored in another order."""
    return {name: parameter.detach().to_dense() for name, parameter in model.named_parameters()}


def check_weights(model: nn.Module, tensors: dict[str, Tensor], *, where: str) -> None:
    """Raises InputError where names or shapes differ from the model's."""
    own = dict(model.named_parameters())
    for name in sorted(own.keys() ^ tensors.keys()):
        what = "is missing" if name in own else "belongs to no parameter of this model"
        raise InputError(f"{name} {what}", where=where, fix=ONE_RUN)
    for name, parameter in own.items():
        if parameter.shape != tensors[name].shape:
            what = f"{name} has shape {list(tensors[name].shape)}, expected {list(parameter.shape)}"
            raise InputError(what, where=where, fix=ONE_RUN)


def load_weights(model: nn.Module, tensors: dict[str, Tensor], *, where: str) -> None:
    """Copies tensors into the model. Raises InputError where a name or a shape does not fit."""
    check_weights(model, tensors, where=where)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(tensors[name])
