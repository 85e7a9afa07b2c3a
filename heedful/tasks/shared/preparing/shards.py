"""Shared by what is prepared in its own order: shards of neighbours, each encoded by whoever comes first."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from heedful.data.stored import kind_of_ids
from heedful.data.tokenizer import Tokenizer
from heedful.run.learnt import BYTES, MOST, together
from heedful.run.prepared import WORK, WorkPart
from heedful.run.task import Each
from heedful.run.tokenizers import tokenizer_files
from heedful.store import files
from heedful.store.lock import one_after_another
from heedful.tasks.shared.preparing.filling import READERS, Filling, Shown, need_seen, no_news, tokenizers_in

LEARNT_FROM, SAMPLED = 1 << 24, 1 << 20  # characters of which the vocabulary is learnt, and that are kept as texts
OUTLINE, VOCABULARY = "outline", "vocabulary"  # what is held out; and the tokenizer, which is there

Example = TypeVar("Example")


@dataclass(frozen=True)
class BaseShards(ABC, Generic[Example]):
    """The examples that are learnt, in shards of neighbours, below the folder `out`."""

    out: Path

    @abstractmethod
    def shards(self) -> Iterator[Iterator[Example]]:
        """The shards, each of which is read to its end before the next. Raises InputError or MissingError."""

    @abstractmethod
    def encoder(self, tokenizer: Tokenizer) -> Callable[[int, Iterator[Example]], Mapping[str, int]]:
        """What writes the files of a shard, and returns its counts."""

    def file(self, number: int, kind: str) -> Path:
        return self.out / WORK / f"{number:04}.{kind}"

    def done(self, number: int) -> Path:
        """Where the counts of an encoded shard are."""
        return self.file(number, "done.json")

    def encode(self, first: int, *, of: int, count: int, shown: Shown = no_news) -> None:
        """Encodes each shard `first`, `first` + `of` and so on, of `count`, unless that is done. Raises InputError,
        MissingError or StorageError."""
        need_seen(self.out)
        encode = self.encoder(tokenizers_in(self.out)[0])
        for number, examples in enumerate(self.shards()):
            if number % of == first and not self.done(number).is_file():
                with one_after_another(self.file(number, "lock")):
                    if not self.done(number).is_file():
                        files.write_json(self.done(number), encode(number, examples))
            for _ in examples:  # what is left of it
                pass
            shown("encoding", (number + 1) / count)


class ShardedFilling(Filling):
    """Fills a folder shard by shard."""

    @abstractmethod
    def outline(self) -> Mapping[str, Any]:
        """Writes what is held out, and returns what is known of the rest."""

    @abstractmethod
    def learn(self) -> int:
        """Writes a sample, and the tokenizer; returns the number of shards."""

    @abstractmethod
    def examples(self) -> BaseShards[Any]:
        """What is learnt, once it is outlined."""

    @cached_property
    def shards(self) -> BaseShards[Any]:
        return self.examples()

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What `outline` returned."""
        return dict(files.read_json(self._fact(OUTLINE)))

    @cached_property
    def count(self) -> int:
        """How many shards there are."""
        return int(files.read_json(self._fact(VOCABULARY))["shards"])

    def work(self, part: WorkPart, each: Each) -> list[int]:
        self.begin({})
        self._once(OUTLINE, "reading", self.outline)
        self._once(VOCABULARY, "learning the vocabulary", lambda: {"shards": self.learn()})
        if each is map:
            self.shards.encode(part.number - 1, of=part.of, count=self.count, shown=self.shown)
        else:
            workers = min(READERS, self.count)
            encode = partial(self.shards.encode, of=workers, count=self.count)
            self.done("encoding", each(encode, range(workers)), workers)
        missing = (number for number in range(self.count) if not self.shards.done(number).is_file())
        return sorted({1 + number % part.of for number in missing})

    def joined(self, kinds: Mapping[str, str]) -> tuple[np.ndarray, Counter[str], bytes]:
        """Joins the files of all shards, of each of these kinds to one of this name, and returns where the examples
        begin, the counts, and the fingerprints of the examples."""
        begins, counts, hashes = [np.zeros(0, np.uint64)], Counter[str](), [b""]
        for name in kinds.values():
            files.cut_off(self.out / name, 0)
        for number in range(self.count):
            begins.append(np.fromfile(self.shards.file(number, "begins"), "<u8") + np.uint64(counts["tokens"]))
            counts += Counter(files.read_json(self.shards.done(number)))
            for kind, name in kinds.items():
                files.append_file(self.out / name, self.shards.file(number, kind))
            hashes.append(files.read_bytes(self.shards.file(number, "hashes"), limit=BYTES * MOST))
        return np.concatenate(begins), counts, reduce(together, hashes)

    def write_tokenizer(self, tokenizer: Tokenizer) -> None:
        for name, data in tokenizer_files(tokenizer, tokenizer).items():
            files.write_bytes(self.out / name, data)

    def _fact(self, name: str) -> Path:
        return self.out / WORK / f"{name}.json"

    def _once(self, name: str, doing: str, act: Callable[[], Mapping[str, Any]]) -> None:
        """Has this done by one process, and keeps what it returns."""
        path = self._fact(name)
        with one_after_another(path.with_suffix(".lock")):
            if not path.is_file():
                self.shown(doing, 0.0)
                files.write_json(path, act())


class ShardFiles:
    """The files of a shard while it is written: ids, and perhaps which of them are learnt."""

    def __init__(self, shards: BaseShards[Any], number: int, *kinds: str) -> None:
        self.shards, self.number, self.paths = shards, number, {kind: shards.file(number, kind) for kind in kinds}
        self.begins, self.hashes = list[int](), b""
        for path in self.paths.values():
            files.cut_off(path, 0)

    def append(self, kind: str, rows: Iterator[np.ndarray]) -> None:
        files.append_bytes(self.paths[kind], *(row.tobytes() for row in rows))

    def close(self) -> None:
        files.write_bytes(self.shards.file(self.number, "begins"), np.array(self.begins, "<u8").tobytes())
        files.write_bytes(self.shards.file(self.number, "hashes"), self.hashes)


def ids_of(rows: Iterator[list[int]], tokenizer: Tokenizer) -> Iterator[np.ndarray]:
    """Rows of ids as they are stored."""
    kind = kind_of_ids(tokenizer.size)
    return (np.array(row, kind) for row in rows)
