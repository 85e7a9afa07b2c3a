"""Training an encoder to name hidden words: from a recipe and its text to a tokenizer, token ids and the model's
configuration."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.core.config import from_json, to_json
from heedful.data.documents import Documents, read_documents
from heedful.data.tokenizer import train_tokenizer
from heedful.errors import InputError
from heedful.models.encoder import EncoderConfig
from heedful.models.presets import ENCODERS, Bidirectional, encoder
from heedful.tasks.blanks import SHARE, Hider, Joiner
from heedful.tasks.card import data_facts, fingerprint, model_card, origin, score_table
from heedful.tasks.fill import Filler, FillTask
from heedful.tasks.folder import parameters, read_tokenizers, tokenizer_files, write_run
from heedful.tasks.job import Measured, Scores
from heedful.tasks.recipe import Recipe
from heedful.tasks.start import copy_weights, read_start

SHOWN = 5  # texts of a sample


class FillJob:
    """`corpus` stands in for the recipe's data; `begun`, a run's folder, has the tokenizer. Raises InputError."""

    score_names: tuple[str, ...] = ("accuracy",)

    def __init__(self, recipe: Recipe, corpus: Documents | None = None, begun: Path | None = None) -> None:
        self.recipe, data = recipe, recipe.data
        if corpus is None and not data.path:
            raise InputError("no data was given", fix="--data PATH: a .txt or .jsonl file, or a folder of such")
        self.corpus = corpus = corpus or read_documents(data.path)
        self.start = read_start(recipe, begun, "fill")
        if self.start:
            self.tokenizer = self.start.source
            where = f"{recipe.start_from}/config.json"
            self.config = from_json(EncoderConfig, self.start.model["model"], where=where)
        else:
            row = ENCODERS[recipe.preset]
            row = from_json(Bidirectional, to_json(row) | recipe.model, where=f"model (preset {recipe.preset})")
            known = None if begun is None else read_tokenizers(begun)
            kind, size = data.tokenizer, data.vocab_size
            self.tokenizer = known[0] if known else train_tokenizer(corpus.train, kind=kind, size=size, mask=True)
            pairs = data.pairs != "none"
            self.config = encoder(row, vocab_size=self.tokenizer.size, pooler=pairs, pairs=pairs)
        if data.pairs != "none" and (not self.config.pairs or self.config.embed.types < 2):
            what = f"the model {recipe.start_from or recipe.preset} does not tell pairs of texts apart"
            raise InputError(what, fix="leave out data.pairs")
        self.about = {"task": "fill"} | ({"pairs": data.pairs} if data.pairs != "none" else {})
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
        corpus = self.corpus
        own = {
            "tokens": sum(map(len, self.documents)),
            "fingerprint": self.fingerprint,
            "vocabulary": self.tokenizer.size,
            "notes": self.notes,
        }
        return data_facts(corpus, "documents") | own | (self.start.facts() if self.start else {})

    def begin(self, model: Any) -> None:
        if self.start:
            copy_weights(model, self.recipe.start_from)

    def task(self, model: Any) -> FillTask:
        context, data = self.config.embed.places.size, self.recipe.data
        hider, joiner = Hider(self.tokenizer, whole_words=data.whole_words), Joiner(self.tokenizer, data.pairs)
        return FillTask(self.documents, self.recipe.train, context=context, hider=hider, joiner=joiner)

    def measure(self, model: Any) -> Measured:
        filler = Filler(model, self.tokenizer, self.about)
        found = filler.evaluate(self.corpus.valid)
        sample = "".join(f"{filler.sample(text)}\n" for text in self.corpus.valid[:SHOWN])
        scores = found.scores()
        return Measured(scores.pop("loss"), scores, -found.loss, sample)

    def write(self, folder: Path, model: Any) -> None:
        write_run(folder, model, parameters(model), self.tokenizer, self.tokenizer, self.about)

    def finish(self, folder: Path) -> Scores:
        best = Filler.load(folder)
        sets = self.corpus.tests or {"valid": self.corpus.valid}
        return {name: best.evaluate(texts).scores() for name, texts in sets.items()}

    def card(self, folder: Path, scores: Scores, best: Mapping[str, Any], minutes: float) -> str:
        return model_card(
            folder,
            what=f"Names hidden words of a text. Trained {origin(self.recipe.start_from)} by heedful on "
            f"{len(self.corpus.train):,} documents, {sum(map(len, self.documents)):,} tokens, from "
            f"`{self.corpus.name}`.",
            table=score_table("text", scores),
            how=f"{SHARE:.0%} of the tokens were hidden, the same ones each time; loss is in nats a hidden token. The "
            f"model reads {self.config.embed.places.size} tokens at a time.",
            kept=f"step {best['step']:,}, the best on the validation text ({best['valid_loss']:.4f} nats a token)",
            minutes=minutes,
            use=[f'heed fill {folder} "The cat sat on the <mask>."', f"heed eval {folder} --data more.txt"],
            limits="It has seen only the text above, and expects texts like it. What it names may be false.",
            notes=self.corpus.notes,
        )
