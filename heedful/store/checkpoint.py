"""Checkpoints of a run and folders of finished models: safetensors and JSON only, nothing is ever unpickled.

A checkpoint is the folder RUN/checkpoints/step-N. It is written as `.tmp-step-N`: each file flushed to the
disk, `manifest.json` last, then the folder, which is renamed; the rename is the one moment at which it comes
to be. The manifest names the size and sha256 of every file, the step, and its own sha256; what does not agree
is not a checkpoint.

A model folder holds config.json, model.safetensors, and more small files, such as tokenizer.json and
task.json. Several files cannot be replaced in one instant, so only one ever is: the small files are written
first and never change afterwards, and `model.safetensors`, replaced by one rename, is the last. Its header
carries the sha256 of each small file and of its own content, so that it is the folder's manifest too, and
cannot be out of step with one.
"""

import hashlib
import json
import os
import platform
import re
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from heedful.errors import HeedError, InputError, MissingError, StorageError
from heedful.store import files, migrations

SCHEMA = 1  # of a checkpoint's manifest
MANIFEST = "manifest.json"
CONFIG, MODEL = "config.json", "model.safetensors"
PICKLES = {".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".npy", ".npz", ".joblib"}
HEADER_LIMIT = 1 << 24
SMALL_LIMIT = 1 << 28  # bytes of a file that goes with a model
UPGRADE = "pip install -U heedful"
AGAIN = "get the file again from its source"

Tensors = dict[str, Tensor]


@dataclass(frozen=True)
class Checkpoint:
    """One step's folder whose files agreed with its manifest."""

    step: int
    path: Path
    manifest: dict[str, Any]

    def data(self, name: str) -> bytes:
        """The content of file `name`, verified again as it is read. Raises MissingError or StorageError."""
        entry = self.manifest["files"].get(name)
        if entry is None:
            raise MissingError("not in this checkpoint", where=str(self.path / name), fix="start a new run")
        data = files.read_bytes(self.path / name, limit=files.memory_limit())
        if len(data) != entry["size"] or hashlib.sha256(data).hexdigest() != entry["sha256"]:
            raise _damaged(self.path / name, "changed since it was verified", fix="run `heed check`")
        return data

    def tensors(self, name: str) -> Tensors:
        """The tensors of file `name`, on the CPU."""
        return _unpack(self.data(name), where=self.path / name)[0]

    def json(self, name: str) -> Any:
        """The JSON value of file `name`."""
        return files.parse_json(self.data(name), where=self.path / name)


def save_checkpoint(run: Path, step: int, contents: Mapping[str, Any], *, finite: bool, facts: dict[str, Any]) -> Path:
    """Write RUN/checkpoints/step-`step` and return it; from then on no crash loses it. Raises StorageError.

    `contents` maps a file's name to tensors by name (*.safetensors), a JSON value (*.json), or else bytes.
    `finite` tells whether all weights are. A folder of that step with the same content stays as it is; one
    with another content, or damaged, is replaced. Nothing is removed but that: rotate after.
    """
    for name in contents:
        _check_name(name)
    folder = run / "checkpoints"
    final, old = folder / f"step-{step}", folder / f".old-step-{step}"
    temporary = folder / f"{files.TEMPORARY}step-{step}"
    needed = sum(
        sum(tensor.nbytes for tensor in value.values()) if name.endswith(".safetensors") else 0
        for name, value in contents.items()
    )
    files.make_folder(folder)
    files.remove_tree(temporary)
    try:
        files.make_folder(temporary)
        entries = {}
        for name, value in contents.items():
            chunks = _chunks(value, temporary / name)
            digest = files.write_new(temporary / name, *chunks, needed=needed)
            entries[name] = {"size": sum(len(chunk) for chunk in chunks), "sha256": digest}
        manifest = {
            "schema": SCHEMA,
            "step": step,
            "finite": finite,
            "files": entries,
            "versions": _versions(),
            "facts": {"world_size": 1} | facts,
        }
        plain = json.loads(files.json_bytes(manifest, where=final))  # its seal is checked as it will be read
        sealed = files.json_bytes(plain | {"sha256": _seal(plain)}, where=final)
        files.write_new(temporary / MANIFEST, sealed, needed=needed)
        files.fsync_folder(temporary)
        if not os.path.lexists(final):
            files.rename_folder(temporary, final)
        elif not verify(final) and files.read_bytes(final / MANIFEST, limit=files.JSON_LIMIT) == sealed:
            files.remove_tree(temporary)
        else:
            files.remove_tree(old)
            files.rename_folder(final, old)
            files.rename_folder(temporary, final)
            files.remove_tree(old)
    except StorageError:
        with suppress(StorageError):
            if old.exists() and not final.exists():
                files.rename_folder(old, final)
            files.remove_tree(temporary)
        raise
    return final


def load_newest(run: Path, warn: Callable[[str], None], *, finite: bool = False) -> Checkpoint | None:
    """The newest checkpoint of `run` that verifies, or None where there is none.

    Each newer one that does not verify is told to `warn` in one line. `finite`: only one of finite weights.
    Raises StorageError when some are damaged and none can be used, InputError when another version of heedful
    wrote the newest.
    """
    steps = _steps(run)
    bad = 0
    for step in steps:
        path = _place(run, step)
        problems = verify(path)
        if problems:
            bad += 1
            warn(f"{path}: damaged, left out ({problems[0]})")
            continue
        manifest = _manifest(path)
        if manifest["finite"] or not finite:
            return Checkpoint(step, path, manifest)
    if bad:
        what = f"none of the {len(steps)} checkpoints can be used, {bad} damaged"
        raise _damaged(run / "checkpoints", what, fix="restore one from a copy, or start a new run")
    return None


def load_before(run: Path, step: int, count: int) -> list[Checkpoint]:
    """At most `count` checkpoints of steps before this one that verify and are finite, the newest first."""
    found: list[Checkpoint] = []
    for earlier in _steps(run):
        path = _place(run, earlier)
        if earlier < step and len(found) < count and not verify(path) and _manifest(path)["finite"]:
            found.append(Checkpoint(earlier, path, _manifest(path)))
    return found


def verify(path: Path) -> list[str]:
    """What is wrong with the checkpoint folder `path`, one line for each file; empty when all is well.

    Raises InputError when another version of heedful wrote it.
    """
    try:
        manifest = _manifest(path)
    except (StorageError, MissingError) as error:
        return [f"{MANIFEST}: {error.what}"]
    problems = []
    for name, entry in manifest["files"].items():
        try:
            size, digest = files.size_and_sha256(path / name)
        except HeedError as error:
            problems.append(f"{name}: {error.what}")
            continue
        if size != entry["size"]:
            problems.append(f"{name}: {size} bytes, its manifest says {entry['size']}")
        elif digest != entry["sha256"]:
            problems.append(f"{name}: its content is not what was saved (sha256 differs)")
    return problems


def rotate(run: Path, keep: int, protect: Collection[int] = ()) -> list[int]:
    """Remove old checkpoints and return their steps; call it under the run's lock, after a save.

    The newest `keep` stay, those in `protect`, and always the newest finite one that verifies; as long as
    there is no such one, all stay.
    """
    if keep < 1:
        raise ValueError(f"keep is {keep}, at least one checkpoint must stay")
    steps = _steps(run)
    doomed = set(steps[keep:]) - set(protect)
    if not doomed:
        return []
    sound = (step for step in steps if not verify(_place(run, step)))
    last_good = next((step for step in sound if _manifest(_place(run, step))["finite"]), None)
    if last_good is None:
        return []
    doomed.discard(last_good)
    for step in sorted(doomed):
        going = run / "checkpoints" / f"{files.TEMPORARY}removed-step-{step}"
        files.remove_tree(going)
        files.rename_folder(_place(run, step), going)  # first, so that a crash leaves no half of a checkpoint
        files.remove_tree(going)
    return sorted(doomed)


def clean(run: Path) -> None:
    """Put away what a crash left half done; call it under the run's lock, before the first load or save."""
    for folder in (run, run / "checkpoints"):
        for path in _children(folder):
            replaced = path.with_name(path.name.removeprefix(".old-"))
            if path.name.startswith(".old-step-") and not replaced.exists():
                files.rename_folder(path, replaced)
            elif path.name.startswith((files.TEMPORARY, ".old-step-")):
                files.remove_tree(path)


def save_tensors(path: Path, tensors: Tensors, notes: dict[str, str]) -> None:
    """Write a file of tensors, and words that belong to them. Raises StorageError."""
    files.write_bytes(path, *_pack(tensors, notes))


def read_tensors(path: Path) -> tuple[Tensors, dict[str, str]]:
    """What `save_tensors` wrote. Raises StorageError for anything else."""
    return _unpack(files.read_bytes(path, limit=files.memory_limit()), where=path)


def save_model(folder: Path, config: dict[str, Any], tensors: Tensors, extra: Mapping[str, Any]) -> None:
    """Write a model folder: `config` (with its "kind"; of today's format, or of the one that it says), `tensors` under
    the names of that format, and `extra` files (bytes or JSON values).

    Over an older model of the same config and extras it may be called at any time: a crash leaves the old or
    the new one. Raises InputError when another model is there, StorageError when writing fails.
    """
    if "kind" not in config:
        raise ValueError("the config of a model names its kind")
    small: dict[str, bytes] = {}
    for name, value in {**extra, CONFIG: {"format": migrations.FORMAT} | config}.items():
        _check_name(name)
        small[name] = value if isinstance(value, bytes) else files.json_bytes(value, where=folder / name)
        if len(small[name]) > SMALL_LIMIT:
            raise _refused(folder / name, f"{len(small[name]) / 1e6:.0f} MB", fix="keep it outside the model")
    files.make_folder(folder)
    complete = os.path.lexists(folder / MODEL)
    for name, data in small.items():
        if _holds(folder / name, data):
            continue
        if complete and os.path.lexists(folder / name):
            raise _refused(folder / name, "belongs to another model", fix="choose another folder")
        files.write_bytes(folder / name, data)
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in small.items()}
    files.write_bytes(folder / MODEL, *_pack(tensors, {"files": json.dumps(digests, sort_keys=True)}))


