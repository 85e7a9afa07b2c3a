"""Malicious files of a model."""

import json
import struct
from typing import Any

import safetensors.torch
import torch

from heedful.store import tensors

CONFIGS = [  # the text of config.json, and a part of the error
    ('{"kind": "lm", "format": 1, "auto_map": {"AutoModel": "evil.Model"}}', "auto_map"),
    ('{"kind": "lm", "format": 1, "config": [{"auto\\u005fmap": 1}]}', "auto_map"),
    ('{"model_type": "marian", "auto_map": {}}', "auto_map"),
    ('{"model_type": "marian"}', "a Hugging Face model"),
    ("{}", "without `kind` and `format`"),
    ('{"kind": 1, "format": 1}', "without `kind` and `format`"),
    ('{"kind": "lm", "format": true}', "without `kind` and `format`"),
    ('{"kind": "lm", "format": "1"}', "without `kind` and `format`"),
    ('{"kind": "lm", "format": 1e999}', "not a finite number"),
    ('{"kind": "lm", "format": 99999999999999999999}', "pip install -U heedful"),
    ('{"kind": "lm", "kind": "vit", "format": 1}', "appears twice"),
    ("[]", "not a JSON object"),
    ("[" * 99999, "nested too deeply"),
    ("\0" * 50, "not valid JSON"),
    (" " * (1 << 22) + "{}", "more than the 4 MB"),
]


def tensor(dtype: Any = "F32", shape: Any = (2,), offsets: Any = (0, 8)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


def raw(header: Any, body: bytes = b"", *, length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + body


def signed(header: dict[str, Any], body: bytes, **notes: str) -> bytes:
    """A file with the sha256 that `_pack` would write: an attacker can compute it too."""
    header = header | {"__metadata__": {"files": "{}", **notes}}
    header["__metadata__"]["sha256"] = tensors._content(header, memoryview(body))
    return raw(header, body)


EIGHT = bytes(8)
TENSOR_FILES = {
    "empty": b"",
    "seven bytes": b"1234567",
    "header of 2**64 - 1 bytes": raw({}, length=2**64 - 1),
    "header of 2**63 bytes": raw({}, length=2**63),
    "header past the end": raw({}, length=50),
    "header of no bytes": raw(b""),
    "header of 17 MB": raw(b'{"a":' + b" " * (17 << 20) + b"1}"),
    "header is no json": raw(b"hello"),
    "header is a list": raw([]),
    "header is null": raw(b"null"),
    "header nested": raw(b'{"a":' + b"[" * 100_000),
    "header not utf-8": raw(b'{"\xff":1}'),
    "pickle": b"\x80\x04\x95\x20\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x8c\x06system\x93",
    "pickle, protocol 0": b"cos\nsystem\n(S'touch harm'\ntR.",
    "zip": b"PK\x03\x04" + bytes(200),
    "gguf": b"GGUF\x03\x00\x00\x00" + bytes(100),
    "numpy": b"\x93NUMPY\x01\x00" + bytes(100),
    "overlap": raw({"a": tensor(), "b": tensor()}, EIGHT),
    "partial overlap": raw({"a": tensor(), "b": tensor(offsets=(4, 12))}, bytes(12)),
    "hole": raw({"a": tensor(), "b": tensor(offsets=(16, 24))}, bytes(24)),
    "offset past the end": raw({"a": tensor(offsets=(8, 16))}, EIGHT),
    "offsets backwards": raw({"a": tensor(offsets=(8, 0))}, EIGHT),
    "offset negative": raw({"a": tensor(offsets=(-8, 0))}, EIGHT),
    "offset huge": raw({"a": tensor(offsets=(0, 2**63))}, EIGHT),
    "offset beyond 64 bits": raw({"a": tensor(offsets=(0, 2**70))}, EIGHT),
    "three offsets": raw({"a": tensor(offsets=(0, 4, 8))}, EIGHT),
    "shape overflow": raw({"a": tensor(shape=(2**62, 2**62))}, EIGHT),
    "shape wraps to 8": raw({"a": tensor(shape=(2**63, 2))}, EIGHT),
    "shape larger": raw({"a": tensor(shape=(10**12,))}, EIGHT),
    "shape negative": raw({"a": tensor(shape=(-2,))}, EIGHT),
    "shape of floats": raw({"a": tensor(shape=(2.0,))}, EIGHT),
    "shape a text": raw({"a": tensor(shape="2")}, EIGHT),
    "dtype unknown": raw({"a": tensor("X9")}, EIGHT),
    "name of two lines": raw({"a\nb\x1b[2J" + "c" * 999: tensor(offsets=(8, 16))}, EIGHT),
    "dtype a number": raw({"a": tensor(1)}, EIGHT),
    "dtype of no torch": raw({"a": tensor("F8_E8M0", (8,))}, EIGHT),
    "dtype of half bytes": raw({"a": tensor("F4", (16,))}, EIGHT),
    "same name twice": raw(b'{"a":%s,"a":%s}' % ((json.dumps(tensor()).encode(),) * 2), EIGHT),
    "bytes after the end": raw({"a": tensor()}, bytes(9)),
    "bytes missing": raw({"a": tensor()}, bytes(7)),
    "metadata a list": raw({"__metadata__": [1]}),
    "metadata of numbers": raw({"__metadata__": {"a": 1}}),
    "unsigned": safetensors.torch.save({"a": torch.zeros(2)}),
    "wrong sha256": raw({"__metadata__": {"sha256": "0" * 64}, "a": tensor()}, EIGHT),
    "no files named": signed({"a": tensor()}, EIGHT),
    "files no json": signed({"a": tensor()}, EIGHT, files="{"),
    "files a list": signed({"a": tensor()}, EIGHT, files='["config.json"]'),
    "files elsewhere": signed({"a": tensor()}, EIGHT, files='{"config.json": "CONFIG", "../secret": "0"}'),
    "files absolute": signed({"a": tensor()}, EIGHT, files='{"config.json": "CONFIG", "/etc/passwd": "0"}'),
    "files with a nul": signed({"a": tensor()}, EIGHT, files='{"config.json": "CONFIG", "a\\u0000": "0"}'),
    "config of another": signed({"a": tensor()}, EIGHT, files='{"config.json": "0"}'),
    "config a number": signed({"a": tensor()}, EIGHT, files='{"config.json": 0}'),
    "tied to nothing": signed({"a": tensor()}, EIGHT, tied='{"b": "c"}'),
    "tied to a list": signed({"a": tensor()}, EIGHT, tied='{"b": ["a"]}'),
    "tied a list": signed({"a": tensor()}, EIGHT, tied='["a"]'),
    "tied nested": signed({"a": tensor()}, EIGHT, tied="[" * 9999),
}


def text(data: bytes) -> bytes:
    return struct.pack("<Q", len(data)) + data


def gguf(body: bytes = b"", *, version: int = 3, tensors: int = 0, keys: int = 0, end: bytes = b"") -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, tensors, keys) + body + end


def key(kind: int, value: bytes, name: bytes = b"k") -> bytes:
    return text(name) + struct.pack("<I", kind) + value


def block(shape: tuple[int, ...] = (2,), *, kind: int = 0, offset: int = 0, name: bytes = b"t") -> bytes:
    return text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)


