"""Shared by the trainings on running text that is not cut into passages."""

from pathlib import Path
from typing import Any, ClassVar, TypeVar

from heedful.core.config import from_json
from heedful.data.parts import FEWEST, spread
from heedful.data.stored import stored_texts
from heedful.data.text.documents import HELD_MOST, TENTH, Documents, read_documents
from heedful.data.tokenizer import Tokenizer
from heedful.errors import counted
from heedful.run.card import fingerprint
from heedful.run.job import Job, M
from heedful.run.start import Start, read_start
from heedful.store.files import read_json
from heedful.tasks.shared.preparing.opened import prepared_documents, prepared_facts
from heedful.tasks.shared.preparing.texts import refuse_unprepared
from heedful.tasks.shared.sections import TextRecipe

R = TypeVar("R", bound=TextRecipe)
SHORTEST = 2000  # characters of a text, below which measuring means little


def documents_for(path: str, begun: Path | None) -> Documents:
    """The documents of a training. One that was `begun` with a tenth held out continues so, however much text it is."""
    facts = read_json(begun / "data.json") if begun and (begun / "data.json").is_file() else {}
    tenth = any(TENTH in note for note in facts.get("notes", ()))
    return read_documents(path, most=None if tenth else HELD_MOST)


class TextJob(Job[R, Documents, M]):
    """Documents as token ids, and the model to start from, if any."""

    unit: ClassVar = "documents"
    kinds: ClassVar = "a .txt or .jsonl file, or a folder of such"
    start: Start | None
    tokenizer: Tokenizer

    def __init__(self, recipe: R, corpus: Documents | None = None, begun: Path | None = None) -> None:
        super().__init__(recipe, corpus, begun)
        texts, prepared = self.corpus.train, self.corpus.prepared
        self.prepared = prepared
        if prepared is not None:
            taught = None if self.teacher is None else self.teacher.tokenizer
            refuse_unprepared(recipe, prepared, self.start.source if self.start else taught)
            self.tokenizer, self.documents = prepared.tokenizers[0], prepared.stored
            self.fingerprint, self.learnt_before = prepared.fingerprint, prepared.learnt
            return
        if self.start:
            self.tokenizer = self.start.source
        else:
            self.tokenizer = self.kept_tokenizer(lambda: recipe.learn_tokenizer(texts))
        self.documents = stored_texts(texts, self.tokenizer)
        self.fingerprint = fingerprint(texts)

    @classmethod
    def first_look(cls, recipe: R, begun: Path | None) -> tuple[Documents | None, list[str]]:
        """What was prepared for the run; the job reads other data itself."""
        return prepared_documents(recipe.data.path, begun), []

    def read(self) -> Documents:
        path = self.recipe.data.path
        return prepared_documents(path, self.begun) or documents_for(path, self.begun)

    def read_start(self) -> Start | None:
        return read_start(self.recipe, self.begun, self.recipe.task)

    def portion(self, valid: list[str], share: float) -> list[str]:
        """Some of the documents if there are many, or the beginning of each if there are few."""
        if round(share * len(valid)) >= FEWEST:
            return [valid[i] for i in spread(len(valid), share)]
        return [text[: max(SHORTEST, round(share * len(text)))] for text in valid]

    def amount(self, valid: list[str]) -> int:
        return sum(map(len, valid))

    def describe(self) -> str:
        documents, tokens = counted(len(self.documents), "document"), self.documents.tokens
        return f"{documents}, {tokens:,} tokens, {self.tokenizer.size:,} in the vocabulary"

    def learnt_on(self) -> str:
        documents, tokens = counted(len(self.documents), "document"), self.documents.tokens
        return f"{documents}, {tokens:,} tokens, from `{self.corpus.name}`"

    def own_facts(self) -> dict[str, object]:
        facts: dict[str, object] = {"tokens": self.documents.tokens, "vocabulary": self.tokenizer.size}
        if self.prepared is not None:
            facts |= prepared_facts(self.prepared, self.corpus, self.unit)
        return facts

    def started(self, kind: type) -> Any:
        """The configuration of the model to start from."""
        assert self.start is not None
        return from_json(kind, self.start.model["model"], where=f"{self.recipe.start_from}/config.json")
