"""Training a denoiser: from a recipe and its text to a tokenizer, token ids and the model's configuration."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.data.documents import Documents, read_documents
from heedful.data.noise import sentences_of, span_count
from heedful.data.tokenizer import Tokenizer, train_tokenizer
from heedful.errors import InputError
from heedful.models import config_from
from heedful.models.presets import TRANSLATORS, translator
from heedful.tasks.card import data_facts, model_card
from heedful.tasks.denoise import DenoisingTask, check_words, evaluate, fixed, make_noise, read_passages, restored
from heedful.tasks.folder import parameters, read_tokenizers, tokenizer_files, write_run
from heedful.tasks.job import Measured, Scores
from heedful.tasks.recipe import Recipe, row_of
from heedful.tasks.start import copy_weights, read_start
from heedful.tasks.translate import Translator, ends_of, most_places

SHOWN = 4  # passages of a sample


class DenoiseJob:
    """`corpus` stands in for the recipe's data; `begun`, a run's folder, has the tokenizer. Raises InputError."""

    score_names: tuple[str, ...] = ("perplexity",)

    def __init__(self, recipe: Recipe, corpus: Documents | None = None, begun: Path | None = None) -> None:
        self.recipe, data = recipe, recipe.data
        if corpus is None and not data.path:
            raise InputError("no data was given", fix="--data PATH: a .txt or .jsonl file, or a folder of such")
        self.corpus = corpus = corpus or read_documents(data.path)
        self.start = read_start(recipe, begun, "translate")
        if self.start:
            self.tokenizer = self.start.source
            self.config = config_from(self.start.model, where=f"{recipe.start_from}/config.json")
        else:
            row = row_of(TRANSLATORS, recipe)
            known = None if begun is None else read_tokenizers(begun)
            self.tokenizer = known[0] if known else _train_tokenizer(recipe, corpus)
            size = self.tokenizer.size
            self.config = translator(row, source_vocab=size, target_vocab=size, joint=True)
        self.around = self.start.around if self.start else {}
        self.noise = make_noise(data.objective, self.tokenizer, self.around, where=recipe.start_from)
        self.ends = ends_of(self.tokenizer, self.around, where=recipe.start_from)
        most = min(data.longest, most_places(self.config) or data.longest) - 1
        self.longest = most - max(len(self.noise.before), len(self.noise.begin))
        self.passages = read_passages(corpus.train, self.tokenizer, self.longest)
        valid = read_passages(corpus.valid, self.tokenizer, self.longest)
        if not self.passages or not valid:
            raise InputError("no text to learn from or to be measured on", where=corpus.name, fix="give more text")
        check_words(self.passages, self.noise)
        self.valid = fixed(valid[: recipe.train.eval_sentences], self.noise)
        self.notes = list(corpus.notes)
        digest = hashlib.sha256()
        for text in corpus.train:
            digest.update(text.encode() + b"\0")
        self.fingerprint = digest.hexdigest()
        self.tokenizer_hash = self.tokenizer.fingerprint

    def describe(self) -> str:
        return f"{len(self.passages):,} passages, {self._tokens():,} tokens, {self.tokenizer.size:,} in the vocabulary"

    def tokenizers(self) -> dict[str, bytes]:
        return tokenizer_files(self.tokenizer, self.tokenizer)

    def facts(self) -> dict[str, object]:
        own = {
            "passages": len(self.passages),
            "tokens": self._tokens(),
            "fingerprint": self.fingerprint,
            "vocabulary": self.tokenizer.size,
            "notes": self.notes,
        }
        return data_facts(self.corpus, "documents") | own | (self.start.facts() if self.start else {})

    def begin(self, model: Any) -> None:
        if self.start:
            copy_weights(model, self.recipe.start_from)

    def task(self, model: Any) -> DenoisingTask:
        return DenoisingTask(self.passages, self.noise, self.recipe.train, packs=model.packs, ends=self.ends)

    def measure(self, model: Any) -> Measured:
        """The loss on noised validation text, and what the model makes of some of it."""
        found = restored(model, self.valid, self.ends)
        shown, show = self.valid[:SHOWN], self.tokenizer.decode_marked
        served = Translator(model, self.tokenizer, self.tokenizer, self._about())
        sources = [source[len(self.noise.before) :] for source, _ in shown]
        made = served.hypotheses(sources, served.decoding(beam=1))
        lines = [
            f"source  {show(source)}\ntarget  {show(target)}\nmodel   {show(best[0].tokens)}\n"
            for (source, target), best in zip(shown, made, strict=True)
        ]
        return Measured(found.loss, {"perplexity": found.perplexity}, -found.loss, "\n".join(lines))

    def write(self, folder: Path, model: Any) -> None:
        write_run(folder, model, parameters(model), self.tokenizer, self.tokenizer, self._about())

    def finish(self, folder: Path, device: str) -> Scores:
        best = Translator.load(folder, device=device)
        found = {
            name: evaluate(best, texts) for name, texts in (self.corpus.tests or {"valid": self.corpus.valid}).items()
        }
        return {name: {"loss": each.loss, "perplexity": each.perplexity} for name, each in found.items()}

    def card(self, folder: Path, scores: Scores, best: Mapping[str, Any], minutes: float) -> str:
        rows = [f"| {name} | {each['loss']:.4f} | {each['perplexity']:.2f} |" for name, each in scores.items()]
        hidden, origin = self.recipe.data.objective == "spans", self.recipe.start_from
        mark = "<extra_id_0>" if hidden else "<mask>"
        task = "says what was hidden" if hidden else "says the text as it was"
        start = f"from the model in `{origin}`" if self.start else "from scratch"
        return model_card(
            folder,
            what=f"Reads a text that was made worse and {task}: a start for models that make texts of texts. Trained "
            f"{start} by heedful on {len(self.passages):,} passages, {self._tokens():,} tokens, from "
            f"`{self.corpus.name}`.",
            table=["| text | nats a token | perplexity |", "|---|---|---|", *rows],
            how=f"Scored on texts in passages of at most {self.longest} tokens, noised alike each time.",
            kept=f"step {best['step']:,}, the best on the validation text ({best['valid_loss']:.4f} nats a token)",
            minutes=minutes,
            use=[
                f"heed train translate --data PAIRS.tsv --from {folder} --out runs/tuned",
                f'heed translate {folder} "My sister {mark} a book."',
                f"heed eval {folder} --data more.txt",
            ],
            limits="It has seen only the text above, and puts right what is like it. What it says may be false.",
            notes=self.corpus.notes,
        )

    def _tokens(self) -> int:
        return sum(len(sentence) for passage in self.passages for sentence in passage)

    def _about(self) -> dict[str, object]:
        """task.json: what the model is for, how it was noised, and how it searches unless told otherwise."""
        objective = self.recipe.data.objective
        return {
            "task": "translate",
            "source": "noised text",
            "target": "what was hidden" if objective == "spans" else "text",
            "decode": self.recipe.decode.model_dump(exclude_none=True),
            "noise": {"objective": objective, "longest": self.longest},
        } | self.around


def _train_tokenizer(recipe: Recipe, corpus: Documents) -> Tokenizer:
    """With a mask, or with as many sentinels as the longest passage needs."""
    data = recipe.data
    spans = data.objective == "spans"
    return train_tokenizer(
        [sentence for text in corpus.train for sentence in sentences_of(text)],
        kind=data.tokenizer,
        size=data.vocab_size,
        mask=not spans,
        sentinels=span_count(data.longest)[1] + 1 if spans else 0,
    )
