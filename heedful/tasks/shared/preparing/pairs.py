"""Prepares pairs of texts that are too many to hold in memory: makes a folder of token ids, which `heed train` reads.

Rows are first spread over partitions, by the hash of their lower-cased source. In the order of these hashes, partition
after partition, the pairs are in random order; copies are neighbours; the first sources are those that
`heedful.data.text.corpus.read_parallel` holds out; and the first pairs behind them are a random sample, of which the
vocabulary is learnt. Each partition then becomes a shard of ids. The manifest, with the sha256 of every file, is
written last: a folder without one is not ready, and the same command continues where it was stopped.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from itertools import islice
from pathlib import Path
from typing import Any

from heedful.data.parts import hold_out
from heedful.data.stored import MOST_TOKENS, kind_of_ids
from heedful.data.text.corpus import alike, held_key, held_room, refuse_too_few
from heedful.data.text.layouts import Learnt
from heedful.data.text.pairs import Pairs, pairs_of
from heedful.data.text.reading import Read
from heedful.data.tokenizer import Tokenizer
from heedful.errors import InputError, counted
from heedful.run.learnt import BYTES, LEARNT, MOST, together
from heedful.run.prepared import FORMAT, SAMPLE, VALID, WorkPart
from heedful.run.task import Each
from heedful.run.tokenizers import read_tokenizers, tokenizer_files
from heedful.store import files
from heedful.tasks.shared.preparing.filling import READERS, BasePreparation, Filling, Shown, facts_of, written
from heedful.tasks.shared.preparing.opened import as_json_lines
from heedful.tasks.shared.preparing.partitions import VOCABULARY, Encoder, Partitions

PARTITION = 1 << 24  # bytes of text, about
LEARNT_FROM, SAMPLED = 100_000, 20_000  # pairs of which the vocabulary is learnt, and that are kept as texts
SPREAD, STORED = 1.2, 0.6  # bytes on the disk for each byte of text: of the partitions, and of the ids

Tokenizers = Callable[[Pairs], tuple[Tokenizer, Tokenizer]]


@dataclass(frozen=True)
class Preparation(BasePreparation):
    """What is prepared. `read` has the beginning of the data, and names the files; `options` is what the result depends
    on besides their contents; `tokenizers` learns those of both sides from a sample. `texts`: a key of the recipe for
    which the texts themselves are needed."""

    read: Read
    options: Mapping[str, Any]
    tokenizers: Tokenizers
    texts: str = ""

    @property
    def spread(self) -> float:
        return SPREAD + STORED

    @property
    def refused(self) -> str:
        if self.texts:
            return f"{self.texts} needs the texts, of which prepared data have but the tokens"
        read = self.read
        if not read.learnt or read.directions or read.weights or read.train.tags:
            return "only files of pairs of one direction can be prepared, without weights and tags"
        return ""

    @property
    def name(self) -> str:
        return self.read.train.name

    @property
    def learnt(self) -> Iterator[Path]:
        return (path for each in self.read.learnt for path in each.files)

    @property
    def pairs(self) -> int:
        """How many pairs there are, about."""
        first = self.read.train
        length = sum(len(text.encode()) for side in (first.source, first.target) for text in side)
        return max(len(first), round(self.size * len(first) / max(1, length)))

    def filling(self, out: Path, shown: Shown) -> "PairFilling":
        return PairFilling(out, self, shown)


class PairFilling(Filling):
    """Fills a folder with pairs."""

    def __init__(self, out: Path, preparation: Preparation, shown: Shown) -> None:
        self.preparation, self.read, self.options = preparation, preparation.read, dict(preparation.options)
        self.count = max(1, -(-preparation.size // PARTITION))  # of the partitions
        apart = {*map(str, self.read.apart)}
        inputs = {path: str(path) not in apart for path in dict.fromkeys(self.read.files)}
        columns = [each.taken[:4] for each in self.read.learnt]
        super().__init__(out, shown, inputs, [FORMAT, columns, self.count, self.options])

    @cached_property
    def partitions(self) -> Partitions:
        """The partitions, once the work on them has begun."""
        return Partitions(self.out.absolute(), self.count, files.read_json(self.begun)["readers"])

    def work(self, part: WorkPart, each: Each) -> list[int]:
        number, of = part
        self.begin({"readers": min(of if each is map else READERS, len(self.read.learnt))})
        self._read(number - 1, each)
        self._learn()
        encode = Encoder(self.partitions).encode if each is map else self.partitions.encode
        shards = range(number - 1, self.count, of)
        self.done("encoding", each(encode, shards), len(shards))
        return sorted({1 + shard % of for shard in range(self.count) if self.partitions.shard(shard) is None})

    def _read(self, first: int, each: Each) -> None:
        """Reads the files, those of the reader `first` before the others, which may be read by other parts by then."""
        readers = self.partitions.readers
        whole = max(1, SPREAD * self.preparation.size / readers)
        order = [(first + number) % readers for number in range(readers)]
        if each is map:
            for reader in order:
                self.partitions.read(
                    self.read.learnt, reader, lambda size: self.shown("reading", min(1.0, size / whole))
                )
        else:
            learnt = [Learnt(tuple(path.absolute() for path in given.files), given.taken) for given in self.read.learnt]
            self.done("reading", each(partial(self.partitions.read, learnt), order), readers)
        if not self.partitions.counts()["rows"]:
            raise InputError("every pair has an empty side", where=self.read.train.name, fix="give text on both sides")

    @cached_property
    def parts(self) -> tuple[dict[str, Pairs], dict[str, set[str]]]:
        """The validation data and the tests: those that were given, or else what `read_parallel` holds out; and the
        sources that are held out of the training data, for each part."""
        read = self.read
        if read.valid is not None:
            return {"valid": read.valid, **read.tests}, {}
        names = ["valid"] if read.tests else ["valid", "test"]
        room, groups, full = held_room(self.partitions.counts()["rows"]), dict[str, list[list[str]]](), False
        for number in range(self.count):
            for _, row in self.partitions.rows(number):
                groups.setdefault(held_key(row[0]), []).append(row)
            weights = {key: len(group) for key, group in groups.items()}
            last = number == self.count - 1
            if last:
                refuse_too_few(len(groups), len(names), where=read.train.name)
            if last or sum(weights.values()) > 2 * room * len(names):
                chosen = hold_out(weights, room, parts=len(names))
                full = all(sum(weights[key] for key in keys) == room for keys in chosen)
            if full:  # no source with a larger hash can be held out any more
                break
        held = {name: {*keys} for name, keys in zip(names, chosen, strict=True)}
        parts = dict(read.tests)
        for name, keys in held.items():
            held_rows = [tuple(row) for key, group in groups.items() if key in keys for row in group]
            parts[name] = pairs_of(read.train.name, enumerate(held_rows, 1))
        return {"valid": parts.pop("valid"), **parts}, held

    def _learn(self) -> None:
        """Learns the tokenizers from a sample, and writes them, and before them a smaller sample; unless that is
        done."""
        done = self.partitions.work / VOCABULARY
        with self.partitions.alone("vocabulary"):
            if done.is_file():
                return
            self.shown("learning the vocabulary", 0.0)
            parts, held_parts = self.parts
            held = set[str]().union(*held_parts.values())
            numbers = range(self.count)
            every = (pair for number in numbers for pair in self.partitions.pairs(number, held) if pair)
            sample = pairs_of(self.read.train.name, enumerate(islice(every, LEARNT_FROM), 1))
            source, target = self.preparation.tokenizers(sample)
            files.write_bytes(self.out / SAMPLE, as_json_lines(sample.rows(range(min(SAMPLED, len(sample))))))
            for name, data in tokenizer_files(source, target).items():
                files.write_bytes(self.out / name, data)
            sources = [sorted({*map(alike, part.source)}) for part in parts.values()]
            files.write_json(done, {"held": sorted(held), "sources": sources})

    def last(self) -> Mapping[str, Any]:
        partitions, numbers, parts = self.partitions, range(self.count), self.parts[0]
        shards = [*filter(None, map(partitions.shard, numbers))]
        learnt = reduce(together, (files.read_bytes(partitions.hashes(n), limit=BYTES * MOST) for n in numbers))
        tokenizers = read_tokenizers(self.out)
        assert tokenizers is not None
        tests = {name: f"test-{number}.jsonl" for number, name in enumerate([*parts][1:])}
        texts = {VALID: parts["valid"], **{file: parts[name] for name, file in tests.items()}}
        facts: dict[str, Any] = dict(file for shard in shards for file in shard["files"].items())
        facts |= written(self.out, [(LEARNT, learnt), *((name, as_json_lines(part)) for name, part in texts.items())])
        facts |= facts_of(self.out, [SAMPLE, *tokenizer_files(*tokenizers)])
        counts = partitions.counts() + sum((Counter(shard["counts"]) for shard in shards), Counter[str]())
        if not counts["pairs"]:
            raise InputError("no pair is left to train on", where=self.read.train.name, fix="give more pairs")
        taken = self.read.taken
        return {
            "format": FORMAT,
            "options": self.options,
            "name": self.read.train.name,
            "source": taken.source,
            "target": taken.target,
            "other_way": taken.other_way,
            "taken": [*self.read.told],
            "notes": [*self.read.notes, *self._notes(shards, parts, counts)],
            "counts": counts,
            "ids": kind_of_ids(max(tokenizer.size for tokenizer in tokenizers)),
            "shards": self.count,
            "tests": tests,
            "files": facts,
        }

    def _notes(
        self, shards: Sequence[Mapping[str, Any]], parts: Mapping[str, Pairs], counts: Mapping[str, int]
    ) -> Iterator[str]:
        name, most = self.read.train.name, f"{MOST_TOKENS:,} tokens"
        if empty := counts["empty"]:
            yield f"{name}: {empty:,} of {counts['rows'] + empty:,} pairs dropped, a side is empty"
        for side in self.parts[1]:
            what = "validation" if side == "valid" else "a test"
            yield f"{name}: {counted(len(parts[side]), 'pair')} held out for {what}"
        for number, part in enumerate(parts.values()):
            learnt = {text for shard in shards for text in shard["known"][number]}
            if seen := sum(alike(text) in learnt for text in part.source):
                yield f"{part.name}: {seen:,} of {len(part):,} sources are in the training text too"
        for key, what in (
            ("copies", "left out, they are copies of others"),
            ("too_long", f"with a target of more than {most} left out"),
            ("cut", f"with a source that is cut after {most}"),
            ("decomposed", "with accents apart from letters: composed (Unicode's NFC)"),
        ):
            if count := counts[key]:
                yield f"{name}: {counted(count, 'pair')} {what}"
