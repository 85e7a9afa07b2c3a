"""Training a translator: from a recipe and its sentence pairs to tokenizers, token ids and the model's configuration.

Whatever is wrong with either is found here, before anything is written.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from heedful.data.text import Corpus, read_parallel
from heedful.data.tokenizer import Tokenizer, train_tokenizer
from heedful.errors import InputError
from heedful.models import config_from
from heedful.models.presets import TRANSLATORS, translator
from heedful.tasks.card import data_facts, model_card
from heedful.tasks.folder import parameters, read_tokenizers, tokenizer_files, write_run
from heedful.tasks.job import Measured, Scores
from heedful.tasks.recipe import Recipe, row_of
from heedful.tasks.scores import LABELS, METRICS, rouge_scorer
from heedful.tasks.start import copy_weights, read_start
from heedful.tasks.translate import (
    TranslationTask,
    Translator,
    check_places,
    cut_at,
    ends_of,
    framed,
    most_places,
)


class TranslationJob:
    """`corpus` stands in for the recipe's data; `begun`, a run's folder, has the tokenizers. Raises InputError."""

    def __init__(self, recipe: Recipe, corpus: Corpus | None = None, begun: Path | None = None) -> None:
        self.recipe = recipe
        self.corpus = corpus = corpus or _read(recipe)
        data, pairs = recipe.data, corpus.train.apart()
        self.metric = METRICS[data.scores]
        self.score_names = self.metric.names
        if data.scores == "rouge":
            rouge_scorer()  # found missing now, and not when the training is over
        self.notes = list(corpus.notes)
        self.start = read_start(recipe, begun, "translate")
        if self.start:
            self.source, self.target = self.start.source, self.start.target
            self.config = config_from(self.start.model, where=f"{recipe.start_from}/config.json")
        else:
            row = row_of(TRANSLATORS, recipe)
            known = None if begun is None else read_tokenizers(begun)
            self.source, self.target = known or _train_tokenizers(recipe, corpus)
            sizes = {"source_vocab": self.source.size, "target_vocab": self.target.size}
            self.config = translator(row, **sizes, joint=data.joint)
        self.around = self.start.around if self.start else {}
        self.ends = ends_of(self.target, self.around, where=recipe.start_from)
        places = most_places(self.config)
        self.longest = data.longest if places is None else min(data.longest, places)
        sources, beyond = cut_at(self.source.encode(pairs.source), self._cut())
        if any(beyond):
            self.notes.append(f"{sum(map(bool, beyond)):,} sources are cut after {self.longest} tokens")
        encoded = framed(zip(sources, self.target.encode(pairs.target), strict=True), self.around)
        self.pairs = [pair for pair in encoded if max(map(len, pair)) < self.longest]
        if len(self.pairs) < len(encoded):
            self.notes.append(
                f"{len(encoded) - len(self.pairs):,} pairs of more than {self.longest} tokens are left out"
            )
        if not self.pairs:
            what = f"every pair is longer than data.longest = {self.longest} tokens"
            fix = "--set data.longest=1000, or --set data.cut=true where only the sources are long"
            raise InputError(what, where=pairs.name, fix=fix)
        digest = hashlib.sha256()
        for side in (*pairs.source, "", *pairs.target):
            digest.update(side.encode() + b"\n")
        self.fingerprint = digest.hexdigest()
        self.tokenizer_hash = f"{self.source.fingerprint} {self.target.fingerprint}"
        if places is not None:
            self._check_lengths(places)
        self.valid = corpus.valid.rows(range(min(recipe.train.eval_sentences, len(corpus.valid))))

    def describe(self) -> str:
        sizes = " and ".join(f"{side.size:,}" for side in dict.fromkeys((self.source, self.target)))
        return f"{len(self.pairs):,} pairs, {sizes} tokens in the vocabulary"

    def tokenizers(self) -> dict[str, bytes]:
        return tokenizer_files(self.source, self.target)

    def facts(self) -> dict[str, object]:
        own = {
            "source": self.corpus.source,
            "target": self.corpus.target,
            "trained_on": len(self.pairs),
            "fingerprint": self.fingerprint,
            "vocabulary": {
                "source": self.source.size,
                "target": self.target.size,
                "joint": self.source is self.target,
            },
            "notes": self.notes,
        }
        return data_facts(self.corpus, "pairs") | own | (self.start.facts() if self.start else {})

    def begin(self, model: Any) -> None:
        if self.start:
            copy_weights(model, self.recipe.start_from)

    def task(self, model: Any) -> TranslationTask:
        return TranslationTask(self.pairs, self.recipe.train, packs=model.packs, ends=self.ends)

    def measure(self, model: Any) -> Measured:
        """The loss, given the target's words; and the scores of greedy translations, of which a few are shown."""
        translator = self._translator(model)
        scores, made = translator.evaluate(self.valid, beam=1)
        found = {name: getattr(scores, name) for name in self.score_names}
        shown = zip(made[:8], self.valid.target, strict=False)
        lines = [f"source     {t.source}\nmodel      {t.text}\nreference  {reference}\n" for t, reference in shown]
        return Measured(translator.loss(self.valid), found, found[self.metric.rank], "\n".join(lines))

    def write(self, folder: Path, model: Any) -> None:
        write_run(folder, model, parameters(model), self.source, self.target, self._about())

    def finish(self, folder: Path, device: str) -> Scores:
        best = Translator.load(folder, device=device)
        found = {name: asdict(best.evaluate(pairs)[0]) for name, pairs in self.corpus.tests.items()}
        return {name: {key: value for key, value in each.items() if value is not None} for name, each in found.items()}

    def card(self, folder: Path, scores: Scores, best: Mapping[str, Any], minutes: float) -> str:
        corpus, decode, first = self.corpus, self.recipe.decode, next(iter(scores.values()))
        origin = f"from the model in `{self.recipe.start_from}`" if self.start else "from scratch"
        verb, names, rank = self.recipe.task, self.score_names, self.metric.rank
        what, example = f"Translates {corpus.source} to {corpus.target}", f"A sentence in {corpus.source}."
        if verb == "summarise":
            what, example = "Summarises texts", "A long text."
        columns = [LABELS[name] for name in names] + ["exactly right"] * ("exact" in first)
        rows = []
        for name, each in scores.items():
            cells = [f"{each[own]:.1f}" for own in names]
            cells += [f"{100 * float(each['exact']):.1f} %"] if "exact" in each else []
            rows.append(f"| {name} | {len(corpus.tests[name]):,} | {' | '.join(cells)} |")
        signatures = " and ".join(f"`{first[key]}`" for key in ("signature", "chrf_signature") if key in first)
        return model_card(
            folder,
            what=f"{what}. Trained {origin} by heedful on {len(corpus.train):,} pairs, from `{corpus.train.name}`.",
            table=[
                f"| test set | pairs | {' | '.join(columns)} |",
                "|---|---|" + "---|" * len(columns),
                *rows,
            ],
            how=f"Search: beam {decode.beam}, length penalty {decode.length_penalty:g}. Scored by {signatures}.",
            kept=f"step {best['step']:,}, the best on the validation pairs ({LABELS[rank]} {best[rank]:.1f}, greedy)",
            minutes=minutes,
            use=[
                f'heed {verb} {folder} "{example}"',
                f'heed look {folder} "{example}" --out attention.html',
            ],
            limits="It has seen only the text above, and translates what is like it: on other text expect worse than "
            "the table says. It can leave out, invent and repeat; nothing in it checks facts.",
            notes=corpus.notes,
        )

    def _check_lengths(self, places: int) -> None:
        """Raises InputError where there is a text to be measured on that the model cannot read."""
        for pairs in (self.corpus.valid, *self.corpus.tests.values()):
            sides = cut_at(self.source.encode(pairs.source), self._cut())[0], self.target.encode(pairs.target)
            whole = framed(zip(*sides, strict=True), self.around)
            check_places([ids for pair in whole for ids in pair], places, where=pairs.name)

    def _cut(self) -> int | None:
        """How many tokens of a source are read; None: all."""
        return self.longest - 1 - len(self.around.get("before", [])) if self.recipe.data.cut else None

    def _translator(self, model: Any) -> Translator:
        return Translator(model, self.source, self.target, self._about())

    def _about(self) -> dict[str, object]:
        """task.json: what the model is for, and how it searches unless told otherwise."""
        decode, data = self.recipe.decode.model_dump(exclude_none=True), self.recipe.data
        about: dict[str, object] = {"task": "translate", "decode": decode}
        about |= {"source": self.corpus.source, "target": self.corpus.target}
        about |= self.around | ({"longest_source": self._cut()} if data.cut else {})
        return about | ({"scores": data.scores} if data.scores != "bleu" else {})


def _read(recipe: Recipe) -> Corpus:
    data = recipe.data
    if not data.path:
        raise InputError("no data was given", fix="--data PATH: a folder, a .tsv, .csv or .jsonl file")
    return read_parallel(data.path, source=data.source or None, target=data.target or None)


def _train_tokenizers(recipe: Recipe, corpus: Corpus) -> tuple[Tokenizer, Tokenizer]:
    """Tokenizers trained on both sides together, or on each alone."""
    kind, size, pairs = recipe.data.tokenizer, recipe.data.vocab_size, corpus.train
    if recipe.data.joint:
        tokenizer = train_tokenizer([*pairs.source, *pairs.target], kind=kind, size=size)
        return tokenizer, tokenizer
    source, target = (train_tokenizer(side, kind=kind, size=size) for side in (pairs.source, pairs.target))
    return source, target