def read_config(folder: Path) -> dict[str, Any]:
    """The config in `folder` as it was saved, before any migration; for a look before the tensors are read.

    Raises MissingError, InputError or StorageError.
    """
    if not folder.is_dir():
        raise MissingError("no such folder", where=str(folder), fix="check the path")
    path = folder / CONFIG
    config = files.parse_json(_read_inside(folder, CONFIG, limit=1 << 22), where=path)
    if not isinstance(config, dict):
        raise _damaged(path, "not a JSON object")
    if '"auto_map":' in json.dumps(config):
        what = "`auto_map` asks to run code that comes with the model, which heedful never does"
        raise _refused(path, what, fix="take a model without code of its own")
    if "kind" not in config and "model_type" in config:
        raise _refused(path, "a Hugging Face model", fix=f"heed import {folder}")
    if "kind" not in config and (folder / "model.bin").is_file():
        raise _refused(path, "a model of CTranslate2", fix="give --engine ctranslate2")
    if not isinstance(config.get("kind"), str) or type(config.get("format")) is not int:
        raise _damaged(path, "without `kind` and `format`: not a model's config")
    if config["format"] > migrations.FORMAT:
        what = f"written in format {config['format']}, this heedful reads up to {migrations.FORMAT}"
        raise _refused(path, what, fix=UPGRADE)
    return config


