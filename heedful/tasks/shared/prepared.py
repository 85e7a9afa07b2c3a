"""Opens a folder of prepared pairs."""

import json
from pathlib import Path

from heedful.data.stored import Prepared, StoredPairs, opened
from heedful.data.text.corpus import Corpus
from heedful.data.text.pairs import Pairs, pairs_of
from heedful.errors import StorageError
from heedful.run.learnt import BYTES, LEARNT, MOST
from heedful.run.prepared import AGAIN, MANIFEST, SAMPLE, VALID, read_manifest, shard_files
from heedful.run.tokenizers import read_tokenizers
from heedful.store import files


def open_pairs(folder: Path) -> Corpus:
    """The prepared pairs; `train` is a sample of them. Raises MissingError, or StorageError where a file is not as it
    was written."""
    manifest = read_manifest(folder)
    for name, facts in manifest["files"].items():
        if files.size_and_sha256(folder / name) != (facts["size"], facts["sha256"]):
            raise StorageError("damaged, or changed since it was prepared", where=str(folder / name), fix=AGAIN)
    tokenizers = read_tokenizers(folder)
    if tokenizers is None:
        raise StorageError("the tokenizer is not there", where=str(folder), fix=AGAIN)
    shards = [
        opened(folder / ids, folder / lengths, manifest["ids"])
        for ids, lengths in map(shard_files, range(manifest["shards"]))
    ]
    name = manifest["name"]
    return Corpus(
        read_texts(folder / SAMPLE, name),
        read_texts(folder / VALID, name),
        {test: read_texts(folder / file, name) for test, file in manifest["tests"].items()},
        name,
        (),
        tuple(manifest["notes"]),
        source=manifest["source"],
        target=manifest["target"],
        other_way=manifest["other_way"],
        taken=tuple(manifest["taken"]),
        prepared=Prepared(
            StoredPairs(shards),
            tokenizers,
            files.size_and_sha256(folder / MANIFEST)[1],
            options=manifest["options"],
            inputs=manifest["inputs"],
            learnt=files.read_bytes(folder / LEARNT, limit=MOST * BYTES),
        ),
    )


def read_texts(path: Path, name: str) -> Pairs:
    """Pairs as `as_json_lines` writes them."""
    return pairs_of(name, enumerate(map(tuple, files.read_json_lines(path)), 1))


def as_json_lines(pairs: Pairs) -> bytes:
    """A source and its references on each line."""
    rows = ([source, *references] for source, references in zip(pairs.source, pairs.references, strict=True))
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows).encode()
