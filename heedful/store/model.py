"""Folders of finished models: safetensors and JSON only, nothing is ever unpickled.

A model's folder holds config.json, model.safetensors, and more small files, such as tokenizer.json and
task.json. Several files cannot be replaced in one instant, so only one ever is: the small files are written
first and never change afterwards, and `model.safetensors`, replaced by one rename, is the last. Its header
carries the sha256 of each small file and of its own content, so that it is the folder's manifest too, and
cannot be out of step with one. `replace_small` changes a small file all the same: in between, the header has the
sha256 of both.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from heedful.errors import MissingError, StorageError
from heedful.store import files, migrations
from heedful.store.checkpoint import steps_of
from heedful.store.memory import memory_limit
from heedful.store.refusals import PICKLES, UPGRADE, check_name, damaged, refused
from heedful.store.tensors import Tensors, pack, unpack

CONFIG, MODEL = "config.json", "model.safetensors"
SMALL_LIMIT = 1 << 28  # bytes of a file that goes with a model
RESTORE = "heed restore {}, which takes its newest checkpoint"


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
        check_name(name)
        small[name] = value if isinstance(value, bytes) else files.json_bytes(value, where=folder / name)
        if len(small[name]) > SMALL_LIMIT:
            raise refused(folder / name, f"{len(small[name]) / 1e6:.0f} MB", fix="keep it outside the model")
    files.make_folder(folder)
    complete = os.path.lexists(folder / MODEL)
    for name, data in small.items():
        if _holds(folder / name, data):
            continue
        if complete and os.path.lexists(folder / name):
            raise refused(folder / name, "belongs to another model", fix="choose another folder")
        files.write_bytes(folder / name, data)
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in small.items()}
    files.write_bytes(folder / MODEL, *pack(tensors, {"files": json.dumps(digests, sort_keys=True)}))


def replace_small(folder: Path, name: str, data: bytes) -> None:
    """Replace a small file that a model was saved with. A crash leaves the old or the new one, and a model that can be
    read. Raises what `read_model` does, and StorageError when writing fails."""
    path = folder / MODEL
    tensors, notes = unpack(_read_inside(folder, MODEL, limit=files.memory_limit()), where=path)
    digests = _digests(notes, path)
    before, after = (hashlib.sha256(each).hexdigest() for each in (_checked(folder, name, digests), data))
    if digests[name] != after:
        for known in ([before, after], after):
            own = json.dumps(digests | {name: known}, sort_keys=True)
            files.write_bytes(path, *pack(tensors, notes | {"files": own}))
            files.write_bytes(folder / name, data)


def read_config(folder: Path) -> dict[str, Any]:
    """The config in `folder` as it was saved, before any migration; for a look before the tensors are read.

    Raises MissingError, InputError or StorageError.
    """
    files.need_folder(folder)
    path = folder / CONFIG
    if not path.is_file() and (folder / "encoder.onnx").is_file():
        raise refused(folder, "a translator of ONNX", fix=f'python {folder / "translate.py"} "A sentence."')
    try:
        config = files.parse_json(_read_inside(folder, CONFIG, limit=1 << 22), where=path)
    except (StorageError, MissingError) as error:
        if not steps_of(folder):
            raise
        raise type(error)(error.what, where=error.where, fix=RESTORE.format(folder)) from error
    if not isinstance(config, dict):
        raise damaged(path, "not a JSON object")
    if '"auto_map":' in json.dumps(config):
        what = "`auto_map` asks to run code that comes with the model, which heedful never does"
        raise refused(path, what, fix="take a model without code of its own")
    if "kind" not in config and "model_type" in config:
        raise refused(path, "a Hugging Face model", fix=f"heed import {folder}")
    if "kind" not in config and (folder / "model.bin").is_file():
        raise refused(path, "a model of CTranslate2", fix="give --engine ctranslate2, where a command has it")
    if not isinstance(config.get("kind"), str) or type(config.get("format")) is not int:
        raise damaged(path, "without `kind` and `format`: not a model's config")
    if config["format"] > migrations.FORMAT:
        what = f"written in format {config['format']}, this heedful reads up to {migrations.FORMAT}"
        raise refused(path, what, fix=UPGRADE)
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
            child.name for child in files.children(folder) if child.suffix in PICKLES and child.name.isprintable()
        )
        if pickles:
            what = "a pickle, which can run code as it is read: heedful does not open it"
            raise refused(folder / pickles[0], what, fix="ask its author for safetensors")
        fix = f"{RESTORE.format(folder)}, or train on" if steps_of(folder) else "train it first"
        raise MissingError("no model has been saved here yet", where=str(path), fix=fix)
    try:
        tensors, notes = unpack(_read_inside(folder, MODEL, limit=memory_limit()), where=path)
    except StorageError as error:
        if not steps_of(folder):
            raise
        raise damaged(path, error.what, fix=RESTORE.format(folder)) from error
    digests = _digests(notes, path)
    for name in digests:
        _checked(folder, name, digests)
    number = config.pop("format")
    if number < min(migrations.MIGRATIONS, default=migrations.FORMAT):
        raise damaged(folder / CONFIG, f"format {number} is not known")
    return migrations.migrated(config, number), migrations.renamed(tensors, number)


def _digests(notes: Mapping[str, str], path: Path) -> dict[str, Any]:
    """The sha256 of each small file, by its name; a list of two where one is being replaced."""
    digests = files.parse_json(notes.get("files", "{}").encode(), where=path)
    if not isinstance(digests, dict) or CONFIG not in digests:
        raise damaged(path, "does not say which config it belongs to")
    return digests


def _checked(folder: Path, name: str, digests: Mapping[str, Any]) -> bytes:
    """Read a small file. Raises StorageError where it is not the one that was saved with the model."""
    check_name(name)
    data, known = _read_inside(folder, name, limit=SMALL_LIMIT), digests.get(name)
    if hashlib.sha256(data).hexdigest() not in (known if isinstance(known, list) else [known]):
        raise damaged(folder / name, f"not the file that was saved with {MODEL}")
    return data


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
        raise damaged(folder / name, "a link out of its folder", fix="put the file itself in its place")
    return files.read_bytes(folder / name, limit=limit)


def weights_stamp(run: Path) -> tuple[int, ...]:
    """Identifies the version of the weights in a run's folder; () where there are none."""
    with suppress(OSError):
        found = (run / MODEL).stat()
        return found.st_ino, found.st_size, found.st_mtime_ns
    return ()
