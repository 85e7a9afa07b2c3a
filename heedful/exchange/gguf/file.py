"""The file format: metadata by their keys, and tensors, whose numbers may be packed in blocks of few bits.

Blocks are packed and unpacked by the library `gguf`, an optional extra, which writes files too. They are read here: the
library takes a file that was cut off for a whole one.
"""

import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy
import torch
from torch import Tensor

from heedful.errors import InputError, MissingError, StorageError, pip_install
from heedful.exchange.hf.folder import refuse_too_large
from heedful.store import files
from heedful.store.refusals import AGAIN

VERSIONS = (2, 3)
METADATA_LIMIT = 1 << 27  # bytes
MOST_KEYS, MOST_TENSORS, MOST_STRINGS, MOST_DIMENSIONS = 1 << 16, 1 << 17, 1 << 21, 4
NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
ALIGNMENT = "general.alignment"
ARCHITECTURE = "general.architecture"


@dataclass(frozen=True)
class Packed:
    """A tensor as it is in a file: its numbers in blocks of the library's type `kind`."""

    kind: Any
    shape: tuple[int, ...]
    data: Any  # an array of bytes

    def unpacked(self) -> Tensor:
        """The same in float32. Raises InputError for a type that the library cannot unpack."""
        rows = self.data.reshape(*self.shape[:-1], -1)
        with numpy.errstate(all="ignore"):  # blocks may hold what is no number
            return torch.from_numpy(numpy.array(library().dequantize(rows, self.kind), dtype=numpy.float32))


def library() -> Any:
    """The module `gguf`. Raises MissingError where it is not installed."""
    try:
        import gguf
    except ImportError as error:
        raise MissingError("gguf is not installed", fix=pip_install("'heedful[gguf]'")) from error
    return gguf


def read(path: Path) -> tuple[dict[str, Any], dict[str, Packed]]:
    """The metadata and the tensors of a file; no tensor is in memory yet. Raises MissingError; InputError for a version
    or a type of tensors that is not read; StorageError for a file that is not sound, or too large."""
    files.refuse_other_than_files(path)
    try:
        return _read(path)
    except (ValueError, struct.error) as error:
        reason = str(error).encode("unicode_escape").decode()[:200]  # it may quote the file
        raise StorageError(f"not a sound GGUF file: {reason}", where=str(path), fix=AGAIN) from None


def write(
    path: Path,
    name: str,
    metadata: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    kind_of: Callable[[str, Tensor], str],
) -> None:
    """Writes a file of the architecture `name`. `kind_of` names the type of each tensor. Raises StorageError."""
    gguf = library()
    writer = gguf.GGUFWriter(path, name)
    for key, value in metadata.items():
        kind = gguf.GGUFValueType.get_type(value)
        unsigned = kind == gguf.GGUFValueType.INT32  # as llama.cpp reads all whole numbers
        writer.add_key_value(key, value, gguf.GGUFValueType.UINT32 if unsigned else kind)
    kinds = {key: gguf.GGMLQuantizationType[kind_of(key, tensor)] for key, tensor in tensors.items()}
    for key, tensor in tensors.items():
        block, size = gguf.GGML_QUANT_SIZES[kinds[key]]
        writer.add_tensor_info(key, tensor.shape, numpy.float32, tensor.numel() // block * size, kinds[key])
    with files.storage_errors(path):
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        for key, tensor in tensors.items():
            writer.write_tensor_data(gguf.quantize(tensor.contiguous().numpy(), kinds[key]))
        writer.close()
    files.fsync_file(path)


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Packed]]:
    data: Any = numpy.memmap(path, dtype=numpy.uint8, mode="r")
    reader = _Reader(memoryview(data[:METADATA_LIMIT]))
    if bytes(reader.take(4)) != b"GGUF":
        raise ValueError("it begins otherwise")
    if (version := reader.number("I")) not in VERSIONS:
        what = f"version {version} of GGUF: {' and '.join(map(str, VERSIONS))} can be read"
        raise InputError(what, where=str(path), fix="make the file again with today's llama.cpp")
    n_tensors, n_keys = reader.count(MOST_TENSORS), reader.count(MOST_KEYS)
    metadata: dict[str, Any] = {}
    for _ in range(n_keys):
        key = reader.text()
        if key in metadata:
            raise ValueError(f"the key {key[:80]!r} appears twice")
        metadata[key] = reader.value(reader.number("I"))
    where: dict[str, tuple[int, tuple[int, ...], int]] = {}
    for _ in range(n_tensors):
        name = reader.text()
        if name in where:
            raise ValueError(f"the tensor {name[:80]!r} appears twice")
        n_dimensions = reader.number("I")
        if not 1 <= n_dimensions <= MOST_DIMENSIONS:
            raise ValueError(f"the tensor {name[:80]!r} has {n_dimensions} dimensions")
        shape = tuple(reader.number("Q") for _ in range(n_dimensions))[::-1]
        where[name] = reader.number("I"), shape, reader.number("Q")
    alignment = metadata.get(ALIGNMENT, 32)
    if type(alignment) is not int or alignment < 1:
        raise ValueError(f"{ALIGNMENT} is {str(alignment)[:80]}")
    begin = reader.place + -reader.place % alignment
    refuse_too_large(sum(4 * math.prod(shape) for _, shape, _ in where.values()), where=path)
    tensors = {name: _packed(name, *each, data=data[begin:], path=path) for name, each in where.items()}
    return metadata, tensors