def read_model(folder: Path) -> tuple[dict[str, Any], Tensors]:
    """The config and the tensors (on the CPU) of a model folder, brought to today's format.

    Raises MissingError when a part is missing, InputError for what heedful does not read (a newer format,
    `auto_map`, pickled weights), StorageError when a file is damaged or does not belong to the others.
    """
    config = read_config(folder)
    path = folder / MODEL
    if not os.path.lexists(path):
        pickles = sorted(
            child.name for child in _children(folder) if child.suffix in PICKLES and child.name.isprintable()
        )
        if pickles:
            what = "a pickle, which can run code as it is read: heedful does not open it"
            raise _refused(folder / pickles[0], what, fix="ask its author for safetensors")
        raise MissingError("no model has been saved here yet", where=str(path), fix="train it first")
    try:
        tensors, notes = _unpack(_read_inside(folder, MODEL, limit=files.memory_limit()), where=path)
    except StorageError as error:
        if not _steps(folder):
            raise
        raise _damaged(path, error.what, fix=f"heed restore {folder}, which takes its newest checkpoint") from error
    digests = files.parse_json(notes.get("files", "{}").encode(), where=path)
    if not isinstance(digests, dict) or CONFIG not in digests:
        raise _damaged(path, "does not say which config it belongs to")
    for name, digest in digests.items():
        _check_name(name)
        if hashlib.sha256(_read_inside(folder, name, limit=SMALL_LIMIT)).hexdigest() != digest:
            raise _damaged(folder / name, f"not the file that was saved with {MODEL}")
    number = config.pop("format")
    if number < min(migrations.MIGRATIONS):
        raise _damaged(folder / CONFIG, f"format {number} is not known")
    return migrations.migrated(config, number), migrations.renamed(tensors, number)


