"""Prepares running text that is too large for the memory: makes a folder of token ids, which `heed train` maps.

Nothing is put into another order: a training reads the text as if it were in memory. Its end is held out, as
`heedful.data.text.documents.read_documents` does, a sample of its parts teaches the vocabulary, and then each shard of
consecutive parts is encoded, by whoever comes first.
"""

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from heedful.data.lines import BETWEEN, PART
from heedful.data.parts import told_of_shared
from heedful.data.stored import Prepared, StoredTexts, kind_of_ids
from heedful.data.text.noise import SENTENCE_ENDS, sentences_of
from heedful.data.text.streamed import Outline, Running, TextPart, in_text_parts, running_text
from heedful.data.tokenizer import Ids, Tokenizer
from heedful.errors import InputError, MissingError
from heedful.run.learnt import LEARNT, fingerprints_of, known_among, together
from heedful.run.prepared import FORMAT, SAMPLE, TEXT_BEGINS, TEXT_IDS, VALID
from heedful.run.recipe import DistilledRecipe
from heedful.run.tokenizers import read_tokenizers, tokenizer_files
from heedful.store import files
from heedful.tasks.shared.preparing.filling import BasePreparation, Shown, facts_of, tokenizers_in, written
from heedful.tasks.shared.preparing.opened import TEXT, as_text_lines, read_texts
from heedful.tasks.shared.preparing.shards import (
    LEARNT_FROM,
    SAMPLED,
    BaseShards,
    ShardedFilling,
    ShardFiles,
    ids_of,
)
from heedful.tasks.shared.sections import TextRecipe

SHARD = 1 << 26  # characters, about
# Bytes on the disk for each byte of text, until it is done; of tokenizers with a token for each letter, and of others.
SPELT, SPACE = 4.2, 1.6
WORDS = 1 << 17  # different ones whose ids are kept
LONGEST = 1 << 25  # characters of a document that is read as a whole

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
            return "the vocabulary of the model that it starts from reads documents as a whole, and one is too large"
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
class TextShards(BaseShards[TextPart]):
    """Running text, in shards of consecutive parts."""

    running: Running
    outline: Outline
    whole: bool  # whether the vocabulary reads each document as a whole
    sentences: bool  # whether each sentence is encoded alone, and stands apart from that before it

    def parts(self, between: re.Pattern[str] = BETWEEN) -> Iterator[TextPart]:
        """What is learnt. Raises InputError or MissingError."""
        return in_text_parts(self.running.learnt_pieces(self.outline), whole=self.whole, between=between)

    def shards(self) -> Iterator[Iterator[TextPart]]:
        parts = self.parts(SENTENCE_ENDS if self.sentences else BETWEEN)
        for first in parts:
            yield _some(first, parts, SHARD)

    def encoder(self, tokenizer: Tokenizer) -> Callable[[int, Iterator[TextPart]], Mapping[str, int]]:
        words = dict[str, Ids]()

        def encode(number: int, parts: Iterator[TextPart]) -> Mapping[str, int]:
            shard, tokens = ShardFiles(self, number, "ids"), 0
            while some := [*_next(parts, 4 * PART)]:
                if len(words) > WORDS:
                    words.clear()
                rows = [*self._encoded(some, tokenizer, words)]
                for part, row in zip(some, rows, strict=True):
                    shard.begins += [tokens + 1] if part.begins else []
                    tokens += len(row)
                shard.append("ids", ids_of(iter(rows), tokenizer))
                whole = fingerprints_of(repr(part.text) for part in some if part.begins and part.ends)
                shard.hashes = together(shard.hashes, whole)
            shard.close()
            return {"tokens": tokens, "documents": len(shard.begins)}

        return encode

    def _encoded(self, parts: Sequence[TextPart], tokenizer: Tokenizer, words: dict[str, Ids]) -> Iterator[Ids]:
        """The ids of each part: of one that begins a document, and of each sentence, behind a token."""
        if not self.sentences:
            for part, ids in zip(parts, tokenizer.encode_whole([part.text for part in parts], words), strict=True):
                yield [tokenizer.bos, *ids] if part.begins else ids
            return
        split = [sentences_of(part.text) for part in parts]
        encoded = iter(tokenizer.encode([sentence for sentences in split for sentence in sentences], words))
        for part, sentences in zip(parts, split, strict=True):
            ids = [token for sentence in islice(encoded, len(sentences)) for token in (tokenizer.bos, *sentence)]
            yield ids or [tokenizer.bos] if part.begins else ids


