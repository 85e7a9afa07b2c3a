"""Files of tensors: safetensors, whose header has the sha256 of the rest, and notes."""

import hashlib
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from heedful.store import files
from heedful.store.memory import memory_limit
from heedful.store.refusals import damaged

HEADER_LIMIT = 1 << 24

Tensors = dict[str, Tensor]


def save_tensors(path: Path, tensors: Tensors, notes: dict[str, str]) -> None:
    """Write a file of tensors, with notes. Raises StorageError."""
    files.write_bytes(path, *pack(tensors, notes))


def read_tensors(path: Path) -> tuple[Tensors, dict[str, str]]:
    """Read what `save_tensors` wrote. Raises StorageError for anything else."""
    return unpack(files.read_bytes(path, limit=memory_limit()), where=path)


def pack(tensors: Tensors, notes: dict[str, str]) -> list[files.Bytes]:
    """A safetensors file as header and data; the header carries `notes` and the sha256 of all the rest.

    Names that share one tensor (tied weights) are written once; the note "tied" tells the other names.
    """
    kept: Tensors = {}
    tied: dict[str, str] = {}
    first: dict[tuple[Any, ...], str] = {}
    storages = set()
    for name, tensor in tensors.items():
        view = (tensor.device, tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride())
        if tensor.numel() and view in first:
            tied[name] = first[view]
            continue
        first[view] = name
        plain = tensor.detach().cpu().contiguous()
        kept[name] = plain.clone() if plain.untyped_storage().data_ptr() in storages else plain
        storages.add(plain.untyped_storage().data_ptr())
    header = header_of(kept)
    body = [_bytes(kept[name]) for name in header]
    header["__metadata__"] = {"format": "pt", "tied": json.dumps(tied, sort_keys=True), **notes}
    header["__metadata__"]["sha256"] = _content(header, *body)
    text = json.dumps(header, sort_keys=True).encode()
    text += b" " * (-len(text) % 8)
    return [len(text).to_bytes(8, "little") + text, *body]


def _bytes(tensor: Tensor) -> memoryview:
    """Those of a contiguous tensor, without a copy."""
    plain: Any = tensor.reshape(-1).view(torch.uint8).numpy()
    return memoryview(plain)


def header_of(tensors: Tensors) -> dict[str, Any]:
    """What safetensors writes before these tensors, in the order in which it writes them."""
    header: dict[str, Any] = {}
    end = 0
    for name, dtype in _written(tuple((name, tensor.dtype) for name, tensor in tensors.items())):
        begin, end = end, end + tensors[name].numel() * tensors[name].element_size()
        header[name] = {"dtype": dtype, "shape": list(tensors[name].shape), "data_offsets": [begin, end]}
    return header


@lru_cache(maxsize=8)  # the checkpoints of a training have the same names
def _written(tensors: tuple[tuple[str, torch.dtype], ...]) -> tuple[tuple[str, str], ...]:
    """Names in the order in which safetensors writes tensors of these types, and its names of the types: learnt from
    empty ones, so that the bytes of a model are never held twice."""
    data = safetensors.torch.save({name: torch.empty(0, dtype=dtype) for name, dtype in tensors})
    return tuple((name, told["dtype"]) for name, told in json.loads(data[8:]).items())


def unpack(data: bytes, *, where: Path) -> tuple[Tensors, dict[str, str]]:
    """The tensors and notes of what `pack` wrote. Raises StorageError for anything else."""
    length = int.from_bytes(data[:8], "little")
    if not 2 <= length <= min(HEADER_LIMIT, len(data) - 8):
        raise damaged(where, "not a safetensors file: bad header length")
    header = files.parse_json(data[8 : 8 + length], where=where)
    try:
        tensors = safetensors.torch.load(data)
    except (safetensors.SafetensorError, KeyError) as error:  # KeyError: a number type that torch has not
        reason = str(error).encode("unicode_escape").decode()[:200]  # it quotes names from the file
        raise damaged(where, f"not a sound safetensors file: {reason}") from error
    notes = header.get("__metadata__", {})
    digest = notes.pop("sha256", None)
    if digest is None:
        raise damaged(where, "not written by heedful: it has no sha256", fix="use `heed import`")
    if digest != _content(header, memoryview(data)[8 + length :]):
        raise damaged(where, "damaged: its content is not what was saved")
    tied = files.parse_json(notes.pop("tied", "{}").encode(), where=where)
    if not isinstance(tied, dict) or not all(str(name) in tensors for name in tied.values()):
        raise damaged(where, "damaged: names a tensor that it does not have")
    return tensors | {name: tensors[str(same)] for name, same in tied.items()}, notes


def _content(header: dict[str, Any], *body: memoryview) -> str:
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for part in body:
        digest.update(part)
    return digest.hexdigest()
