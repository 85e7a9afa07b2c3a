"""Prepares conversations that are too large for the memory: makes a folder of the ids that the template gives, and of
which of them are learnt. What is held out is what `heedful.data.text.conversations.read_conversations` holds out, and
the conversations stay in their order."""

from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from hashlib import sha256
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from heedful.core.seeds import hashed
from heedful.data.parts import MOST as MOST_HELD
from heedful.data.parts import (
    SHARE,
    Parts,
    nothing_to_hold_out,
    part_files,
    sorted_in,
    stems,
    told_of_held,
    told_of_shared,
)
from heedful.data.stored import Prepared, StoredAnswers, kind_of_ids
from heedful.data.text.chat_template import ChatTemplate
from heedful.data.text.chat_tokens import ChatTokens
from heedful.data.text.conversations import KINDS, Conversation, asked_first, conversations_in
from heedful.data.tokenizer import Tokenizer, train_tokenizer
from heedful.errors import InputError, MissingError, StorageError
from heedful.models.presets import LANGUAGE_MODELS, lm_config
from heedful.run.learnt import BYTES, LEARNT, MOST, fingerprints_of, together
from heedful.run.prepared import (
    AGAIN,
    FORMAT,
    SAMPLE,
    TEXT_BEGINS,
    TEXT_IDS,
    TEXT_LEARNT,
    VALID,
    WORK,
    WorkPart,
    prepared_for,
)
from heedful.run.recipe import row_of
from heedful.run.start import read_start
from heedful.run.task import Each
from heedful.run.tokenizers import read_tokenizers, tokenizer_files
from heedful.store import files
from heedful.store.lock import one_after_another
from heedful.tasks.chat.layout import learnt_end, nothing_fits, told_of_long
from heedful.tasks.chat.recipe import ChatRecipe
from heedful.tasks.chat.template import chosen_template, controls_in, special_names
from heedful.tasks.shared.preparing.filling import READERS, BasePreparation, Filling, Shown, facts_of, no_news, written
from heedful.tasks.shared.preparing.opened import as_text_lines, checked, prepared_of

KIND = "conversations"
SHARD, AT_ONCE = 20_000, 500  # conversations in a shard, and that are encoded before they are written
LEARNT_FROM, SAMPLED = 1 << 24, 1 << 20  # characters of which the vocabulary is learnt, and that are kept as texts
SPACE = 3.5  # bytes on the disk for each byte of text, until it is done
VOCABULARY = "vocabulary.json"  # written once the tokenizer is there
LIKE, TEMPLATE, CONTEXT = "tokenizers", "template", "context"  # options


@dataclass(frozen=True)
class Files:
    """The files of conversations: those that are learnt from, and the others."""

    name: str
    learnt: tuple[Path, ...]
    others: tuple[Path, ...]
    # Of the hashes of the first user messages, the largest that is held out; None: none is.
    held: int | None = None

    def conversations(self, *, held: bool = False) -> Iterator[Conversation]:
        """Those that are learnt, or those that are `held` out of them."""
        for path in self.learnt:
            for each in conversations_in(path, []):
                if held == (self.held is not None and key_of(each) <= self.held):
                    yield each


def key_of(conversation: Conversation) -> int:
    return int.from_bytes(hashed(asked_first(conversation)), "big")


@dataclass(frozen=True)
class ChatPreparation(BasePreparation):
    """What is prepared: conversations, as a template writes them, as far as `context` tokens hold them. `tokenizer`
    learns it from texts, unless it is `known`."""

    files: Files
    template: str
    context: int
    options: Mapping[str, Any]
    tokenizer: Callable[[Iterator[str]], Tokenizer]
    known: Tokenizer | None = None

    refused: str = ""
    spread: float = SPACE

    @property
    def name(self) -> str:
        return self.files.name

    @property
    def learnt(self) -> tuple[Path, ...]:
        return self.files.learnt

    def filling(self, out: Path, shown: Shown) -> "ChatFilling":
        return ChatFilling(out, self, shown)


