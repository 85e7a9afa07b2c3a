"""Weights of a folder of the Hub, in one file or several: read tensor by tensor, and nothing of them is held twice."""

import ctypes
import json
import sys
from pathlib import Path

import pytest
import safetensors.torch
import torch

from heedful.errors import MissingError, StorageError
from heedful.exchange.hf import folder
from heedful.exchange.hf.folder import read_weights
from heedful.exchange.hub import HubTokens
from heedful.store import tensors as tensors_file
from hostile import TENSOR_FILES


def sharded(where: Path, tensors: dict[str, torch.Tensor], shards: int) -> None:
    names = sorted(tensors)
    index = {}
    for i in range(shards):
        own = names[i::shards]
        index |= dict.fromkeys(own, f"model-{i}.safetensors")
        safetensors.torch.save_file({name: tensors[name] for name in own}, where / f"model-{i}.safetensors")
    (where / folder.INDEX).write_text(json.dumps({"weight_map": index}))


def anonymous() -> int:
    """Bytes of this process's memory behind which stands no file."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon"))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("shards", [1, 4])
def test_a_model_is_held_once(shards: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = {f"layer.{i}": torch.full((1 << 20, 2), float(i)).bfloat16() for i in range(16)}
    size = sum(4 * tensor.numel() for tensor in made.values())  # in float32
    sharded(tmp_path, made, shards)
    del made
    ctypes.CDLL(None).malloc_trim(0)
    seen, own = [anonymous()], folder._own

    def watched(tensor: torch.Tensor) -> torch.Tensor:
        kept = own(tensor)
        seen.append(anonymous())
        return kept

    monkeypatch.setattr(folder, "_own", watched)
    found = read_weights(tmp_path)
    assert all(tensor.dtype == torch.float32 and (tensor == int(name[6:])).all() for name, tensor in found.items())
    assert 0.9 * size < max(seen) - seen[0] < 1.15 * size
    before = anonymous()
    chunks = tensors_file.pack(found, {})
    assert anonymous() - before < 0.1 * size
    assert sum(len(chunk) for chunk in chunks[1:]) == size


def test_what_is_packed_is_what_safetensors_writes() -> None:
    kinds = [
        torch.float32,
        torch.bfloat16,
        torch.float16,
        torch.float64,
        torch.int64,
        torch.int32,
        torch.uint8,
        torch.bool,
    ]
    made = {f"{chr(122 - i)}.{kind}": torch.arange(3 * i).view(3, i).to(kind) for i, kind in enumerate(kinds)}
    made |= {"one": torch.tensor(5.0), "turned": torch.randn(4, 2).T, "none": torch.zeros(0, 3)}
    tensors, notes = tensors_file.unpack(b"".join(map(bytes, tensors_file.pack(made, {"a": "b"}))), where=Path("x"))
    assert notes == {"format": "pt", "a": "b"}
    assert tensors.keys() == made.keys()
    assert all(tensors[name].dtype == own.dtype and torch.equal(tensors[name], own) for name, own in made.items())
    plain = {name: tensor.contiguous() for name, tensor in made.items()}
    data = safetensors.torch.save(plain)
    length = int.from_bytes(data[:8], "little")
    assert tensors_file.header_of(plain) == json.loads(data[8 : 8 + length])
    assert b"".join(map(bytes, tensors_file.pack(plain, {})[1:])) == data[8 + length :]


def test_more_than_the_memory_is_refused_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sharded(tmp_path, {"a": torch.zeros(100), "b": torch.zeros(100)}, 2)
    monkeypatch.setattr(folder, "memory_size", lambda: 799)
    with pytest.raises(StorageError, match=r"GB in float32, and this process may have"):
        read_weights(tmp_path)
    monkeypatch.setattr(folder, "memory_size", lambda: 800)
    assert read_weights(tmp_path).keys() == {"a", "b"}


@pytest.mark.parametrize("name", ["../elsewhere.safetensors", "/etc/passwd", "a/b.safetensors", ".", "", 7, None])
def test_an_index_leads_nowhere_else(name: object, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    safetensors.torch.save_file({"a": torch.zeros(2)}, tmp_path / "elsewhere.safetensors")
    (tmp_path / "model" / folder.INDEX).write_text(json.dumps({"weight_map": {"a": name}}))
    with pytest.raises(StorageError, match="does not say which file"):
        read_weights(tmp_path / "model")


def test_a_shard_that_is_not_there_or_no_file(tmp_path: Path) -> None:
    sharded(tmp_path, {"a": torch.zeros(2), "b": torch.zeros(2)}, 2)
    (tmp_path / "model-1.safetensors").unlink()
    with pytest.raises(MissingError, match=r"model-1\.safetensors"):
        read_weights(tmp_path)
    (tmp_path / "model-1.safetensors").mkdir()
    with pytest.raises(StorageError, match="not a plain file"):
        read_weights(tmp_path)


@pytest.mark.parametrize("kind", TENSOR_FILES)
def test_hostile_files_are_refused_in_one_line(kind: str, tmp_path: Path) -> None:
    (tmp_path / folder.WEIGHTS).write_bytes(TENSOR_FILES[kind])
    told = ""
    try:
        read_weights(tmp_path)
    except StorageError as error:
        told = f"{error} {error.fix}"
    assert "\n" not in told


def test_a_token_that_is_null_is_not_the_word_none(tmp_path: Path) -> None:
    names = {"bos_token": None, "eos_token": "</s>", "pad_token": None, "unk_token": None, "mask_token": None}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(names))
    tokens = HubTokens(tmp_path, {}, {"None": 0, "</s>": 1, "<unk>": 2}, size=3)
    assert [tokens.named(role) for role in ("bos", "eos", "pad", "unk", "mask")] == [None, 1, None, None, None]
    assert tokens.special(bos=1, eos=1).pad is None
