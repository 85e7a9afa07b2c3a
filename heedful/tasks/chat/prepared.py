"""Prepares conversations that are too large for the memory: makes a folder of the ids that the template gives, and of
which of them are learnt. What is held out is what `heedful.data.text.conversations.read_conversations` holds out, and
the conversations stay in their order."""

from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
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
from heedful.errors import InputError, MissingError
from heedful.models.presets import LANGUAGE_MODELS, lm_config
from heedful.run.learnt import LEARNT, fingerprints_of, together
from heedful.run.prepared import (
    FORMAT,
    SAMPLE,
    TEXT_BEGINS,
    TEXT_IDS,
    TEXT_LEARNT,
    VALID,
    prepared_for,
)
from heedful.run.recipe import row_of
from heedful.run.start import read_start
from heedful.run.tokenizers import tokenizer_files
from heedful.store import files
from heedful.tasks.chat.layout import learnt_end, nothing_fits, told_of_long
from heedful.tasks.chat.recipe import ChatRecipe
from heedful.tasks.chat.template import chosen_template, controls_in, special_names
from heedful.tasks.shared.preparing.filling import BasePreparation, Shown, facts_of, tokenizers_in, written
from heedful.tasks.shared.preparing.opened import as_text_lines, checked, prepared_of
from heedful.tasks.shared.preparing.shards import (
    LEARNT_FROM,
    SAMPLED,
    BaseShards,
    ShardedFilling,
    ShardFiles,
    ids_of,
)

KIND = "conversations"
SHARD, AT_ONCE = 20_000, 500  # conversations in a shard, and that are encoded before they are written
SPACE = 3.5  # bytes on the disk for each byte of text, until it is done
LIKE, TEMPLATE, CONTEXT = "tokenizers", "template", "context"  # options


@dataclass(frozen=True)
class Files:
    """The files of conversations: those that are learnt from, and the others."""

    name: str
    learnt: tuple[Path, ...]
    others: tuple[Path, ...]
    # Of the hashes of the first user messages, the largest that is held out; None: none is.
    held: int | None = None

    def conversations(self, *, held_out: bool = False) -> Iterator[Conversation]:
        """Those that are learnt, or those that are held out of them."""
        for path in self.learnt:
            for conversation in conversations_in(path, []):
                if held_out == (self.held is not None and key_of(conversation) <= self.held):
                    yield conversation


def key_of(conversation: Conversation) -> int:
    """The hash by which it is held out, with all that begin with the same question."""
    return int.from_bytes(hashed(asked_first(conversation)), "big")


@dataclass(frozen=True)
class ChatPreparation(BasePreparation):
    """What is prepared: conversations, as a template writes them, as far as `context` tokens hold them. `tokenizer`
    learns it from texts, unless it is `known`."""

    data: Files
    template: str
    context: int
    options: Mapping[str, Any]
    tokenizer: Callable[[Iterator[str]], Tokenizer]
    known: Tokenizer | None = None
    refused: str = ""
    spread: float = SPACE

    @property
    def name(self) -> str:
        return self.data.name

    @property
    def learnt(self) -> tuple[Path, ...]:
        return self.data.learnt

    def filling(self, out: Path, shown: Shown) -> "ChatFilling":
        return ChatFilling(out, self, shown)


@dataclass(frozen=True)
class ChatShards(BaseShards[Conversation]):
    """Conversations, in shards of neighbours."""

    data: Files
    template: str
    context: int

    def shards(self) -> Iterator[Iterator[Conversation]]:
        conversations = self.data.conversations()
        for first in conversations:
            yield chain([first], islice(conversations, SHARD - 1))

    def encoder(self, tokenizer: Tokenizer) -> Callable[[int, Iterator[Conversation]], Mapping[str, int]]:
        tokens = ChatTokens(tokenizer, ChatTemplate(self.template, special_names(tokenizer)))

        def encode(number: int, conversations: Iterator[Conversation]) -> Mapping[str, int]:
            shard, counts = ShardFiles(self, number, "ids", "learnt"), Counter[str]()
            while some := [*islice(conversations, AT_ONCE)]:
                texts = []
                for conversation in some:
                    text, is_cut = learnt_end(tokens, conversation, self.context)
                    counts["left"] += text is None
                    counts["cut"] += is_cut
                    if text is not None:
                        shard.begins.append(counts["tokens"])
                        counts["tokens"] += len(text.ids)
                        texts.append(text)
                shard.append("ids", ids_of((text.ids for text in texts), tokenizer))
                shard.append("learnt", (np.array(text.learnt, np.uint8) for text in texts))
                shard.hashes = together(shard.hashes, fingerprints_of(map(repr, some)))
            shard.close()
            return counts

        return encode


