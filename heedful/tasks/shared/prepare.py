"""Prepares pairs of texts that are too many to hold in memory: makes a folder of token ids, which `heed train` reads.

Rows are first spread over partitions, by the hash of their lower-cased source. In the order of these hashes, partition
after partition, the pairs are in random order; copies are neighbours; the first sources are those that
`heedful.data.text.corpus.read_parallel` holds out; and the first pairs behind them are a random sample, of which the
vocabulary is learnt. Each partition then becomes a shard of ids. The manifest, with the sha256 of every file, is
written last: a folder without one is not ready, and the same command continues where it was stopped.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from hashlib import sha256
from itertools import compress, islice
from pathlib import Path
from typing import Any

from heedful.core.seeds import hashed
from heedful.data.large import PACKS
from heedful.data.lines import is_composed, packed_size
from heedful.data.parts import hold_out
from heedful.data.stored import MOST_TOKENS, as_bytes, kind_of_ids
from heedful.data.text.corpus import alike, held_key, held_room, refuse_too_few
from heedful.data.text.pairs import Pairs, pairs_of
from heedful.data.text.reading import Read
from heedful.data.tokenizer import Ids, Tokenizer
from heedful.errors import InputError, counted
from heedful.run.learnt import BYTES, LEARNT, MOST, fingerprints_of, together
from heedful.run.prepared import FORMAT, MANIFEST, SAMPLE, VALID, WORK, shard_files
from heedful.run.tokenizers import need_no_other, read_tokenizers, tokenizer_files
from heedful.store import files
from heedful.store.lock import held_alone
from heedful.tasks.shared.prepared import as_json_lines

PARTITION = 1 << 24  # bytes of text, about
AT_ONCE = 1 << 16  # rows between two records of how far reading is
LEARNT_FROM, SAMPLED = 100_000, 20_000  # pairs of which the vocabulary is learnt, and that are kept as texts
ENCODED = 8192  # pairs that are encoded together
SPREAD, STORED = 1.2, 0.6  # bytes on the disk for each byte of text: of the partitions, and of the ids
LEAST_SPACE, PER_MINUTE = 1 << 22, 2e8  # bytes on the disk for any data, and of text that are prepared in a minute

Shown = Callable[[str, float], object]  # is told what is done, and how much of it, of 1
Tokenizers = Callable[[Pairs], tuple[Tokenizer, Tokenizer]]


def no_news(what: str, share: float) -> None:
    """Shows no progress."""


@dataclass(frozen=True)
class Preparation:
    """What is prepared. `read` has the beginning of the data, and names the files; `options` is what the result depends
    on besides their contents; `tokenizers` learns those of both sides from a sample. `texts`: a key of the recipe for
    which the texts themselves are needed."""

    read: Read
    options: Mapping[str, Any]
    tokenizers: Tokenizers
    texts: str = ""

    @property
    def refused(self) -> str:
        """Why the data cannot be prepared; "" where they can."""
        if self.texts:
            return f"{self.texts} needs the texts, of which prepared data have but the tokens"
        read = self.read
        if not read.learnt or read.directions or read.weights or read.train.tags:
            return "only files of pairs of one direction can be prepared, without weights and tags"
        return ""

    @property
    def size(self) -> int:
        """The bytes of the training texts; about, where they are packed."""
        sizes = ((path, packed_size(path)) for each in self.read.learnt for path in each.files)
        return sum(size if path.is_file() and path.suffix.lower() != ".gz" else PACKS * size for path, size in sizes)

    @property
    def pairs(self) -> int:
        """How many pairs there are, about."""
        first = self.read.train
        length = sum(len(text.encode()) for side in (first.source, first.target) for text in side)
        return max(len(first), round(self.size * len(first) / max(1, length)))

    @property
    def disk(self) -> int:
        """The bytes that preparing takes on the disk, about; at its end a third of them remain."""
        return round((SPREAD + STORED) * self.size) + LEAST_SPACE

    def told(self, out: Path) -> str:
        """What it will take, in a line."""
        minutes = max(1, round(self.size / PER_MINUTE))
        size, disk = self.size / 1e6, self.disk / 1e6
        takes = f"about {counted(minutes, 'minute')} of a processor, and {disk:,.0f} MB of disk until it is done"
        return f"{size:,.0f} MB of text: prepared once, in {out}, which takes {takes}"

    def into(self, out: Path, shown: Shown = no_news) -> None:
        """Fills the folder `out`, or continues to fill it. Raises InputError, MissingError or StorageError."""
        if self.refused:
            raise InputError(self.refused, where=self.read.train.name, fix="give heed train the texts as they are")
        files.make_folder(out)
        with held_alone(out):
            _Filling(out, self, shown).fill()


class _Filling:
    """Fills a folder."""

    def __init__(self, out: Path, preparation: Preparation, shown: Shown) -> None:
        self.out, self.work, self.preparation, self.shown = out, out / WORK, preparation, shown
        self.read, self.options = preparation.read, dict(preparation.options)
        self.partitions, read = max(1, -(-preparation.size // PARTITION)), self.read
        apart = {*map(str, read.apart)}
        self.inputs = [
            {"path": str(path), "sha256": files.size_and_sha256(path)[1], "learnt": str(path) not in apart}
            for path in dict.fromkeys(read.files)
        ]
        columns = [each.taken[:4] for each in read.learnt]
        given = [FORMAT, [file["sha256"] for file in self.inputs], columns, self.partitions, self.options]
        self.key = sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()
        self.held: dict[str, set[str]] = {}  # the sources that are held out of the training data, for each part
        self.words = [dict[str, Ids](), dict[str, Ids]()]  # the ids of words on each side

    def fill(self) -> None:
        manifest, begun = self.out / MANIFEST, self.work / "key.json"
        if manifest.is_file():
            self._need_same(files.read_json(manifest)["key"])
            self._clean()
            return
        if begun.is_file():
            self._need_same(files.read_json(begun))
        else:
            need_no_other(self.out)
            files.need_space(self.out, self.preparation.disk, fix="free some, or choose another folder")
            files.make_folder(self.work)
            files.write_json(begun, self.key)
        spread = self._spread()
        parts = self._held_out(spread["rows"])
        known = read_tokenizers(self.out) if (self.work / LEARNT).is_file() else None
        self.tokenizers = known or self._learn()
        self.kind = kind_of_ids(max(tokenizer.size for tokenizer in self.tokenizers))
        if self.tokenizers[0] is self.tokenizers[1]:
            self.words[1] = self.words[0]
        sources = [{*map(alike, part.source)} for part in parts.values()]
        shards = [self._shard(number, sources) for number in range(self.partitions)]
        self._finish(shards, parts, spread)

    def _clean(self) -> None:
        """Removes the partitions, and what was left by those who were stopped."""
        for path in files.children(self.out):
            if path.name.startswith(files.TEMPORARY):
                files.remove_tree(path)

    def _need_same(self, key: object) -> None:
        if key != self.key:
            what = "holds other data, or the same that were prepared with other options"
            raise InputError(what, where=str(self.out), fix="choose another folder, or remove this one")

    def _spread(self) -> Counter[str]:
        """Spreads all rows over the partitions. Returns the numbers of rows, and of those with an empty side."""
        state = self.work / "spread.json"
        begun = files.read_json(state) if state.is_file() else {}
        sizes, counts = begun.get("sizes", [0] * self.partitions), Counter[str](begun.get("counts", {}))
        done = begun.get("done", 0)  # rows of the file at which it was stopped
        for number, size in enumerate(sizes):
            files.cut_off(self._partition(number), size)
        for number in range(begun.get("file", 0), len(self.read.learnt)):
            rows = islice(self.read.learnt[number].rows(), done, None)
            while some := [*islice(rows, AT_ONCE)]:
                done += len(some)
                sizes = self._append(some, sizes, counts)
                files.write_json(state, {"file": number, "done": done, "sizes": sizes, "counts": counts})
                self.shown("reading", min(1.0, sum(sizes) / max(1, SPREAD * self.preparation.size)))
            done = 0
            files.write_json(state, {"file": number + 1, "done": 0, "sizes": sizes, "counts": counts})
        if not counts["rows"]:
            raise InputError("every pair has an empty side", where=self.read.train.name, fix="give text on both sides")
        return counts

    def _append(self, rows: Sequence[tuple[int, tuple[str, ...]]], sizes: list[int], counts: Counter[str]) -> list[int]:
        """Appends rows to the partitions, and returns the sizes that these have then."""
        lines: list[list[str]] = [[] for _ in range(self.partitions)]
        for _, texts in rows:
            source, *references = map(str.strip, texts)
            if source and references[0]:
                counts["rows"] += 1
                bits = int.from_bytes(hashed(held_key(source))[:4], "big")
                row = json.dumps([source, *filter(None, references)], ensure_ascii=False)
                lines[bits * self.partitions >> 32].append(f"{row}\n")
            else:
                counts["empty"] += 1
        chunks = ["".join(part).encode() for part in lines]
        for number, chunk in enumerate(chunks):
            if chunk:
                files.append_bytes(self._partition(number), chunk)
        return [size + len(chunk) for size, chunk in zip(sizes, chunks, strict=True)]

    def _partition(self, number: int) -> Path:
        return self.work / f"{number:04}.jsonl"

    def _rows(self, number: int) -> list[tuple[bytes, list[str]]]:
        """The rows of a partition, each with the hash of its source, sorted by these and by their texts."""
        path = self._partition(number)
        rows = map(json.loads, files.read_bytes(path, limit=path.stat().st_size).splitlines())
        return sorted((hashed(held_key(row[0])), row) for row in rows)

    def _pairs(self, number: int) -> Iterator[tuple[str, str] | None]:
        """The pairs of a partition that are not held out, one for each reference; None for a copy of the one before."""
        held, before = set[str]().union(*self.held.values()), None
        rows = ((key, row) for key, row in self._rows(number) if held_key(row[0]) not in held)
        for pair in sorted((key, row[0], text) for key, row in rows for text in row[1:]):
            yield None if pair == before else pair[1:]
            before = pair

    def _held_out(self, rows: int) -> dict[str, Pairs]:
        """The validation data and the tests: those that were given, or else what `read_parallel` holds out."""
        read = self.read
        if read.valid is not None:
            return {"valid": read.valid, **read.tests}
        names = ["valid"] if read.tests else ["valid", "test"]
        room, groups, full = held_room(rows), dict[str, list[list[str]]](), False
        for number in range(self.partitions):
            for _, row in self._rows(number):
                groups.setdefault(held_key(row[0]), []).append(row)
            weights = {key: len(group) for key, group in groups.items()}
            last = number == self.partitions - 1
            if last:
                refuse_too_few(len(groups), len(names), where=read.train.name)
            if last or sum(weights.values()) > 2 * room * len(names):
                chosen = hold_out(weights, room, parts=len(names))
                full = all(sum(weights[key] for key in keys) == room for keys in chosen)
            if full:  # no source with a larger hash can be held out any more
                break
        self.held = {name: {*keys} for name, keys in zip(names, chosen, strict=True)}
        parts = dict(read.tests)
        for name, keys in self.held.items():
            held_rows = [tuple(row) for key, group in groups.items() if key in keys for row in group]
            parts[name] = pairs_of(read.train.name, enumerate(held_rows, 1))
        return {"valid": parts.pop("valid"), **parts}

    def _learn(self) -> tuple[Tokenizer, Tokenizer]:
        """Learns the tokenizers from a sample, and writes them, and before them a smaller sample."""
        self.shown("learning the vocabulary", 0.0)
        every = (pair for number in range(self.partitions) for pair in self._pairs(number) if pair)
        sample = pairs_of(self.read.train.name, enumerate(islice(every, LEARNT_FROM), 1))
        source, target = self.preparation.tokenizers(sample)
        files.write_bytes(self.out / SAMPLE, as_json_lines(sample.rows(range(min(SAMPLED, len(sample))))))
        for name, data in tokenizer_files(source, target).items():
            files.write_bytes(self.out / name, data)
        files.write_json(self.work / LEARNT, [*tokenizer_files(source, target)])
        return source, target

    def _shard(self, number: int, known: Sequence[set[str]]) -> dict[str, Any]:
        """Writes the ids of a partition, unless that is done. Returns the facts about its files, what was counted, and
        which of the sources `known` of each part it has."""
        done = self.work / f"{number:04}.json"
        if done.is_file():
            return dict(files.read_json(done))
        self.shown("encoding", number / self.partitions)
        every = [*self._pairs(number)]
        texts = [pair for pair in every if pair]
        pairs = [pair for at in range(0, len(texts), ENCODED) for pair in self._encoded(texts[at : at + ENCODED])]
        fits = [len(target) <= MOST_TOKENS for _, target in pairs]
        sources = {alike(text) for text, _ in texts}
        facts = {
            "files": self._written(zip(shard_files(number), as_bytes(compress(pairs, fits), self.kind), strict=True)),
            "counts": {
                "pairs": sum(fits),
                "copies": len(every) - len(texts),
                "too_long": len(fits) - sum(fits),
                "cut": sum(len(source) == MOST_TOKENS for source, _ in pairs),
                "decomposed": sum(not all(map(is_composed, pair)) for pair in texts),
            },
            "known": [sorted(part & sources) for part in known],
        }
        files.write_bytes(self.work / f"{number:04}.hashes", fingerprints_of(map(repr, compress(texts, fits))))
        files.write_json(done, facts)
        return facts

    def _encoded(self, texts: Sequence[tuple[str, str]]) -> Iterator[tuple[Ids, Ids]]:
        """The ids of pairs; of a source of very many only the first."""
        columns: list[list[Ids]] = []
        for tokenizer, words, side in zip(self.tokenizers, self.words, zip(*texts, strict=True), strict=True):
            columns.append(tokenizer.encode(side, words))
        return ((source[:MOST_TOKENS], target) for source, target in zip(*columns, strict=True))

    def _written(self, contents: Iterable[tuple[str, bytes]]) -> dict[str, Any]:
        """Writes files, and returns the facts about each."""
        return {
            name: {"size": len(data), "sha256": files.write_bytes(self.out / name, data)} for name, data in contents
        }

    def _finish(self, shards: Sequence[Mapping[str, Any]], parts: Mapping[str, Pairs], spread: Counter[str]) -> None:
        """Writes what is held out, and the manifest; then removes the partitions."""
        hashes = [self.work / f"{number:04}.hashes" for number in range(self.partitions)]
        learnt = reduce(together, (files.read_bytes(path, limit=BYTES * MOST) for path in hashes))
        tests = {name: f"test-{number}.jsonl" for number, name in enumerate([*parts][1:])}
        texts = {VALID: parts["valid"], **{file: parts[name] for name, file in tests.items()}}
        facts: dict[str, Any] = dict(file for shard in shards for file in shard["files"].items())
        facts |= self._written([(LEARNT, learnt), *((name, as_json_lines(part)) for name, part in texts.items())])
        for name in (SAMPLE, *tokenizer_files(*self.tokenizers)):
            size, digest = files.size_and_sha256(self.out / name)
            facts[name] = {"size": size, "sha256": digest}
        counts = spread + sum((Counter(shard["counts"]) for shard in shards), Counter[str]())
        if not counts["pairs"]:
            raise InputError("no pair is left to train on", where=self.read.train.name, fix="give more pairs")
        taken = self.read.taken
        manifest = {
            "format": FORMAT,
            "key": self.key,
            "options": self.options,
            "inputs": self.inputs,
            "name": self.read.train.name,
            "source": taken.source,
            "target": taken.target,
            "other_way": taken.other_way,
            "taken": [*self.read.told],
            "notes": [*self.read.notes, *self._notes(shards, parts, counts)],
            "counts": counts,
            "ids": self.kind,
            "shards": self.partitions,
            "tests": tests,
            "files": facts,
        }
        files.write_json(self.out / MANIFEST, manifest)
        self._clean()

    def _notes(
        self, shards: Sequence[Mapping[str, Any]], parts: Mapping[str, Pairs], counts: Mapping[str, int]
    ) -> Iterator[str]:
        name, most = self.read.train.name, f"{MOST_TOKENS:,} tokens"
        if empty := counts["empty"]:
            yield f"{name}: {empty:,} of {counts['rows'] + empty:,} pairs dropped, a side is empty"
        for side in self.held:
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
