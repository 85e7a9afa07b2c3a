"""Checkpoints of a run: safetensors and JSON only, nothing is ever unpickled.

A checkpoint is the folder RUN/checkpoints/step-N. It is written as `.tmp-step-N`: each file is flushed to the disk,
`manifest.json` last, then the folder, which is then renamed; the checkpoint exists from the rename on. The manifest has
the size and sha256 of every file, the step, and its own sha256; a folder that does not agree with it is not a
checkpoint.

Several ranks write a checkpoint together, each its own files: what is one file of one process, `weights.safetensors`,
is then in parts, `weights-1-of-4.safetensors` and so on, each with some rows of some tensors. The first rank writes the
manifest once all parts are on the disk. Any number of ranks can read them.
"""

import hashlib
import json
import os
import platform
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor

from heedful.errors import HeedError, MissingError, StorageError
from heedful.store import files
from heedful.store.memory import memory_limit
from heedful.store.refusals import MANIFEST, UPGRADE, check_name, damaged, refused
from heedful.store.tensors import Tensors, pack, unpack

SCHEMA = 1  # of a checkpoint's manifest
T = TypeVar("T")
Wanted = Mapping[str, tuple[int, int | None]]  # by parameter, its rows from one up to another; None: to the last


class Part(NamedTuple):
    """Some rows of some tensors, by names PARAMETER or PARAMETER/KEY, and where the rows of a parameter begin."""

    tensors: Tensors
    begins: Mapping[str, int]


@runtime_checkable
class Writers(Protocol):
    """The processes that write a checkpoint together, as one of them sees them."""

    @property
    def first(self) -> bool: ...
    def collect(self, value: object) -> list[Any]:
        """Every process's value, which JSON can hold."""


class Alone:
    first = True

    def collect(self, value: object) -> list[Any]:
        return [value]


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
        data = files.read_bytes(self.path / name, limit=memory_limit())
        if len(data) != entry["size"] or hashlib.sha256(data).hexdigest() != entry["sha256"]:
            raise damaged(self.path / name, "changed since it was verified", fix="run `heed check`")
        return data

    def tensors(self, name: str, wanted: Wanted | None = None) -> Tensors:
        """The tensors of file `name`, or of all its parts together, on the CPU; `wanted`: only these rows of these
        parameters. One part at a time is in memory."""
        stem, _, suffix = name.rpartition(".")
        parts = [each for each in self.manifest["files"] if re.fullmatch(rf"{stem}-\d+-of-\d+\.{suffix}", each)]
        pieces: dict[str, list[tuple[int, Tensor]]] = {}
        for part in parts or [name]:
            tensors, notes = unpack(self.data(part), where=self.path / part)
            begins = files.parse_json(notes.get("begins", "{}").encode(), where=self.path / part)
            for key, tensor in tensors.items():
                parameter = key.partition("/")[0]
                begin, rows = begins.get(parameter, 0), (0, None) if wanted is None else wanted.get(parameter, (0, 0))
                if rows == (0, 0):
                    continue
                piece = _overlap(tensor, begin, *rows)
                if not parts or not piece.ndim or len(piece):
                    pieces.setdefault(key, []).append((begin, piece))
        return {key: _joined(held) for key, held in pieces.items()}

    def json(self, name: str) -> Any:
        """The JSON value of file `name`."""
        return files.parse_json(self.data(name), where=self.path / name)


