"""A folder of the Hub: its JSON files, and its weights, whole or in shards. Nothing is unpickled."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
from torch import Tensor

from heedful.errors import InputError, MissingError, StorageError
from heedful.store import files

CONFIG, WEIGHTS = "config.json", "model.safetensors"
INDEX = "model.safetensors.index.json"
PICKLES = "pytorch_model*.bin"
CONVERT = (
    'python -c "import glob, torch, safetensors.torch as s; s.save_file({{k: v.clone() for f in '
    "glob.glob('{0}/pytorch_model*.bin') for k, v in torch.load(f, weights_only=True).items()}}, "
    "'{0}/model.safetensors')\""
)


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in `path`. Raises MissingError or StorageError."""
    value = files.read_json(path)
    if not isinstance(value, dict):
        raise StorageError("not a JSON object", where=str(path), fix="get the file again from its source")
    return value


def read_weights(folder: Path) -> dict[str, Tensor]:
    """Every tensor of the folder by its name, on the CPU, floating-point ones in float32.

    Raises MissingError, InputError or StorageError.
    """
    index = folder / INDEX
    if (folder / WEIGHTS).is_file():
        return _read(folder / WEIGHTS)
    if not index.is_file():
        for pickle in sorted(folder.glob(PICKLES)):
            what = "a pickle, which can run code as it is read: heedful does not open it"
            raise InputError(what, where=str(pickle), fix=f"where you trust it, {CONVERT.format(folder)}")
        raise MissingError("no weights", where=str(folder / WEIGHTS), fix="get the whole folder from its source")
    shards = read_object(index).get("weight_map")
    if not isinstance(shards, dict) or not all(_plain(name) for name in shards.values()):
        what = "`weight_map` does not say which file each tensor is in"
        raise StorageError(what, where=str(index), fix="get the file again from its source")
    found: dict[str, Tensor] = {}
    for name in sorted(set(shards.values())):
        found |= _read(folder / name)
    for name in sorted(found.keys() ^ shards.keys()):
        what = "is in no shard" if name in shards else "is in a shard and not in the index"
        raise StorageError(f"the tensor {name!r} {what}", where=str(index), fix="get the whole folder again")
    return found


def packed(tensors: Mapping[str, Tensor]) -> bytes:
    """A safetensors file. Of names that are one tensor it has the first."""
    kept: dict[int, str] = {}
    for name, tensor in tensors.items():
        kept.setdefault(tensor.data_ptr(), name)
    return safetensors.torch.save({name: tensors[name].contiguous() for name in kept.values()}, {"format": "pt"})


def _read(path: Path) -> dict[str, Tensor]:
    try:
        tensors = safetensors.torch.load(files.read_bytes(path, limit=files.memory_limit()))
    except (safetensors.SafetensorError, KeyError) as error:  # KeyError: a number type that torch has not
        reason = str(error).encode("unicode_escape").decode()[:200]  # it quotes names from the file
        what = f"not a sound safetensors file: {reason}"
        raise StorageError(what, where=str(path), fix="get the file again from its source") from error
    return {name: tensor.float() if tensor.is_floating_point() else tensor for name, tensor in tensors.items()}


def _plain(name: object) -> bool:
    """Whether it is a file's name, that leads nowhere else."""
    return isinstance(name, str) and re.fullmatch(r"\w[\w.-]*", name) is not None
