"""Training a language model: from a recipe and its text to a tokenizer, token ids and the model's configuration."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.core.config import from_json, to_json
from heedful.data.documents import Documents, read_documents
from heedful.data.tokenizer import train_tokenizer
from heedful.errors import InputError
from heedful.models.lm import LMConfig
from heedful.models.presets import LANGUAGE_MODELS, Decoder, language_model
from heedful.tasks.card import data_facts, fingerprint, model_card
from heedful.tasks.folder import parameters, read_tokenizers, tokenizer_files, write_run
from heedful.tasks.generate import LanguageModel, LanguageTask, Likelihood
from heedful.tasks.job import Measured, Scores
from heedful.tasks.recipe import Recipe
from heedful.tasks.start import copy_weights, read_start

ABOUT = {"task": "generate"}
SHOWN = 200  # tokens of a sample


class LanguageJob:
    """`corpus` stands in for the recipe's data; `begun`, a run's folder, has the tokenizer. Raises InputError."""

    score_names: tuple[str, ...] = ("bits_per_byte",)

    def __init__(self, recipe: Recipe, corpus: Documents | None = None, begun: Path | None = None) -> None:
        self.recipe, data = recipe, recipe.data
        if corpus is None and not data.path:
            raise InputError("no data was given", fix="--data PATH: a .txt or .jsonl file, or a folder of such")
        self.corpus = corpus = corpus or read_documents(data.path)
        self.start = read_start(recipe, begun, "generate")
        if self.start:
            self.tokenizer = self.start.source
            where = f"{recipe.start_from}/config.json"
            self.config = from_json(LMConfig, self.start.model["model"], where=where)
        else:
            row = LANGUAGE_MODELS[recipe.preset]
            row = from_json(Decoder, to_json(row) | recipe.model, where=f"model (preset {recipe.preset})")
            known = None if begun is None else read_tokenizers(begun)
            kind, size = data.tokenizer, data.vocab_size
            self.tokenizer = known[0] if known else train_tokenizer(corpus.train, kind=kind, size=size)
            self.config = language_model(row, vocab_size=self.tokenizer.size)
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

    def task(self, model: Any) -> LanguageTask:
        context = self.config.embed.places.size
        across, bos = self.recipe.data.across, self.tokenizer.bos
        return LanguageTask(self.documents, self.recipe.train, context=context, across=across, bos=bos)

    def measure(self, model: Any) -> Measured:
        language_model = LanguageModel(model, self.tokenizer, ABOUT)
        found = language_model.evaluate(self.corpus.valid, stride=language_model.context)
        ((sample,),) = language_model.generate([""], tokens=SHOWN)
        return Measured(found.loss, _scores(found), -found.loss, sample.text + "\n")

    def write(self, folder: Path, model: Any) -> None:
        write_run(folder, model, parameters(model), self.tokenizer, self.tokenizer, ABOUT)

    def finish(self, folder: Path) -> Scores:
        best = LanguageModel.load(folder)
        sets = self.corpus.tests or {"valid": self.corpus.valid}
        found = {name: best.evaluate(texts) for name, texts in sets.items()}
        return {name: {"loss": each.loss, **_scores(each)} for name, each in found.items()}

    def card(self, folder: Path, scores: Scores, best: Mapping[str, Any], minutes: float) -> str:
        rows = [
            f"| {name} | {each['loss']:.4f} | {each['perplexity']:.2f} | {each['bits_per_byte']:.4f} | "
            f"{each['word_perplexity']:.1f} |"
            for name, each in scores.items()
        ]
        header = "| text | nats a token | perplexity | bits a byte | perplexity of words |"
        context = self.config.embed.places.size
        origin = f"from the model in `{self.recipe.start_from}`" if self.start else "from scratch"
        return model_card(
            folder,
            what=f"Goes on with a text. Trained {origin} by heedful on {len(self.corpus.train):,} documents, "
            f"{sum(map(len, self.documents)):,} tokens, from `{self.corpus.name}`.",
            table=[header, "|---|---|---|---|---|", *rows],
            how=f"Scored through a window of {context} tokens that moves by half of it.",
            kept=f"step {best['step']:,}, the best on the validation text ({best['valid_loss']:.4f} nats a token)",
            minutes=minutes,
            use=[f'heed generate {folder} "Once upon a time" --tokens 200', f"heed eval {folder} --data more.txt"],
            limits="It has seen only the text above, and goes on like it. What it says may be false, and may repeat "
            "what it was trained on word for word.",
            notes=self.corpus.notes,
        )


def _scores(found: Likelihood) -> dict[str, float]:
    return {
        "perplexity": found.perplexity,
        "bits_per_byte": found.bits_per_byte,
        "word_perplexity": found.word_perplexity,
    }
