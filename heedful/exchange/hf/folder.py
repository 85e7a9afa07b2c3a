"""A folder of the Hub: its JSON files, and its weights, whole or in shards. Nothing is unpickled.

Weights are read tensor by tensor out of files that are mapped into memory, so that what is held is the model in float32
and one tensor more, whatever the number of files and their number type.
"""

import math
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from heedful.errors import InputError, MissingError, StorageError
from heedful.store import files
from heedful.store.memory import memory_size

CONFIG, WEIGHTS = "config.json", "model.safetensors"
INDEX = "model.safetensors.index.json"
PICKLES = "pytorch_model*.bin"
CONVERT = (
    'python -c "import sys, pathlib, torch, safetensors.torch as s; d = pathlib.Path(sys.argv[1]); '
    "s.save_file({k: v.clone().contiguous() for f in d.glob('pytorch_model*.bin') "
    "for k, v in torch.load(f, weights_only=True).items()}, d / 'model.safetensors')\" "
)


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in `path`. Raises MissingError or StorageError."""
    value = files.read_json(path)
    if not isinstance(value, dict):
        raise StorageError("not a JSON object", where=str(path), fix="get the file again from its source")
    return value


def read_weights(folder: Path) -> dict[str, Tensor]:
    """Every tensor of the folder by its name, on the CPU, floating-point ones in float32.

    Raises MissingError, InputError or StorageError; the latter also for more than this machine's memory holds.
    """
    index = folder / INDEX
    if (folder / WEIGHTS).is_file():
        return _read([folder / WEIGHTS])
    if not index.is_file():
        for pickle in sorted(folder.glob(PICKLES)):
            what = "a pickle, which can run code as it is read: heedful does not open it"
            raise InputError(what, where=str(pickle), fix=f"where you trust it, {CONVERT}{shlex.quote(str(folder))}")
        raise MissingError("no weights", where=str(folder / WEIGHTS), fix="get the whole folder from its source")
    shards = read_object(index).get("weight_map")
    if not isinstance(shards, dict) or not all(_plain(name) for name in shards.values()):
        what = "`weight_map` does not say which file each tensor is in"
        raise StorageError(what, where=str(index), fix="get the file again from its source")
    found = _read([folder / name for name in sorted(set(shards.values()))])
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


def _read(paths: Sequence[Path]) -> dict[str, Tensor]:
    needed = 0
    for path in paths:
        with _opened(path) as file:
            needed += sum(4 * math.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118
    refuse_too_large(needed, where=paths[0])
    found: dict[str, Tensor] = {}
    for path in paths:
        with _opened(path) as file:
            found |= {name: _own(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118 - it is no mapping
    return found


def refuse_too_large(size: int, *, where: Path) -> None:
    """Raises StorageError for weights of more bytes in float32 than this process may have."""
    if size > memory_size():
        what = f"{size / 1e9:.1f} GB in float32, and this process may have {memory_size() / 1e9:.1f} GB"
        raise StorageError(what, where=str(where), fix="take a smaller model, or a larger machine")


def _own(tensor: Tensor) -> Tensor:
    """A copy that no file stands behind."""
    return tensor.float() if tensor.is_floating_point() and tensor.dtype != torch.float32 else tensor.clone()


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """The file, whose tensors are not in memory yet. Raises MissingError, or StorageError, also where one is read."""
    files.refuse_other_than_files(path)
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            yield file
    except (safetensors.SafetensorError, KeyError, AttributeError, NotImplementedError) as error:  # or no torch numbers
        reason = str(error).encode("unicode_escape").decode()[:200]  # it quotes names from the file
        what = f"not a sound safetensors file: {reason}"
        raise StorageError(what, where=str(path), fix="get the file again from its source") from error


def _plain(name: object) -> bool:
    """Whether it is a file's name, that leads nowhere else."""
    return isinstance(name, str) and re.fullmatch(r"\w[\w.-]*", name) is not None