STRING, ARRAY = 8, 9
GGUF_FILES: dict[str, bytes] = {
    "empty": b"",
    "magic alone": b"GGUF",
    "another magic": b"GGML" + bytes(99),
    "the first version": gguf(version=1, end=bytes(99)),
    "a version to come": gguf(version=99, end=bytes(99)),
    "big endian": b"GGUF" + struct.pack(">IQQ", 3, 0, 0),
    "nothing in it": gguf(end=bytes(99)),
    "2**63 keys": gguf(keys=1 << 63, end=bytes(99)),
    "2**40 tensors": gguf(tensors=1 << 40, end=bytes(99)),
    "many keys": gguf(keys=1 << 16, end=bytes(1 << 16)),
    "a key of 2**62 letters": gguf(struct.pack("<Q", 1 << 62), keys=1),
    "a string of 2**62 letters": gguf(key(STRING, struct.pack("<Q", 1 << 62)), keys=1),
    "2**62 numbers": gguf(key(ARRAY, struct.pack("<IQ", 10, 1 << 62)), keys=1, end=bytes(99)),
    "2**61 strings": gguf(key(ARRAY, struct.pack("<IQ", STRING, 1 << 61)), keys=1, end=bytes(99)),
    "a list of lists": gguf(key(ARRAY, struct.pack("<IQ", ARRAY, 1 << 20) * 99), keys=1),
    "a value of no type": gguf(key(99, bytes(8)), keys=1),
    "a list of no type": gguf(key(ARRAY, struct.pack("<IQ", 99, 1)), keys=1, end=bytes(99)),
    "no UTF-8": gguf(key(STRING, text(b"\xff\xfe")), keys=1),
    "a key of two lines": gguf(key(99, bytes(8), b"a\nb\x1b[2J" + b"c" * 999), keys=1),
    "a key twice": gguf(2 * key(4, bytes(4)), keys=2),
    "a tensor twice": gguf(2 * block(), tensors=2, end=bytes(99)),
    "no dimensions": gguf(block(()), tensors=1, end=bytes(99)),
    "nine dimensions": gguf(block((1,) * 9), tensors=1, end=bytes(999)),
    "2**32 dimensions": gguf(text(b"t") + struct.pack("<I", (1 << 32) - 1), tensors=1, end=bytes(99)),
    "an empty tensor": gguf(block((0, 4)), tensors=1, end=bytes(99)),
    "a shape that overflows": gguf(block((1 << 62, 1 << 62)), tensors=1, end=bytes(99)),
    "a shape that wraps to 0": gguf(block((1 << 63, 2)), tensors=1, end=bytes(99)),
    "a larger shape": gguf(block((10**7,)), tensors=1, end=bytes(99)),
    "an offset behind the end": gguf(block(offset=1 << 60), tensors=1, end=bytes(99)),
    "half a block": gguf(block((40,), kind=8), tensors=1, end=bytes(99)),
    "a type that is none": gguf(block(kind=4), tensors=1, end=bytes(99)),
    "a type of whole numbers": gguf(block(kind=26), tensors=1, end=bytes(99)),
    "an alignment of 0": gguf(key(4, bytes(4), b"general.alignment"), keys=1, end=bytes(99)),
    "an alignment of 2**31": gguf(
        key(4, struct.pack("<I", 1 << 31), b"general.alignment") + block(), keys=1, tensors=1, end=bytes(99)
    ),
    "an alignment in words": gguf(key(STRING, text(b"32"), b"general.alignment"), keys=1, end=bytes(99)),
}
