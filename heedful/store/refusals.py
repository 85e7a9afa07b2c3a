"""Files that are not read or written, and why."""

import os
import re
from collections.abc import Iterable
from pathlib import Path

from heedful.errors import InputError, StorageError

MANIFEST = "manifest.json"  # of a checkpoint
PICKLES = {".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".npy", ".npz", ".joblib"}
UPGRADE = "pip install -U heedful"
AGAIN = "get the file again from its source"


def check_name(name: str) -> None:
    """Raises StorageError for a name that is not a plain file name of ours."""
    plain = re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", name)
    if not plain or name == MANIFEST or Path(name).suffix in PICKLES:
        what = f"{name[:80]!r} is not a name for a file here"
        raise StorageError(what, fix="give it a plain name, such as model.safetensors")


def damaged(where: Path, what: str, *, fix: str = AGAIN) -> StorageError:
    return StorageError(what, where=str(where), fix=fix)


def refused(where: Path, what: str, *, fix: str) -> InputError:
    return InputError(what, where=str(where), fix=fix)


def refuse_read(out: Path, read: Iterable[str | Path]) -> None:
    """Raises InputError where what is written to `out` would replace one of the files that are read; names of none are
    passed over."""
    if os.path.exists(out) and any(os.path.isfile(file) and os.path.samefile(file, out) for file in read):
        raise InputError("is read, and would be written over", where=str(out), fix="name another --out")
