"""Opens folders of prepared data."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from heedful.data.parts import Parts
from heedful.data.stored import Prepared, Stored, StoredPairs, StoredTexts, opened
from heedful.data.text.corpus import Corpus
from heedful.data.text.documents import Documents
from heedful.data.text.pairs import Pairs, pairs_of
from heedful.data.tokenizer import Tokenizer
from heedful.errors import InputError, StorageError
from heedful.run.learnt import BYTES, LEARNT, MOST
from heedful.run.prepared import (
    AGAIN,
    MANIFEST,
    SAMPLE,
    TEXT_BEGINS,
    TEXT_IDS,
    VALID,
    prepared_for,
    read_manifest,
    shard_files,
)
from heedful.store import files
from heedful.tasks.shared.preparing.filling import tokenizers_in

PAIRS, TEXT = "pairs", "text"  # what a folder is of; none is said of pairs


def open_pairs(folder: Path) -> Corpus:
    """The prepared pairs; `train` is a sample of them. Raises MissingError, InputError for other data, or StorageError
    where a file is not as it was written."""
    manifest, tokenizers = checked(folder, PAIRS)
    shards = [
        opened(folder / ids, folder / lengths, manifest["ids"])
        for ids, lengths in map(shard_files, range(manifest["shards"]))
    ]
    name = manifest["name"]
    return Corpus(
        read_pairs(folder / SAMPLE, name),
        read_pairs(folder / VALID, name),
        {test: read_pairs(folder / file, name) for test, file in manifest["tests"].items()},
        name,
        (),
        tuple(manifest["notes"]),
        source=manifest["source"],
        target=manifest["target"],
        other_way=manifest["other_way"],
        taken=tuple(manifest["taken"]),
        prepared=prepared_of(folder, manifest, StoredPairs(shards), tokenizers),
    )


def open_texts(folder: Path) -> Documents:
    """The prepared documents; `train` is a sample of them. Raises as `open_pairs`."""
    manifest, tokenizers = checked(folder, TEXT)
    ids = np.memmap(folder / TEXT_IDS, manifest["ids"], "r").view(np.ndarray)
    stored = StoredTexts(ids, np.fromfile(folder / TEXT_BEGINS, "<u8").astype(np.int64), manifest["bos"])
    return Documents(
        read_texts(folder / SAMPLE),
        read_texts(folder / VALID),
        {test: read_texts(folder / file) for test, file in manifest["tests"].items()},
        manifest["name"],
        (),
        tuple(manifest["notes"]),
        prepared=prepared_of(folder, manifest, stored, tokenizers),
    )


def prepared_documents(path: str, run: Path | None) -> Documents | None:
    """Those in the folder that the `path` of the data names, or that were prepared for the run; None if there are
    none. Raises as `open_pairs`."""
    folder = prepared_for(path, run)
    return None if folder is None else open_texts(folder)


def prepared_facts(prepared: Prepared[Any], corpus: Parts[Any], unit: str) -> dict[str, object]:
    """What data.json says of the files, and the number of examples in each part."""
    held = {"valid": len(corpus.valid)} | {name: len(part) for name, part in corpus.tests.items()}
    return {"files": prepared.inputs, unit: {"train": len(prepared.stored)} | held}


def checked(folder: Path, kind: str) -> tuple[dict[str, Any], tuple[Tokenizer, Tokenizer]]:
    """The manifest of data of this kind, all files of which are as they were written, and the tokenizers."""
    manifest = read_manifest(folder)
    if (there := manifest.get("of", PAIRS)) != kind:
        what = f"it holds prepared {there}, and {kind} {'is' if kind == TEXT else 'are'} needed"
        raise InputError(what, where=str(folder), fix="prepare the data with --task, the task that is trained")
    for name, facts in manifest["files"].items():
        if files.size_and_sha256(folder / name) != (facts["size"], facts["sha256"]):
            raise StorageError("damaged, or changed since it was prepared", where=str(folder / name), fix=AGAIN)
    return manifest, tokenizers_in(folder)


def prepared_of(
    folder: Path, manifest: dict[str, Any], stored: Stored, tokenizers: tuple[Tokenizer, Tokenizer]
) -> Prepared[Stored]:
    """What is opened, with what its folder says of it."""
    return Prepared(
        stored,
        tokenizers,
        files.size_and_sha256(folder / MANIFEST)[1],
        options=manifest["options"],
        inputs=manifest["inputs"],
        learnt=files.read_bytes(folder / LEARNT, limit=MOST * BYTES),
    )


def read_pairs(path: Path, name: str) -> Pairs:
    """Pairs as `as_json_lines` writes them."""
    return pairs_of(name, enumerate(map(tuple, files.read_json_lines(path)), 1))


def as_json_lines(pairs: Pairs) -> bytes:
    """A source and its references on each line."""
    rows = ([source, *references] for source, references in zip(pairs.source, pairs.references, strict=True))
    return as_text_lines(rows)


def read_texts(path: Path) -> list[str]:
    """Texts as `as_text_lines` writes them."""
    return files.read_json_lines(path)


def as_text_lines(texts: Iterable[object]) -> bytes:
    """Each text, or several, as JSON on a line."""
    return "".join(f"{json.dumps(text, ensure_ascii=False)}\n" for text in texts).encode()