def _damaged(where: Path, what: str, *, fix: str = AGAIN) -> StorageError:
    return StorageError(what, where=str(where), fix=fix)


def _refused(where: Path, what: str, *, fix: str) -> InputError:
    return InputError(what, where=str(where), fix=fix)


def _place(run: Path, step: int) -> Path:
    return run / "checkpoints" / f"step-{step}"


def _children(folder: Path) -> list[Path]:
    with files.storage_errors(folder):
        return sorted(folder.iterdir()) if folder.is_dir() else []


def _steps(run: Path) -> list[int]:
    names = (re.fullmatch(r"step-(0|[1-9]\d{0,17})", path.name) for path in _children(run / "checkpoints"))
    return sorted((int(name[1]) for name in names if name), reverse=True)


def _check_name(name: str) -> None:
    plain = re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", name)
    if not plain or name == MANIFEST or Path(name).suffix in PICKLES:
        what = f"{name[:80]!r} is not a name for a file here"
        raise StorageError(what, fix="give it a plain name, such as model.safetensors")


def _chunks(value: Any, path: Path) -> list[files.Bytes]:
    if path.suffix == ".safetensors":
        return _pack(value, {})
    return [files.json_bytes(value, where=path) if path.suffix == ".json" else value]


def _versions() -> dict[str, str]:
    try:
        heedful = metadata.version("heedful")
    except metadata.PackageNotFoundError:
        heedful = "from source"
    return {"heedful": heedful, "torch": torch.__version__, "python": platform.python_version()}