@dataclass(frozen=True)
class Shards:
    """The conversations, in shards of neighbours, below the folder `out`."""

    out: Path
    files: Files
    template: str
    context: int
    count: int

    def done(self, number: int) -> Path:
        """Where the facts about an encoded shard are."""
        return self.file(number, "done.json")

    def file(self, number: int, kind: str) -> Path:
        return self.out / WORK / f"{number:04}.{kind}"

    def encode(self, first: int, *, of: int, shown: Shown = no_news) -> None:
        """Writes the ids of each shard `first`, `first` + `of` and so on, unless that is done. Raises InputError,
        MissingError or StorageError."""
        if not (self.out / WORK).is_dir():
            fix = "all machines must have the same file system, under the same path"
            raise MissingError("what is prepared there is not seen here", where=str(self.out), fix=fix)
        tokenizers = read_tokenizers(self.out)
        if tokenizers is None:
            raise StorageError("the tokenizer is not there", where=str(self.out), fix=AGAIN)
        tokens = ChatTokens(tokenizers[0], ChatTemplate(self.template, special_names(tokenizers[0])))
        conversations = self.files.conversations()
        for number in range(self.count):
            some = islice(conversations, SHARD)
            if number % of == first and not self.done(number).is_file():
                with one_after_another(self.file(number, "lock")):
                    if not self.done(number).is_file():
                        self._encode(number, some, tokens)
            for _ in some:  # what is left of it
                pass
            shown("encoding", (number + 1) / self.count)

    def _encode(self, number: int, conversations: Iterator[Conversation], tokens: ChatTokens) -> None:
        kind, counts, begins, hashes = kind_of_ids(tokens.tokenizer.size), Counter[str](), list[int](), list[bytes]()
        ids, learnt = self.file(number, "ids"), self.file(number, "learnt")
        for path in (ids, learnt):
            files.cut_off(path, 0)
        while some := [*islice(conversations, AT_ONCE)]:
            texts = []
            for each in some:
                text, is_cut = learnt_end(tokens, each, self.context)
                counts["left"] += text is None
                counts["cut"] += is_cut
                if text is not None:
                    begins.append(counts["tokens"])
                    counts["tokens"] += len(text.ids)
                    texts.append(text)
            files.append_bytes(ids, *(np.array(text.ids, kind).tobytes() for text in texts))
            files.append_bytes(learnt, *(np.array(text.learnt, np.uint8).tobytes() for text in texts))
            hashes.append(fingerprints_of(map(repr, some)))
        files.write_bytes(self.file(number, "begins"), np.array(begins, "<u8").tobytes())
        files.write_bytes(self.file(number, "hashes"), reduce(together, hashes, b""))
        files.write_json(self.done(number), counts)