def save_checkpoint(
    run: Path,
    step: int,
    contents: Mapping[str, Any],
    *,
    finite: bool,
    facts: dict[str, Any],
    writers: Writers | None = None,
) -> Path:
    """Write RUN/checkpoints/step-`step` and return it; from then on no crash loses it. Raises StorageError.

    `contents` maps a file's name to tensors by name or a Part (*.safetensors), a JSON value (*.json), or else bytes.
    `finite` tells whether all weights are. A folder of that step with the same content stays as it is; one
    with another content, or damaged, is replaced. Nothing is removed but that: rotate after. Several `writers` call
    this at the same time, each with other files; what one of them cannot write, all raise.
    """
    for name in contents:
        check_name(name)
    writers = writers or Alone()
    folder = run / "checkpoints"
    final, old = folder / f"step-{step}", folder / f".old-step-{step}"
    temporary = folder / f"{files.TEMPORARY}step-{step}"
    tensors = (_tensors(value) for name, value in contents.items() if name.endswith(".safetensors"))
    needed = sum(tensor.nbytes for held in tensors for tensor in held.values())

    def prepare() -> None:
        if writers.first:
            files.make_folder(folder)
            files.remove_tree(temporary)
            files.make_folder(temporary)

    def write() -> dict[str, Any]:
        entries = {}
        for name, value in contents.items():
            chunks = _chunks(value, temporary / name)
            digest = files.write_new(temporary / name, *chunks, needed=needed)
            entries[name] = {"size": sum(len(chunk) for chunk in chunks), "sha256": digest}
        return {"files": entries, "finite": finite}

    def commit() -> None:
        if not writers.first:
            return
        entries = {name: entry for each in written for name, entry in each["files"].items()}
        for name in entries:
            if not (temporary / name).is_file():
                fix = "give --out on a file system that all ranks share"
                raise StorageError("another rank has written it, and it is not here", where=str(final / name), fix=fix)
        manifest = {
            "schema": SCHEMA,
            "step": step,
            "finite": all(each["finite"] for each in written),
            "files": entries,
            "versions": versions(),
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

    try:
        _by_all(writers, prepare)
        written = _by_all(writers, write)
        _by_all(writers, commit)
    except StorageError:
        with suppress(StorageError):
            if writers.first:
                if old.exists() and not final.exists():
                    files.rename_folder(old, final)
                files.remove_tree(temporary)
        raise
    return final


def _by_all(writers: Writers, work: Callable[[], T]) -> list[T]:
    """What `work` returned in each process. Raises in all of them what it raised in one."""
    done: dict[str, Any]
    failed: StorageError | None = None
    try:
        done = {"result": work()}
    except StorageError as error:
        failed, done = error, {"failed": {"what": error.what, "where": error.where, "fix": error.fix}}
    everyone = writers.collect(done)
    if failed is not None:
        raise failed
    for each in everyone:
        if "failed" in each:
            raise StorageError(**each["failed"])
    return [each["result"] for each in everyone]


def load_newest(run: Path, warn: Callable[[str], None], *, finite: bool = False) -> Checkpoint | None:
    """The newest checkpoint of `run` that verifies, or None if there is none.

    `warn` gets a line for each newer one that does not verify. `finite`: only one with finite weights. Raises
    StorageError if some are damaged and none can be used, InputError if another version of heedful wrote the newest.
    """
    steps = steps_of(run)
    bad = 0
    for step in steps:
        path = place_of(run, step)
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
        raise damaged(run / "checkpoints", what, fix="restore one from a copy, or start a new run")
    return None


def load_first(run: Path, steps: Sequence[int], count: int) -> list[Checkpoint]:
    """The first `count` of the checkpoints of these steps that verify and are finite, or as many as there are."""
    found: list[Checkpoint] = []
    for step in steps:
        path = place_of(run, step)
        if len(found) < count and not verify(path) and _manifest(path)["finite"]:
            found.append(Checkpoint(step, path, _manifest(path)))
    return found


def verify(path: Path) -> list[str]:
    """The faults of the checkpoint folder `path`, a line for each file; empty if there are none.

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
    steps = steps_of(run)
    doomed = set(steps[keep:]) - set(protect)
    if not doomed:
        return []
    sound = (step for step in steps if not verify(place_of(run, step)))
    last_good = next((step for step in sound if _manifest(place_of(run, step))["finite"]), None)
    if last_good is None:
        return []
    doomed.discard(last_good)
    for step in sorted(doomed):
        going = run / "checkpoints" / f"{files.TEMPORARY}removed-step-{step}"
        files.remove_tree(going)
        files.rename_folder(place_of(run, step), going)  # first, so that a crash leaves no half of a checkpoint
        files.remove_tree(going)
    return sorted(doomed)


def clean(run: Path) -> None:
    """Remove what a crash left unfinished; call it under the run's lock, before the first load or save."""
    for folder in (run, run / "checkpoints"):
        for path in files.children(folder):
            replaced = path.with_name(path.name.removeprefix(".old-"))
            if path.name.startswith(".old-step-") and not replaced.exists():
                files.rename_folder(path, replaced)
            elif path.name.startswith((files.TEMPORARY, ".old-step-")):
                files.remove_tree(path)


def place_of(run: Path, step: int) -> Path:
    """The folder of a step's checkpoint."""
    return run / "checkpoints" / f"step-{step}"


def steps_of(run: Path) -> list[int]:
    """The steps of all checkpoints, sound or not, the newest first."""
    names = (re.fullmatch(r"step-(0|[1-9]\d{0,17})", path.name) for path in files.children(run / "checkpoints"))
    return sorted((int(name[1]) for name in names if name), reverse=True)


def _overlap(tensor: Tensor, begin: int, first: int, last: int | None) -> Tensor:
    """Those of its rows, the first of which has the number `begin`, that are from `first` up to `last`; copied where
    they are some, so that the rest is given up. One without rows is returned itself."""
    if not tensor.ndim:
        return tensor
    rows = tensor[max(0, first - begin) : None if last is None else max(0, last - begin)]
    return tensor if len(rows) == len(tensor) else rows.clone()


def _joined(pieces: list[tuple[int, Tensor]]) -> Tensor:
    """A tensor of pieces that begin at these rows; one without rows, which all parts have, is the first."""
    if len(pieces) == 1 or not pieces[0][1].ndim:
        return pieces[0][1]
    return torch.cat([piece for _, piece in sorted(pieces, key=lambda piece: piece[0])])


def _tensors(value: Any) -> Tensors:
    return value.tensors if isinstance(value, Part) else value


def _chunks(value: Any, path: Path) -> list[files.Bytes]:
    if path.suffix == ".safetensors":
        return pack(_tensors(value), {"begins": json.dumps(value.begins)} if isinstance(value, Part) else {})
    return [files.json_bytes(value, where=path) if path.suffix == ".json" else value]


@cache  # as a file is read and parsed for it
def versions() -> dict[str, str]:
    """Those of what decides about the bits of a training."""
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
        raise damaged(path / MANIFEST, "its content is not what was saved", fix="remove this checkpoint")
    if body.get("schema") != SCHEMA:
        what = f"written in schema {body.get('schema')!r:.40}, this heedful reads {SCHEMA}"
        raise refused(path / MANIFEST, what, fix=UPGRADE)
    if path.name != f"step-{body.get('step')}":
        what = f"is of step {body.get('step')!r:.40}, not of this folder"
        raise damaged(path / MANIFEST, what, fix="remove this checkpoint")
    entries = body.get("files")
    if not isinstance(entries, dict) or not isinstance(body.get("finite"), bool):
        raise damaged(path / MANIFEST, "lacks `files` or `finite`", fix="remove this checkpoint")
    for name, entry in entries.items():
        check_name(name)
        if not isinstance(entry, dict) or entry.keys() != {"size", "sha256"}:
            raise damaged(path / MANIFEST, f"{name} has no size and sha256", fix="remove this checkpoint")
    return manifest