def _seal(manifest: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def _manifest(path: Path) -> dict[str, Any]:
    data = files.read_bytes(path / MANIFEST, limit=1 << 22)
    manifest = files.parse_json(data, where=path / MANIFEST)
    body = dict(manifest) if isinstance(manifest, dict) else {}
    if body.pop("sha256", None) != _seal(body) or files.json_bytes(manifest, where=path) != data:
        raise _damaged(path / MANIFEST, "its content is not what was saved", fix="remove this checkpoint")
    if body.get("schema") != SCHEMA:
        what = f"written in schema {body.get('schema')!r:.40}, this heedful reads {SCHEMA}"
        raise _refused(path / MANIFEST, what, fix=UPGRADE)
    if path.name != f"step-{body.get('step')}":
        what = f"is of step {body.get('step')!r:.40}, not of this folder"
        raise _damaged(path / MANIFEST, what, fix="remove this checkpoint")
    entries = body.get("files")
    if not isinstance(entries, dict) or not isinstance(body.get("finite"), bool):
        raise _damaged(path / MANIFEST, "lacks `files` or `finite`", fix="remove this checkpoint")
    for name, entry in entries.items():
        _check_name(name)
        if not isinstance(entry, dict) or entry.keys() != {"size", "sha256"}:
            raise _damaged(path / MANIFEST, f"{name} has no size and sha256", fix="remove this checkpoint")
    return manifest


def _holds(path: Path, data: bytes) -> bool:
    if not path.is_file() or path.stat().st_size != len(data):
        return False
    return files.read_bytes(path, limit=len(data)) == data


def read_small(folder: Path, name: str) -> Any:
    """The JSON value in a file that came with a model's folder. Raises MissingError or StorageError."""
    return files.parse_json(_read_inside(folder, name, limit=files.JSON_LIMIT), where=folder / name)


def _read_inside(folder: Path, name: str, *, limit: int) -> bytes:
    """Read a file that came with the folder; a link may not lead out of it."""
    real = os.path.realpath(folder / name)
    if not Path(real).is_relative_to(os.path.realpath(folder)):
        raise _damaged(folder / name, "a link out of its folder", fix="put the file itself in its place")
    return files.read_bytes(folder / name, limit=limit)


def _pack(tensors: Tensors, notes: dict[str, str]) -> list[files.Bytes]:
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
    header = _header(kept)
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


def _header(tensors: Tensors) -> dict[str, Any]:
    """What safetensors writes before these tensors, in the order in which it writes them: learnt from empty ones, so
    that the bytes of a model are never held twice."""
    data = safetensors.torch.save({name: tensor.flatten()[:0].clone() for name, tensor in tensors.items()})
    header, end = json.loads(data[8:]), 0
    for name, told in header.items():
        begin, end = end, end + tensors[name].numel() * tensors[name].element_size()
        header[name] = told | {"shape": list(tensors[name].shape), "data_offsets": [begin, end]}
    return header


def _unpack(data: bytes, *, where: Path) -> tuple[Tensors, dict[str, str]]:
    """The tensors and notes of what `_pack` wrote. Raises StorageError for anything else."""
    length = int.from_bytes(data[:8], "little")
    if not 2 <= length <= min(HEADER_LIMIT, len(data) - 8):
        raise _damaged(where, "not a safetensors file: bad header length")
    header = files.parse_json(data[8 : 8 + length], where=where)
    try:
        tensors = safetensors.torch.load(data)
    except (safetensors.SafetensorError, KeyError) as error:  # KeyError: a number type that torch has not
        reason = str(error).encode("unicode_escape").decode()[:200]  # it quotes names from the file
        raise _damaged(where, f"not a sound safetensors file: {reason}") from error
    notes = header.get("__metadata__", {})
    digest = notes.pop("sha256", None)
    if digest is None:
        raise _damaged(where, "not written by heedful: it has no sha256", fix="use `heed import`")
    if digest != _content(header, memoryview(data)[8 + length :]):
        raise _damaged(where, "damaged: its content is not what was saved")
    tied = files.parse_json(notes.pop("tied", "{}").encode(), where=where)
    if not isinstance(tied, dict) or not all(str(name) in tensors for name in tied.values()):
        raise _damaged(where, "damaged: names a tensor that it does not have")
    return tensors | {name: tensors[str(same)] for name, same in tied.items()}, notes


def _content(header: dict[str, Any], *body: memoryview) -> str:
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for part in body:
        digest.update(part)
    return digest.hexdigest()
