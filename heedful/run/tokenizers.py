"""The tokenizers in a run's folder, or in one of prepared data. Both are read without torch."""

from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path

from heedful.core.config import LARGEST, from_json
from heedful.data.tokenizer import SpecialTokens, Tokenizer
from heedful.errors import InputError, StorageError
from heedful.store import files
from heedful.store.files import json_bytes, read_json
from heedful.store.lock import NAME

SPECIAL_TOKENS = "special_tokens.json"  # of a vocabulary that was not trained here
NUMBERS = "vocab.json"  # the ids of the pieces, where they are not those of tokenizer.json


def tokenizer_files(source: Tokenizer, target: Tokenizer) -> dict[str, bytes]:
    """The files of a run's tokenizers: their contents by their names."""
    made = {}
    if not source.ours:
        made[SPECIAL_TOKENS] = json_bytes(asdict(source.special), where=SPECIAL_TOKENS)
    if source.numbers is not None:
        made[NUMBERS] = json_bytes(source.numbers, where=NUMBERS)
    sides = {"": source} if source is target else {".source": source, ".target": target}
    return made | {f"tokenizer{side}.json": tokenizer.json().encode() for side, tokenizer in sides.items()}


def read_tokenizers(folder: Path) -> tuple[Tokenizer, Tokenizer] | None:
    """The source's and the target's tokenizer of a run (one object if they are the same); None if it has none yet."""
    joint, sides = folder / "tokenizer.json", [folder / f"tokenizer.{side}.json" for side in ("source", "target")]
    if not joint.is_file() and not all(side.is_file() for side in sides):
        return None
    special = numbers = None
    if (folder / SPECIAL_TOKENS).is_file():
        special = from_json(SpecialTokens, read_json(folder / SPECIAL_TOKENS), where=str(folder / SPECIAL_TOKENS))
    if (folder / NUMBERS).is_file():
        numbers = read_piece_ids(folder / NUMBERS)
    if joint.is_file():
        tokenizer = Tokenizer.load(joint, special, numbers)
        return tokenizer, tokenizer
    source, target = (Tokenizer.load(side, special, numbers) for side in sides)
    return source, target


def read_piece_ids(path: Path) -> dict[str, int]:
    """The ids of the pieces, in ascending order. Raises MissingError or StorageError."""
    found = read_json(path)
    if not isinstance(found, dict) or not all(type(one) is int and 0 <= one <= LARGEST for one in found.values()):
        raise StorageError("does not number its pieces", where=str(path), fix="get the whole folder from its source")
    return dict(sorted(found.items(), key=lambda item: item[1]))


def need_no_other(out: Path, *, besides: Collection[str] = ()) -> None:
    """Raises InputError where `out` holds something else than a run, so that none can begin there. `besides`: names
    that may be there."""
    there = out.resolve()  # also x/.. where x does not exist
    names = {path.name for path in files.children(there)} - {NAME, *besides}
    if not all(name.startswith(files.TEMPORARY) for name in names):
        raise InputError("the folder is not empty and holds no run", where=str(out), fix="choose another --out")
