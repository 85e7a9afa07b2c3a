"""Prepares running text that is too large for the memory: makes a folder of token ids, which `heed train` maps.

Nothing is put into another order: a training reads the text as if it were in memory. Its end is held out, as
`heedful.data.text.documents.read_documents` does, a sample of its parts teaches the vocabulary, and then each shard of
consecutive parts is encoded, by whoever comes first.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial, reduce
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from heedful.data.lines import BETWEEN, PART
from heedful.data.parts import told_of_shared
from heedful.data.stored import Prepared, StoredTexts, kind_of_ids
from heedful.data.text.noise import SENTENCE_ENDS, sentences_of
from heedful.data.text.streamed import Outline, Running, TextPart, in_text_parts, running_text
from heedful.data.tokenizer import Ids, Tokenizer
from heedful.errors import InputError, MissingError, StorageError
from heedful.run.learnt import BYTES, LEARNT, MOST, fingerprints_of, known_among, together
from heedful.run.prepared import AGAIN, FORMAT, SAMPLE, TEXT_BEGINS, TEXT_IDS, VALID, WORK, WorkPart
from heedful.run.recipe import DistilledRecipe
from heedful.run.task import Each
from heedful.run.tokenizers import read_tokenizers, tokenizer_files
from heedful.store import files
from heedful.store.lock import one_after_another
from heedful.tasks.shared.preparing.filling import (
    READERS,
    BasePreparation,
    Filling,
    Shown,
    facts_of,
    no_news,
    written,
)
from heedful.tasks.shared.preparing.opened import TEXT, as_text_lines, read_texts
from heedful.tasks.shared.sections import TextRecipe

SHARD = 1 << 26  # characters, about
LEARNT_FROM, SAMPLED = 1 << 24, 1 << 20  # characters of which the vocabulary is learnt, and that are kept as texts
# Bytes on the disk for each byte of text, until it is done; of tokenizers with a token for each letter, and of others.
SPELT, SPACE = 4.2, 1.6
WORDS = 1 << 17  # different ones whose ids are kept
LONGEST = 1 << 25  # characters of a document that is read as a whole
VOCABULARY = "vocabulary.json"  # written once the tokenizer is there

Learns = Callable[[Iterable[str]], Tokenizer]


@dataclass(frozen=True)
class TextPreparation(BasePreparation):
    """What is prepared. `options` is what the result depends on besides the files; `tokenizer` learns it from texts,
    unless it is `known`."""

    running: Running
    options: Mapping[str, Any]
    tokenizer: Learns
    known: Tokenizer | None = None

    @property
    def spread(self) -> float:
        return SPELT if self.known is None and self.options["tokenizer"] in ("chars", "bytes") else SPACE

    @property
    def refused(self) -> str:
        whole = self.known is not None and not self.known.ours and self.options[FORM] != "sentences"
        if whole and any(path.suffix == ".txt" and path.stat().st_size > LONGEST for path in self.learnt):
            return "the vocabulary of the model that it starts from reads a document as a whole, and this is one"
        return ""

    @property
    def name(self) -> str:
        return self.running.name

    @property
    def learnt(self) -> Iterable[Path]:
        return self.running.learnt

    def filling(self, out: Path, shown: Shown) -> "TextFilling":
        return TextFilling(out, self, shown)


@dataclass(frozen=True)
class Shards:
    """The text, in shards of consecutive parts, below the folder `out`."""

    out: Path
    running: Running
    outline: Outline
    whole: bool  # whether the vocabulary reads each document as a whole
    sentences: bool  # whether each sentence is encoded alone, and stands apart from that before it

    @property
    def work(self) -> Path:
        return self.out / WORK

    def parts(self, between: re.Pattern[str] = BETWEEN) -> Iterator[TextPart]:
        """What is learnt. Raises InputError or MissingError."""
        return in_text_parts(self.running.learnt_pieces(self.outline), whole=self.whole, between=between)

    def shards(self) -> Iterator[Iterator[TextPart]]:
        """The same, in shards, each of which is read to its end before the next."""
        parts = self.parts(SENTENCE_ENDS if self.sentences else BETWEEN)
        for first in parts:
            yield _some(first, parts, SHARD)

    def done(self, number: int) -> Path:
        """Where the facts about an encoded shard are."""
        return self.work / f"{number:04}.done.json"

    def file(self, number: int, kind: str) -> Path:
        return self.work / f"{number:04}.{kind}"

    def encode(self, first: int, *, of: int, shown: Shown = no_news) -> None:
        """Writes the ids of each shard `first`, `first` + `of` and so on, unless that is done. Raises InputError,
        MissingError or StorageError."""
        if not self.work.is_dir():
            fix = "all machines must have the same file system, under the same path"
            raise MissingError("what is prepared there is not seen here", where=str(self.out), fix=fix)
        tokenizers = read_tokenizers(self.out)
        if tokenizers is None:
            raise StorageError("the tokenizer is not there", where=str(self.out), fix=AGAIN)
        words, read = dict[str, Ids](), 0
        for number, parts in enumerate(self.shards()):
            if number % of == first and not self.done(number).is_file():
                with one_after_another(self.file(number, "lock")):
                    if not self.done(number).is_file():
                        read += self._encode(number, parts, tokenizers[0], words)
            read += sum(len(part.text) for part in parts)  # what is left of it
            shown("encoding", min(1.0, read / max(1, self.outline.characters)))

    def _encode(self, number: int, parts: Iterator[TextPart], tokenizer: Tokenizer, words: dict[str, Ids]) -> int:
        """Returns the number of characters."""
        kind, begins, tokens, characters = kind_of_ids(tokenizer.size), list[int](), 0, 0
        ids, hashes = self.file(number, "ids"), list[bytes]()
        files.cut_off(ids, 0)
        while some := [*_next(parts, 4 * PART)]:
            chunks = []
            if len(words) > WORDS:
                words.clear()
            for part, own in zip(some, self._encoded(some, tokenizer, words), strict=True):
                if part.begins:
                    begins.append(tokens + 1)
                if part.begins or self.sentences:
                    own = [tokenizer.bos, *own]
                tokens += len(own)
                chunks.append(np.array(own, kind).tobytes())
            characters += sum(len(part.text) for part in some)
            hashes.append(fingerprints_of(repr(part.text) for part in some if part.begins and part.ends))
            files.append_bytes(ids, *chunks)
        files.write_bytes(self.file(number, "begins"), np.array(begins, "<u8").tobytes())
        files.write_bytes(self.file(number, "hashes"), reduce(together, hashes, b""))
        files.write_json(self.done(number), {"tokens": tokens, "documents": len(begins), "characters": characters})
        return characters

    def _encoded(self, parts: Sequence[TextPart], tokenizer: Tokenizer, words: dict[str, Ids]) -> Iterator[Ids]:
        """The ids of each part; of one with sentences, with a token between them."""
        if not self.sentences:
            yield from tokenizer.encode_whole([part.text for part in parts], words)
            return
        split = [sentences_of(part.text) for part in parts]
        encoded = iter(tokenizer.encode([sentence for own in split for sentence in own], words))
        for own in split:
            yield [token for ids in islice(encoded, len(own)) for token in (tokenizer.bos, *ids)][1:]


class TextFilling(Filling):
    """Fills a folder with running text."""

    def __init__(self, out: Path, preparation: TextPreparation, shown: Shown) -> None:
        self.preparation, self.running = preparation, preparation.running
        inputs = {path: path in self.running.learnt for path in self.running.files}
        super().__init__(out, shown, inputs, [FORMAT, TEXT, SHARD, dict(preparation.options)])

    def work(self, part: WorkPart, each: Each) -> list[int]:
        self.begin({})
        self._outline()
        self._learn()
        if each is map:
            self.shards.encode(part.number - 1, of=part.of, shown=self.shown)
        else:
            count = min(READERS, self.count)
            self.done("encoding", each(partial(self.shards.encode, of=count), range(count)), count)
        missing = (number for number in range(self.count) if not self.shards.done(number).is_file())
        return sorted({1 + number % part.of for number in missing})

    def _outline(self) -> None:
        """Writes what is held out, unless that is done."""
        path = self.out / WORK / "outline.json"
        with one_after_another(path.with_suffix(".lock")):
            if path.is_file():
                return
            self.shown("reading", 0.0)
            outline, parts = self.running.outlined()
            tests = {name: f"test-{number}.jsonl" for number, name in enumerate(parts.tests)}
            for file, texts in {VALID: parts.valid, **{tests[name]: own for name, own in parts.tests.items()}}.items():
                files.write_bytes(self.out / file, as_text_lines(texts))
            files.write_json(path, {"outline": asdict(outline), "tests": tests, "notes": parts.notes})

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What is known of the text once it is outlined."""
        return dict(files.read_json(self.out / WORK / "outline.json"))

    @cached_property
    def shards(self) -> Shards:
        known = self.preparation.known
        running = self.running.absolute()
        sentences = self.preparation.options[FORM] == "sentences"
        whole = known is not None and not known.ours and not sentences
        outline = Outline(**self.facts["outline"])
        return Shards(self.out.absolute(), running, outline, whole=whole, sentences=sentences)

    @cached_property
    def count(self) -> int:
        """How many shards there are."""
        return int(files.read_json(self.out / WORK / VOCABULARY)["shards"])

    def _learn(self) -> None:
        """Learns the tokenizer from a sample, and writes it, and before it a smaller sample; unless that is done."""
        path = self.out / WORK / VOCABULARY
        with one_after_another(path.with_suffix(".lock")):
            if path.is_file():
                return
            self.shown("learning the vocabulary", 0.0)
            shards = self.shards
            first = _documents(_next(shards.parts(), SAMPLED))
            files.write_bytes(self.out / SAMPLE, as_text_lines(first))
            tokenizer = self.preparation.known or self.preparation.tokenizer(self._sample())
            for name, data in tokenizer_files(tokenizer, tokenizer).items():
                files.write_bytes(self.out / name, data)
            files.write_json(path, {"shards": sum(1 for parts in shards.shards() if [*parts])})

    def _sample(self) -> Iterator[str]:
        """All that is learnt, or parts of it that are evenly spread; documents as they are where they fit."""
        size = self.shards.outline.characters
        if size <= LEARNT_FROM:
            return _documents(self.shards.parts())
        return (part.text for part in islice(self.shards.parts(), 0, None, -(-size // LEARNT_FROM)))

    def last(self) -> Mapping[str, Any]:
        tokenizers = read_tokenizers(self.out)
        assert tokenizers is not None
        tokenizer, shards, numbers = tokenizers[0], self.shards, range(self.count)
        kind, counts = kind_of_ids(tokenizer.size), Counter[str]()
        begins, hashes = list[np.ndarray](), list[bytes]()
        ids = self.out / TEXT_IDS
        files.cut_off(ids, 0)
        for number in numbers:
            begins.append(np.fromfile(shards.file(number, "begins"), "<u8") + np.uint64(counts["tokens"]))
            counts += Counter(files.read_json(shards.done(number)))
            files.append_file(ids, shards.file(number, "ids"))
            hashes.append(files.read_bytes(shards.file(number, "hashes"), limit=BYTES * MOST))
        files.append_bytes(ids, np.array([tokenizer.bos], kind).tobytes())
        learnt, where = reduce(together, hashes, b""), np.concatenate(begins).astype("<u8").tobytes()
        tests = self.facts["tests"]
        held = {name: read_texts(self.out / file) for name, file in {"valid": VALID, **tests}.items()}
        shared = {name: known_among(learnt, map(repr, texts)) for name, texts in held.items()}
        notes = told_of_shared(shared, {name: len(texts) for name, texts in held.items()})
        named = [VALID, *tests.values(), SAMPLE, TEXT_IDS, *tokenizer_files(tokenizer, tokenizer)]
        facts = facts_of(self.out, named) | written(self.out, [(LEARNT, learnt), (TEXT_BEGINS, where)])
        return {
            "format": FORMAT,
            "of": TEXT,
            "options": dict(self.preparation.options),
            "name": self.running.name,
            "taken": [],
            "notes": [*self.facts["notes"], *notes],
            "counts": {"documents": counts["documents"], "tokens": counts["tokens"] - counts["documents"]},
            "ids": kind,
            "bos": tokenizer.bos,
            "tests": tests,
            "files": facts,
        }


def _some(first: TextPart, parts: Iterator[TextPart], most: int) -> Iterator[TextPart]:
    """A part, and those after it, until they have so many characters."""
    yield first
    size = len(first.text)
    while size < most and (part := next(parts, None)) is not None:
        size += len(part.text)
        yield part


def _next(parts: Iterator[TextPart], most: int) -> Iterator[TextPart]:
    """The next parts, of so many characters together, about."""
    first = next(parts, None)
    return iter(()) if first is None else _some(first, parts, most)


def _documents(parts: Iterable[TextPart]) -> Iterator[str]:
    """The documents that these parts are of, as far as they are there."""
    held = list[str]()
    for part in parts:
        if part.begins and held:
            yield "".join(held)
            held = []
        held.append(part.text)
    if held:
        yield "".join(held)


LIKE, FORM = "tokenizers", "form"  # options: whose tokenizer it is, and as what the text is prepared


def preparation(recipe: TextRecipe) -> TextPreparation:
    """What is prepared of the recipe's text. Raises InputError or MissingError where there is none."""
    known = _known(recipe)
    return TextPreparation(running_text(recipe.data.path), _options(recipe, known), recipe.learn_tokenizer, known)


def refuse_unprepared(recipe: TextRecipe, prepared: Prepared[StoredTexts], start: Tokenizer | None) -> None:
    """Raises InputError where the recipe asks for other data than those that were prepared. `start`: the tokenizer of
    the model that the training begins with, or of its teacher."""
    asked, there = _options(recipe, start), prepared.options
    if there[FORM] != asked[FORM]:
        what = f"prepared as {there[FORM]}, and heed train {recipe.task} reads {asked[FORM]}"
        raise InputError(what, where="prepared data", fix=f"prepare them with --task {recipe.task}")
    if there[LIKE] != asked[LIKE]:
        what = "prepared with the vocabulary of another model than that which is trained"
        raise InputError(what, where="prepared data", fix="prepare them with the same --from as the training")
    for key in () if start else recipe.NEEDS:
        if there[key] != asked[key]:
            what = f"prepared with data.{key} = {there[key]!r}, not {asked[key]!r}"
            raise InputError(what, where="prepared data", fix=f"--set data.{key}={there[key]}, or prepare them again")


def _options(recipe: TextRecipe, known: Tokenizer | None) -> dict[str, Any]:
    own = recipe.data.model_dump(mode="json", include={*recipe.NEEDS})
    return own | {FORM: recipe.FORM, LIKE: known.fingerprint if known else ""}


def _known(recipe: TextRecipe) -> Tokenizer | None:
    """The tokenizer of the model that the training starts from, or of its teacher."""
    teacher = recipe.distil.teacher if isinstance(recipe, DistilledRecipe) else ""
    if not (run := recipe.start_from or teacher):
        return None
    tokenizers = read_tokenizers(Path(run))
    if tokenizers is None:
        raise MissingError("no tokenizer", where=run, fix="name the folder of a run")
    return tokenizers[0]