class ChatFilling(ShardedFilling):
    """Fills a folder with conversations."""

    def __init__(self, out: Path, preparation: ChatPreparation, shown: Shown) -> None:
        self.preparation, data = preparation, preparation.data
        inputs = {path: path in data.learnt for path in sorted((*data.learnt, *data.others))}
        super().__init__(out, shown, inputs, [FORMAT, KIND, SHARD, dict(preparation.options)])

    def outline(self) -> Mapping[str, Any]:
        data, keys, characters = self.preparation.data, array("Q"), 0
        taken = {file: list[str]() for file in sorted((*data.learnt, *data.others))}
        for file in data.learnt:
            for conversation in conversations_in(file, taken[file]):
                keys.append(key_of(conversation))
                characters += sum(len(message["content"]) for message in conversation)
        _, valid, tests = sorted_in((file.name, [*conversations_in(file, taken[file])]) for file in data.others)
        learnt, held = np.unique(np.frombuffer(keys, np.uint64)), None
        notes = [*chain.from_iterable(taken.values())]
        if not valid:
            if len(learnt) < 2:
                raise nothing_to_hold_out("one example alone", data.name)
            held = int(learnt[min(MOST_HELD, max(1, len(learnt) // SHARE)) - 1])
            valid = [*replace(data, held=held).conversations(held_out=True)]
            learnt = learnt[learnt > held]
            notes.append(told_of_held(data.name, len(valid), "example"))
        parts = {"valid": valid, **stems(tests)}
        shared = {name: int(np.isin([*map(key_of, part)], learnt).sum()) for name, part in parts.items()}
        notes += told_of_shared(shared, {name: len(part) for name, part in parts.items()})
        count = len(keys) if held is None else sum(key > held for key in keys)
        named = {"valid": VALID} | {name: f"test-{number}.jsonl" for number, name in enumerate(stems(tests))}
        for name, part in parts.items():
            files.write_bytes(self.out / named[name], as_text_lines(part))
        facts = {"conversations": count, "characters": characters, "held": held, "notes": notes}
        return facts | {"tests": {name: named[name] for name in stems(tests)}}

    def examples(self) -> ChatShards:
        data, prepared = self.preparation.data, self.preparation
        learnt, others = (tuple(path.absolute() for path in paths) for paths in (data.learnt, data.others))
        known = Files(data.name, learnt, others, self.facts["held"])
        return ChatShards(self.out.absolute(), known, prepared.template, prepared.context)

    def learn(self) -> int:
        data = self.examples().data
        files.write_bytes(self.out / SAMPLE, as_text_lines(_first(data.conversations())))
        step = max(1, -(-self.facts["characters"] // LEARNT_FROM))
        spread = islice(data.conversations(), 0, None, step)
        texts = (message["content"] for conversation in spread for message in conversation)
        self.write_tokenizer(self.preparation.known or self.preparation.tokenizer(texts))
        return -(-int(self.facts["conversations"]) // SHARD)

    def last(self) -> Mapping[str, Any]:
        tokenizer, tests, name = tokenizers_in(self.out)[0], self.facts["tests"], self.preparation.name
        begins, counts, learnt = self.joined({"ids": TEXT_IDS, "learnt": TEXT_LEARNT})
        if not len(begins):
            raise nothing_fits(name, self.preparation.context)
        long = told_of_long(name, self.preparation.context, cut=counts["cut"], left=counts["left"])
        named = [VALID, *tests.values(), SAMPLE, TEXT_IDS, TEXT_LEARNT, *tokenizer_files(tokenizer, tokenizer)]
        contents = [(LEARNT, learnt), (TEXT_BEGINS, begins.astype("<u8").tobytes())]
        return {
            "format": FORMAT,
            "of": KIND,
            "options": dict(self.preparation.options),
            "name": name,
            "taken": [],
            "notes": [*self.facts["notes"], *long],
            "counts": {KIND: len(begins), "tokens": counts["tokens"]},
            "ids": kind_of_ids(tokenizer.size),
            "tests": tests,
            "files": facts_of(self.out, named) | written(self.out, contents),
        }


def _first(conversations: Iterator[Conversation]) -> Iterator[Conversation]:
    """The first ones, of so many characters as are kept."""
    size = 0
    for conversation in conversations:
        yield conversation
        size += sum(len(message["content"]) for message in conversation)
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
    paths = part_files(path, KINDS)
    train, valid, tests = sorted_in((file.name if path.is_dir() else "train", [file]) for file in paths)
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
    reasons = {
        LIKE: "with the vocabulary of another model than that which is trained",
        TEMPLATE: "with another template",
        CONTEXT: f"for a context of {there[CONTEXT]:,} tokens, not {context:,}",
    }
    for key, value in asked.items():
        if there[key] != value and (key in reasons or known is None):
            what = reasons.get(key, f"with data.{key} = {there[key]!r}, not {value!r}")
            fix = "prepare them again, with --from, the preset and the settings of the training"
            raise InputError(f"prepared {what}", where="prepared data", fix=fix)


def _options(recipe: ChatRecipe, template: str, context: int, known: Tokenizer | None) -> dict[str, Any]:
    given = recipe.data.model_dump(mode="json", include={*recipe.NEEDS})
    like = known.fingerprint if known else ""
    return given | {LIKE: like, TEMPLATE: sha256(template.encode()).hexdigest(), CONTEXT: context}


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
