"""The partitions in which pairs are prepared, and the two pieces of work on them that any process does, on any machine
with the same file system: reading some of the files, and encoding a partition.

A piece is known by its number, and is done once: whoever begins it has its lock, and whoever comes later waits, and
finds it done. What was killed releases the lock; whoever then begins the piece continues it.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import compress, islice
from pathlib import Path
from typing import Any

from heedful.core.seeds import hashed
from heedful.data.lines import is_composed
from heedful.data.stored import MOST_TOKENS, as_bytes, kind_of_ids
from heedful.data.text.corpus import alike, held_key
from heedful.data.text.layouts import Learnt
from heedful.data.tokenizer import Ids
from heedful.errors import StorageError
from heedful.run.learnt import fingerprints_of
from heedful.run.prepared import AGAIN, WORK, shard_files
from heedful.store import files
from heedful.store.lock import one_after_another
from heedful.tasks.shared.preparing.filling import need_seen, tokenizers_in, written

AT_ONCE = 1 << 16  # rows between two records of how far reading is
ENCODED = 8192  # pairs that are encoded together
VOCABULARY = "vocabulary.json"  # which texts are held out; written once the tokenizers are there


@dataclass(frozen=True)
class Partitions:
    """The rows of the data, below the folder `out`: in `count` partitions, to each of which each of the `readers`
    appends the rows of its files."""

    out: Path
    count: int
    readers: int

    @property
    def work(self) -> Path:
        return self.out / WORK

    def alone(self, piece: str) -> AbstractContextManager[None]:
        """Waits until no other process is at this piece of the work."""
        need_seen(self.out)
        return one_after_another(self.work / f"{piece}.lock")

    def read(self, learnt: Sequence[Learnt], reader: int, shown: Callable[[int], object] = lambda size: None) -> None:
        """Spreads the rows of a reader's files over the partitions. `shown` is told the bytes that are there. Raises
        InputError, MissingError or StorageError."""
        with self.alone(f"read-{reader}"):
            share, begun = learnt[reader :: self.readers], self._read_by(reader)
            if begun.get("file", 0) == len(share):
                return
            sizes, counts = begun.get("sizes", [0] * self.count), Counter[str](begun.get("counts", {}))
            done = begun.get("done", 0)  # rows of the file at which it was stopped
            for number, size in enumerate(sizes):
                files.cut_off(self._path(number, reader), size)
            for number in range(begun.get("file", 0), len(share)):
                rows = islice(share[number].rows(), done, None)
                while some := [*islice(rows, AT_ONCE)]:
                    done += len(some)
                    sizes = self._append(reader, some, sizes, counts)
                    state = {"file": number, "done": done, "sizes": sizes, "counts": counts}
                    files.write_json(self._state(reader), state)
                    shown(sum(sizes))
                done = 0
                files.write_json(self._state(reader), {"file": number + 1, "done": 0, "sizes": sizes, "counts": counts})

    def _append(
        self, reader: int, rows: Sequence[tuple[int, tuple[str, ...]]], sizes: list[int], counts: Counter[str]
    ) -> list[int]:
        """Appends rows to the partitions, and returns the sizes that these have then."""
        lines: list[list[str]] = [[] for _ in range(self.count)]
        for _, texts in rows:
            source, *references = map(str.strip, texts)
            if source and references[0]:
                counts["rows"] += 1
                bits = int.from_bytes(hashed(held_key(source))[:4], "big")
                row = json.dumps([source, *filter(None, references)], ensure_ascii=False)
                lines[bits * self.count >> 32].append(f"{row}\n")
            else:
                counts["empty"] += 1
        chunks = ["".join(part).encode() for part in lines]
        for number, chunk in enumerate(chunks):
            if chunk:
                files.append_bytes(self._path(number, reader), chunk)
        return [size + len(chunk) for size, chunk in zip(sizes, chunks, strict=True)]

    def _path(self, number: int, reader: int) -> Path:
        return self.work / f"{number:04}-{reader}.jsonl"

    def _state(self, reader: int) -> Path:
        return self.work / f"read-{reader}.json"

    def _read_by(self, reader: int) -> dict[str, Any]:
        """How far a reader is."""
        path = self._state(reader)
        return dict(files.read_json(path)) if path.is_file() else {}

    def counts(self) -> Counter[str]:
        """The numbers of rows, and of those with an empty side."""
        return sum((Counter(self._read_by(reader)["counts"]) for reader in range(self.readers)), Counter[str]())

    def rows(self, number: int) -> list[tuple[bytes, list[str]]]:
        """The rows of a partition, each with the hash of its source, sorted by these and by their texts. Raises
        StorageError where a file is not as it was written."""
        rows: list[list[str]] = []
        for reader in range(self.readers):
            path, size = self._path(number, reader), self._read_by(reader)["sizes"][number]
            there = path.stat().st_size if path.is_file() else 0
            if there != size:
                what = f"{there:,} bytes, {size:,} were written: perhaps locks do not hold between machines here"
                raise StorageError(what, where=str(path), fix=AGAIN)
            rows += map(json.loads, files.read_bytes(path, limit=size).splitlines() if size else ())
        return sorted((hashed(held_key(row[0])), row) for row in rows)

    def pairs(self, number: int, held: set[str]) -> Iterator[tuple[str, str] | None]:
        """The pairs of a partition that are not held out, one for each reference; None for a copy of the one before."""
        before = None
        rows = ((key, row) for key, row in self.rows(number) if held_key(row[0]) not in held)
        for pair in sorted((key, row[0], text) for key, row in rows for text in row[1:]):
            yield None if pair == before else pair[1:]
            before = pair

    def shard(self, number: int) -> dict[str, Any] | None:
        """What is known of a partition that is encoded: the facts about its files, what was counted, and which sources
        of what is held out it has; None where it is not yet."""
        path = self._done(number)
        return dict(files.read_json(path)) if path.is_file() else None

    def _done(self, number: int) -> Path:
        return self.work / f"{number:04}.done.json"

    def hashes(self, number: int) -> Path:
        """Where the fingerprints of an encoded partition are."""
        return self.work / f"{number:04}.hashes"

    def encode(self, number: int) -> None:
        """Writes the ids of a partition, unless that is done. Raises StorageError."""
        Encoder(self).encode(number)


class Encoder:
    """Encodes partitions, and keeps the ids of words from one for the next."""

    def __init__(self, partitions: Partitions) -> None:
        self.partitions = partitions
        need_seen(partitions.out)
        path = partitions.work / VOCABULARY
        facts = files.read_json(path, limit=path.stat().st_size)
        self.held, self.sources = {*facts["held"]}, [{*sources} for sources in facts["sources"]]
        self.tokenizers = tokenizers = tokenizers_in(partitions.out)
        self.kind = kind_of_ids(max(tokenizer.size for tokenizer in tokenizers))
        self.words = [dict[str, Ids](), dict[str, Ids]()]  # the ids of words on each side
        if tokenizers[0] is tokenizers[1]:
            self.words[1] = self.words[0]

    def encode(self, number: int) -> None:
        """Writes the ids of a partition, unless that is done. Raises StorageError."""
        with self.partitions.alone(f"{number:04}"):
            if self.partitions.shard(number) is None:
                self._encode(number)

    def _encode(self, number: int) -> None:
        every = [*self.partitions.pairs(number, self.held)]
        texts = [pair for pair in every if pair]
        pairs = [pair for at in range(0, len(texts), ENCODED) for pair in self._encoded(texts[at : at + ENCODED])]
        fits = [len(target) <= MOST_TOKENS for _, target in pairs]
        sources = {alike(text) for text, _ in texts}
        shard = zip(shard_files(number), as_bytes(compress(pairs, fits), self.kind), strict=True)
        facts = {
            "files": written(self.partitions.out, shard),
            "counts": {
                "pairs": sum(fits),
                "copies": len(every) - len(texts),
                "too_long": len(fits) - sum(fits),
                "cut": sum(len(source) == MOST_TOKENS for source, _ in pairs),
                "decomposed": sum(not all(map(is_composed, pair)) for pair in texts),
            },
            "known": [sorted(part & sources) for part in self.sources],
        }
        fingerprints = fingerprints_of(map(repr, compress(texts, fits)))
        files.write_bytes(self.partitions.hashes(number), fingerprints)
        files.write_json(self.partitions._done(number), facts)

    def _encoded(self, texts: Sequence[tuple[str, str]]) -> Iterator[tuple[Ids, Ids]]:
        """The ids of pairs; of a source of very many only the first."""
        columns: list[list[Ids]] = []
        for tokenizer, words, side in zip(self.tokenizers, self.words, zip(*texts, strict=True), strict=True):
            columns.append(tokenizer.encode(side, words))
        return ((source[:MOST_TOKENS], target) for source, target in zip(*columns, strict=True))