class TextFilling(ShardedFilling):
    """Fills a folder with running text."""

    def __init__(self, out: Path, preparation: TextPreparation, shown: Shown) -> None:
        self.preparation, self.running = preparation, preparation.running
        inputs = {path: path in self.running.learnt for path in self.running.files}
        super().__init__(out, shown, inputs, [FORMAT, TEXT, SHARD, dict(preparation.options)])

    def outline(self) -> Mapping[str, Any]:
        outline, parts = self.running.outlined()
        tests = {name: f"test-{number}.jsonl" for number, name in enumerate(parts.tests)}
        held = {VALID: parts.valid, **{tests[name]: texts for name, texts in parts.tests.items()}}
        for file, texts in held.items():
            files.write_bytes(self.out / file, as_text_lines(texts))
        return {"outline": asdict(outline), "tests": tests, "notes": parts.notes}

    def examples(self) -> TextShards:
        known, sentences = self.preparation.known, self.preparation.options[FORM] == "sentences"
        whole = known is not None and not known.ours and not sentences
        outline = Outline(**self.facts["outline"])
        return TextShards(self.out.absolute(), self.running.absolute(), outline, whole=whole, sentences=sentences)

    def learn(self) -> int:
        shards = self.examples()
        files.write_bytes(self.out / SAMPLE, as_text_lines(_documents(_next(shards.parts(), SAMPLED))))
        self.write_tokenizer(self.preparation.known or self.preparation.tokenizer(_sample(shards)))
        count = 0
        for parts in shards.shards():
            count += 1
            deque(parts, maxlen=0)  # reads it to its end
        return count

    def last(self) -> Mapping[str, Any]:
        tokenizer, tests = tokenizers_in(self.out)[0], self.facts["tests"]
        begins, counts, learnt = self.joined({"ids": TEXT_IDS})
        files.append_bytes(self.out / TEXT_IDS, *(row.tobytes() for row in ids_of(iter([[tokenizer.bos]]), tokenizer)))
        held = {name: read_texts(self.out / file) for name, file in {"valid": VALID, **tests}.items()}
        shared = {name: known_among(learnt, map(repr, texts)) for name, texts in held.items()}
        notes = told_of_shared(shared, {name: len(texts) for name, texts in held.items()})
        named = [VALID, *tests.values(), SAMPLE, TEXT_IDS, *tokenizer_files(tokenizer, tokenizer)]
        contents = [(LEARNT, learnt), (TEXT_BEGINS, begins.astype("<u8").tobytes())]
        return {
            "format": FORMAT,
            "of": TEXT,
            "options": dict(self.preparation.options),
            "name": self.running.name,
            "taken": [],
            "notes": [*self.facts["notes"], *notes],
            "counts": {"documents": counts["documents"], "tokens": counts["tokens"] - counts["documents"]},
            "ids": kind_of_ids(tokenizer.size),
            "bos": tokenizer.bos,
            "tests": tests,
            "files": facts_of(self.out, named) | written(self.out, contents),
        }


def _sample(shards: TextShards) -> Iterator[str]:
    """All that is learnt, or parts of it that are evenly spread; documents as they are where they fit."""
    size = shards.outline.characters
    if size <= LEARNT_FROM:
        return _documents(shards.parts())
    return (part.text for part in islice(shards.parts(), 0, None, -(-size // LEARNT_FROM)))


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
    if there.get(FORM) != asked[FORM]:
        what = f"prepared as {there.get(FORM)}, and heed train {recipe.task} reads {asked[FORM]}"
        raise InputError(what, where="prepared data", fix=f"prepare them with --task {recipe.task}")
    if there[LIKE] != asked[LIKE]:
        what = "prepared with the vocabulary of another model than that which is trained"
        raise InputError(what, where="prepared data", fix="prepare them with the same --from as the training")
    for key in () if start else recipe.NEEDS:
        if there[key] != asked[key]:
            what = f"prepared with data.{key} = {there[key]!r}, not {asked[key]!r}"
            raise InputError(what, where="prepared data", fix=f"--set data.{key}={there[key]}, or prepare them again")


def _options(recipe: TextRecipe, known: Tokenizer | None) -> dict[str, Any]:
    given = recipe.data.model_dump(mode="json", include={*recipe.NEEDS})
    return given | {FORM: recipe.FORM, LIKE: known.fingerprint if known else ""}


def _known(recipe: TextRecipe) -> Tokenizer | None:
    """The tokenizer of the model that the training starts from, or of its teacher."""
    teacher = recipe.distil.teacher if isinstance(recipe, DistilledRecipe) else ""
    if not (run := recipe.start_from or teacher):
        return None
    tokenizers = read_tokenizers(Path(run))
    if tokenizers is None:
        raise MissingError("no tokenizer", where=run, fix="name the folder of a run")
    return tokenizers[0]
