"""What the trainings on running text share that do not cut it into passages."""

from pathlib import Path
from typing import Any

from heedful.core.config import from_json
from heedful.data.documents import Documents, read_documents
from heedful.data.tokenizer import train_tokenizer
from heedful.errors import InputError
from heedful.tasks.card import data_facts, fingerprint
from heedful.tasks.folder import read_tokenizers, tokenizer_files
from heedful.tasks.recipe import Recipe
from heedful.tasks.start import copy_weights, read_start


class TextJob:
    """The documents as token ids, and the model to begin with, if any. `corpus` stands in for the recipe's data;
    `begun`, a run's folder, has the tokenizer; `mask` gives a new one a token for what is hidden. Raises InputError."""

    def __init__(self, recipe: Recipe, corpus: Documents | None, begun: Path | None, *, mask: bool = False) -> None:
        self.recipe, data = recipe, recipe.data
        if corpus is None and not data.path:
            raise InputError("no data was given", fix="--data PATH: a .txt or .jsonl file, or a folder of such")
        self.corpus = corpus = corpus or read_documents(data.path)
        self.start = read_start(recipe, begun, recipe.task)
        known = None if begun is None else read_tokenizers(begun)
        if self.start:
            self.tokenizer = self.start.source
        elif known:
            self.tokenizer = known[0]
        else:
            self.tokenizer = train_tokenizer(corpus.train, kind=data.tokenizer, size=data.vocab_size, mask=mask)
        self.notes = list(corpus.notes)
        self.documents = self.tokenizer.encode_whole(corpus.train)
        self.fingerprint = fingerprint(corpus.train)
        self.tokenizer_hash = self.tokenizer.fingerprint

    def describe(self) -> str:
        tokens = sum(map(len, self.documents))
        return f"{len(self.documents):,} documents, {tokens:,} tokens, {self.tokenizer.size:,} in the vocabulary"

    def tokenizers(self) -> dict[str, bytes]:
        return tokenizer_files(self.tokenizer, self.tokenizer)

    def facts(self) -> dict[str, object]:
        own = {
            "tokens": sum(map(len, self.documents)),
            "fingerprint": self.fingerprint,
            "vocabulary": self.tokenizer.size,
            "notes": self.notes,
        }
        return data_facts(self.corpus, "documents") | own | (self.start.facts() if self.start else {})

    def begin(self, model: Any) -> None:
        if self.start:
            copy_weights(model, self.recipe.start_from)

    def started(self, kind: type) -> Any:
        """The configuration of the model to begin with."""
        assert self.start is not None
        return from_json(kind, self.start.model["model"], where=f"{self.recipe.start_from}/config.json")