def _packed(name: str, number: int, shape: tuple[int, ...], offset: int, *, data: Any, path: Path) -> Packed:
    gguf = library()
    kinds = {int(kind): kind for kind in gguf.GGMLQuantizationType}
    kind = kinds.get(number)
    if kind is None or not _can_be_unpacked(kind):
        spelled = f"the number {number}" if kind is None else kind.name
        what = f"the tensor {name[:80]!r} is of the type {spelled}, which is not read"
        raise InputError(what, where=str(path), fix="take a file with other weights, such as Q8_0 or Q4_K_M")
    block, size = gguf.GGML_QUANT_SIZES[kind]
    n = math.prod(shape) // block * size
    if not n or shape[-1] % block:
        raise ValueError(f"the tensor {name[:80]!r} of the shape {shape} is in blocks of {block}")
    if offset + n > len(data):
        raise ValueError(f"the tensor {name[:80]!r} ends behind the end of the file")
    return Packed(kind, shape, data[offset : offset + n])


@lru_cache
def _can_be_unpacked(kind: Any) -> bool:
    gguf = library()
    block = numpy.zeros((1, gguf.GGML_QUANT_SIZES[kind][1]), numpy.uint8)
    try:
        gguf.dequantize(block, kind)
    except NotImplementedError:
        return False
    return True


class _Reader:
    """Reads what stands at the beginning of a file, in its order. Raises ValueError where that ends too early."""

    def __init__(self, data: memoryview) -> None:
        self.data, self.place = data, 0

    def take(self, size: int) -> memoryview:
        if size > len(self.data) - self.place:
            raise ValueError(f"its metadata end too early, or have more than {METADATA_LIMIT / 1e6:.0f} MB")
        self.place += size
        return self.data[self.place - size : self.place]

    def number(self, kind: str) -> Any:
        return struct.unpack(f"<{kind}", self.take(struct.calcsize(f"<{kind}")))[0]

    def count(self, most: int) -> int:
        """How many things follow."""
        count: int = self.number("Q")
        if count > most:
            raise ValueError(f"a list of {count:,}, and at most {most:,} are read")
        return count

    def text(self) -> str:
        return bytes(self.take(self.number("Q"))).decode()

    def value(self, kind: int) -> Any:
        """A value of this type: a number, a string, or a list of strings or an array of numbers."""
        if kind == STRING:
            return self.text()
        if kind in NUMBERS:
            return self.number(NUMBERS[kind])
        if kind != ARRAY:
            raise ValueError(f"a value of the type {kind}")
        inner = self.number("I")
        if inner == STRING:
            return [self.text() for _ in range(self.count(MOST_STRINGS))]
        if inner not in NUMBERS:
            raise ValueError(f"an array of the type {inner}")
        dtype = numpy.dtype(f"<{NUMBERS[inner]}")
        return numpy.frombuffer(self.take(self.number("Q") * dtype.itemsize), dtype)
