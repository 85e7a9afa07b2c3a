"""Training a parser: from a recipe and its trees to a tokenizer, token ids and the model's configuration."""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Any

from heedful.data.tokenizer import train_tokenizer
from heedful.data.trees import LEAF, Brackets, Treebank, linearise, read_treebank
from heedful.errors import InputError
from heedful.models.presets import TRANSLATORS, translator
from heedful.tasks.card import data_facts, model_card
from heedful.tasks.folder import parameters, read_tokenizers, tokenizer_files, write_run
from heedful.tasks.job import Measured, Scores
from heedful.tasks.parse import About, Parser
from heedful.tasks.recipe import Recipe, row_of
from heedful.tasks.translate import TranslationTask, most_places

SHOWN = 4  # trees of a sample


class ParseJob:
    """`corpus` stands in for the recipe's data; `begun`, a run's folder, has the tokenizer. Raises InputError."""

    score_names: tuple[str, ...] = ("f1",)

    def __init__(self, recipe: Recipe, corpus: Treebank | None = None, begun: Path | None = None) -> None:
        self.recipe, data = recipe, recipe.data
        if recipe.start_from:
            raise InputError("a parser begins with no other model", where="start_from", fix="leave out --from")
        if corpus is None and not data.path:
            raise InputError("no data was given", fix="--data PATH: a file of bracketed trees, or a folder of such")
        self.corpus = corpus = corpus or read_treebank(data.path)
        sentences = [" ".join(tree.words()) for tree in corpus.train]
        known = None if begun is None else read_tokenizers(begun)
        self.tokenizer = known[0] if known else train_tokenizer(sentences, kind=data.tokenizer, size=data.vocab_size)
        tokens = [list(linearise(tree)) for tree in corpus.train]
        self.about = About(
            labels=tuple(sorted({token[1:] for own in tokens for token in own if token != LEAF})),
            run=max(_longest_run(own) for own in tokens),
            beam=recipe.decode.beam,
            length_penalty=recipe.decode.length_penalty,
        )
        brackets = Brackets(self.about.labels)
        row = row_of(TRANSLATORS, recipe)
        sizes = {"source_vocab": self.tokenizer.size, "target_vocab": brackets.size}
        self.config = translator(row, **sizes, joint=False)
        longest = min(data.longest, most_places(self.config) or data.longest)
        encoded = list(zip(self.tokenizer.encode(sentences), map(brackets.encode, corpus.train), strict=True))
        self.pairs = [pair for pair in encoded if max(map(len, pair)) < longest]
        if not self.pairs:
            what = f"every tree is longer than data.longest = {longest} tokens"
            raise InputError(what, where=corpus.name, fix="--set data.longest=1000")
        self.notes = list(corpus.notes)
        if left_out := len(encoded) - len(self.pairs):
            self.notes.append(f"{left_out:,} trees of more than {longest} tokens are left out")
        self.fingerprint = hashlib.sha256("\n".join(map(str, corpus.train)).encode()).hexdigest()
        self.tokenizer_hash = self.tokenizer.fingerprint
        self.valid = corpus.valid[: recipe.train.eval_sentences]

    def describe(self) -> str:
        return (
            f"{len(self.pairs):,} trees with {len(self.about.labels)} labels, {self.tokenizer.size:,} tokens in the "
            "vocabulary"
        )

    def tokenizers(self) -> dict[str, bytes]:
        return tokenizer_files(self.tokenizer, self.tokenizer)

    def facts(self) -> dict[str, object]:
        return data_facts(self.corpus, "trees") | {
            "trained_on": len(self.pairs),
            "labels": list(self.about.labels),
            "fingerprint": self.fingerprint,
            "vocabulary": self.tokenizer.size,
            "notes": self.notes,
        }

    def begin(self, model: Any) -> None:
        """Nothing: it starts as it was initialised."""

    def task(self, model: Any) -> TranslationTask:
        return TranslationTask(self.pairs, self.recipe.train, packs=model.packs)

    def measure(self, model: Any) -> Measured:
        """The loss, given the right tokens so far; and EVALB's scores of greedy trees, of which a few are shown."""
        scores, found = Parser(model, self.tokenizer, self.about).evaluate(self.valid, beam=1)
        lines = [f"model  {ours}\nright  {right}\n" for ours, right in zip(found[:SHOWN], self.valid, strict=False)]
        return Measured(scores.pop("loss"), scores, scores["f1"], "\n".join(lines))

    def write(self, folder: Path, model: Any) -> None:
        about = {"task": "parse", **asdict(self.about)}
        write_run(folder, model, parameters(model), self.tokenizer, self.tokenizer, about)

    def finish(self, folder: Path, device: str) -> Scores:
        best = Parser.load(folder, device=device)
        sets = self.corpus.tests or {"valid": self.corpus.valid}
        return {name: best.evaluate(trees)[0] for name, trees in sets.items()}

    def card(self, folder: Path, scores: Scores, best: Mapping[str, Any], minutes: float) -> str:
        names = ("f1", "precision", "recall", "complete", "f1_40")
        rows = [
            f"| {test} | {' | '.join(f'{100 * float(each[name]):.2f}' for name in names)} |"
            for test, each in scores.items()
        ]
        return model_card(
            folder,
            what=f"Parses sentences into constituents. Trained from scratch by heedful on {len(self.pairs):,} trees, "
            f"from `{self.corpus.name}`. Labels: {', '.join(self.about.labels)}.",
            table=[
                "| trees | F1 | precision | recall | all right | F1 to 40 words |",
                "|---|---|---|---|---|---|",
                *rows,
            ],
            how=f"Labelled brackets as EVALB counts them, by COLLINS.prm, in percent. Search: beam {self.about.beam}, "
            f"length penalty {self.about.length_penalty:g}; nothing but trees of the sentence can be said.",
            kept=f"step {best['step']:,}, the best on the validation trees (F1 {best['f1']:.4f}, greedy)",
            minutes=minutes,
            use=[f'heed parse {folder} "The cat sleeps on the mat ."', f"heed eval {folder} --data more.tree"],
            limits="It has seen only the trees above: on other text expect worse than the table says. Words and "
            "punctuation must stand apart, as in a treebank. It does not tell the tags of words.",
            notes=self.corpus.notes,
        )


def _longest_run(tokens: list[str]) -> int:
    """The most brackets that open between two words."""
    runs = groupby((token for token in tokens if not token.startswith(")")), key=lambda token: token == LEAF)
    return max(len(list(run)) for leaves, run in runs if not leaves)