class ChatFilling(Filling):
    """Fills a folder with conversations."""

    def __init__(self, out: Path, preparation: ChatPreparation, shown: Shown) -> None:
        self.preparation, own = preparation, preparation.files
        inputs = {path: path in own.learnt for path in sorted((*own.learnt, *own.others))}
        super().__init__(out, shown, inputs, [FORMAT, KIND, SHARD, dict(preparation.options)])

    def work(self, part: WorkPart, each: Each) -> list[int]:
        self.begin({})
        self._outline()
        self._learn()
        shards = self.shards
        if each is map:
            shards.encode(part.number - 1, of=part.of, shown=self.shown)
        else:
            count = min(READERS, shards.count)
            self.done("encoding", each(partial(shards.encode, of=count), range(count)), count)
        missing = (number for number in range(shards.count) if not shards.done(number).is_file())
        return sorted({1 + number % part.of for number in missing})

    def _outline(self) -> None:
        """Writes what is held out, unless that is done."""
        path = self.out / WORK / "outline.json"
        with one_after_another(path.with_suffix(".lock")):
            if path.is_file():
                return
            self.shown("reading", 0.0)
            own, keys, characters = self.preparation.files, array("Q"), 0
            taken = {file: list[str]() for file in sorted((*own.learnt, *own.others))}
            for file in own.learnt:
                for each in conversations_in(file, taken[file]):
                    keys.append(key_of(each))
                    characters += sum(len(one["content"]) for one in each)
            _, valid, tests = sorted_in((file.name, [*conversations_in(file, taken[file])]) for file in own.others)
            learnt, held = np.unique(np.frombuffer(keys, np.uint64)), None
            notes = [*chain.from_iterable(taken.values())]
            if not valid:
                if len(learnt) < 2:
                    raise nothing_to_hold_out("one example alone", own.name)
                held = int(learnt[min(MOST_HELD, max(1, len(learnt) // SHARE)) - 1])
                valid = [*Files(own.name, own.learnt, own.others, held).conversations(held=True)]
                learnt = learnt[learnt > held]
                notes.append(told_of_held(own.name, len(valid), "example"))
            parts = {"valid": valid, **stems(tests)}
            shared = {name: int(np.isin([*map(key_of, part)], learnt).sum()) for name, part in parts.items()}
            notes += told_of_shared(shared, {name: len(part) for name, part in parts.items()})
            count = sum(key > held for key in keys) if held is not None else len(keys)
            named = {"valid": VALID} | {name: f"test-{number}.jsonl" for number, name in enumerate([*parts][1:])}
            for name, part in parts.items():
                files.write_bytes(self.out / named[name], as_text_lines(part))
            facts = {"conversations": count, "characters": characters, "held": held, "notes": notes}
            files.write_json(path, facts | {"tests": {name: named[name] for name in [*parts][1:]}})

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What is known of the conversations once they are outlined."""
        return dict(files.read_json(self.out / WORK / "outline.json"))

    @cached_property
    def shards(self) -> Shards:
        own, prepared = self.preparation.files, self.preparation
        learnt, others = (tuple(path.absolute() for path in paths) for paths in (own.learnt, own.others))
        count = -(-int(self.facts["conversations"]) // SHARD)
        known = Files(own.name, learnt, others, self.facts["held"])
        return Shards(self.out.absolute(), known, prepared.template, prepared.context, count)

    def _learn(self) -> None:
        """Learns the tokenizer, and writes it, and before it a sample; unless that is done."""
        path = self.out / WORK / VOCABULARY
        with one_after_another(path.with_suffix(".lock")):
            if path.is_file():
                return
            self.shown("learning the vocabulary", 0.0)
            own = self.shards.files
            files.write_bytes(self.out / SAMPLE, as_text_lines(_first(own.conversations())))
            step = max(1, -(-self.facts["characters"] // LEARNT_FROM))
            spread = islice(own.conversations(), 0, None, step)
            texts = (one["content"] for each in spread for one in each)
            tokenizer = self.preparation.known or self.preparation.tokenizer(texts)
            for name, data in tokenizer_files(tokenizer, tokenizer).items():
                files.write_bytes(self.out / name, data)
            files.write_json(path, {})

    def last(self) -> Mapping[str, Any]:
        tokenizers = read_tokenizers(self.out)
        assert tokenizers is not None
        shards, counts, name = self.shards, Counter[str](), self.preparation.name
        begins, hashes = [np.zeros(0, np.uint64)], [b""]
        kinds = {"ids": self.out / TEXT_IDS, "learnt": self.out / TEXT_LEARNT}
        for path in kinds.values():
            files.cut_off(path, 0)
        for number in range(shards.count):
            begins.append(np.fromfile(shards.file(number, "begins"), "<u8") + np.uint64(counts["tokens"]))
            counts += Counter(files.read_json(shards.done(number)))
            for kind, path in kinds.items():
                files.append_file(path, shards.file(number, kind))
            hashes.append(files.read_bytes(shards.file(number, "hashes"), limit=BYTES * MOST))
        where = np.concatenate(begins)
        if not len(where):
            raise nothing_fits(name, shards.context)
        learnt, tests = reduce(together, hashes), self.facts["tests"]
        left = {kind: counts[kind] for kind in ("cut", "left")}
        named = [VALID, *tests.values(), SAMPLE, TEXT_IDS, TEXT_LEARNT, *tokenizer_files(*tokenizers)]
        contents = [(LEARNT, learnt), (TEXT_BEGINS, where.astype("<u8").tobytes())]
        return {
            "format": FORMAT,
            "of": KIND,
            "options": dict(self.preparation.options),
            "name": name,
            "taken": [],
            "notes": [*self.facts["notes"], *told_of_long(name, shards.context, **left)],
            "counts": {KIND: len(where), "tokens": counts["tokens"]},
            "ids": kind_of_ids(tokenizers[0].size),
            "tests": tests,
            "files": facts_of(self.out, named) | written(self.out, contents),
        }


def _first(conversations: Iterator[Conversation]) -> Iterator[Conversation]:
    """The first ones, of so many characters as are kept."""
    size = 0
    for each in conversations:
        yield each
        size += sum(len(one["content"]) for one in each)
        if size > SAMPLED:
            return


def preparation(recipe: ChatRecipe) -> ChatPreparation:
    """What is prepared of the recipe's conversations. Raises InputError or MissingError where there are none."""
    path, data = Path(recipe.data.path), recipe.data
    source = chosen_template(data.template, Path(recipe.start_from) if recipe.start_from else None)
    controls, start = controls_in(source), read_start(recipe, None, "generate")
    if start is None:
        known, context = None, lm_config(row_of(LANGUAGE_MODELS, recipe), vocab_size=1000).embed.context_length
    else:
        known, context = start.source.with_extra(controls), int(start.model["model"]["embed"]["context_length"])
    found = part_files(path, KINDS)
    train, valid, tests = sorted_in((file.name if path.is_dir() else "train", [file]) for file in found)
    if not train:
        raise MissingError("no training file", where=str(path), fix=f"add train{KINDS[0]}")
    others = (*valid, *(file for part in tests.values() for file in part))

    def tokenizer(texts: Iterator[str]) -> Tokenizer:
        return train_tokenizer(texts, kind=data.tokenizer, size=data.vocab_size, extra=controls)

    options = _options(recipe, source, context, known)
    return ChatPreparation(Files(str(path), tuple(train), others), source, context, options, tokenizer, known)


def refuse_unprepared(
    recipe: ChatRecipe, prepared: Prepared[StoredAnswers], template: str, context: int, known: Tokenizer | None
) -> None:
    """Raises InputError where the recipe asks for other data than those that were prepared. `known`: the tokenizer of
    the model that the training begins with."""
    asked, there = _options(recipe, template, context, known), prepared.options
    told = {
        LIKE: "with the vocabulary of another model than that which is trained",
        TEMPLATE: "with another template",
        CONTEXT: f"for a context of {there[CONTEXT]:,} tokens, not {context:,}",
    }
    for key, value in asked.items():
        if there[key] != value and (key in told or known is None):
            what = told.get(key, f"with data.{key} = {there[key]!r}, not {value!r}")
            fix = "prepare them again, with --from, the preset and the settings of the training"
            raise InputError(f"prepared {what}", where="prepared data", fix=fix)


def _options(recipe: ChatRecipe, template: str, context: int, known: Tokenizer | None) -> dict[str, Any]:
    own = recipe.data.model_dump(mode="json", include={*recipe.NEEDS})
    like = known.fingerprint if known else ""
    return own | {LIKE: like, TEMPLATE: sha256(template.encode()).hexdigest(), CONTEXT: context}


Conversations = Parts[list[Conversation]]


def prepared_conversations(path: str, run: Path | None) -> Conversations | None:
    """Those in the folder that the `path` of the data names, or that were prepared for the run; None if there are none.
    Raises MissingError, InputError for other data, or StorageError where a file is not as it was written."""
    if (folder := prepared_for(path, run)) is None:
        return None
    manifest, tokenizers = checked(folder, KIND)
    ids = np.memmap(folder / TEXT_IDS, manifest["ids"], "r").view(np.ndarray)
    learnt = np.memmap(folder / TEXT_LEARNT, np.uint8, "r").view(np.ndarray)
    stored = StoredAnswers(ids, learnt, np.fromfile(folder / TEXT_BEGINS, "<u8").astype(np.int64))
    return Conversations(
        _read(folder / SAMPLE),
        _read(folder / VALID),
        {test: _read(folder / file) for test, file in manifest["tests"].items()},
        manifest["name"],
        (),
        tuple(manifest["notes"]),
        prepared=prepared_of(folder, manifest, stored, tokenizers),
    )


def _read(path: Path) -> list[Conversation]:
    return [*map(tuple, files.read_json_lines(path))]
