"""Trains a parser on trees."""

from collections import Counter
from collections.abc import Mapping
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar

from heedful.data.parts import Parts, some_of
from heedful.data.text.trees import LEAF, BracketVocabulary, Tree, Treebank, linearise, read_treebank
from heedful.data.tokenizer import Tokenizer, train_tokenizer
from heedful.errors import InputError, are, counted
from heedful.metrics.brackets import bracket_scores
from heedful.metrics.labels import by_luck
from heedful.models import TranslationModel
from heedful.models.presets import PARSERS, translator_config
from heedful.run.card import CardText, Scores
from heedful.run.job import Job, Measurement
from heedful.run.recipe import row_of
from heedful.tasks.parse.recipe import ParseRecipe
from heedful.tasks.parse.use import Parser, ParseSpec
from heedful.tasks.shared.lengths import check_lengths, most_positions
from heedful.tasks.translate.training.epochs import TranslationTask

SHOWN = 4  # trees in a sample


class ParseJob(Job[ParseRecipe, Treebank, TranslationModel]):
    unit: ClassVar = "trees"
    kinds: ClassVar = "a file of bracketed trees, or a folder of such"
    served: ClassVar = Parser
    score_names = ("f1",)
    answers: ParseSpec
    tokenizer: Tokenizer

    def __init__(self, recipe: ParseRecipe, corpus: Treebank | None = None, begun: Path | None = None) -> None:
        if recipe.start_from:
            raise InputError("a parser begins with no other model", where="start_from", fix="leave out --from")
        super().__init__(recipe, corpus, begun)
        corpus, data = self.corpus, recipe.data
        sentences = [" ".join(tree.words()) for tree in corpus.train]
        self.tokenizer = self.kept_tokenizer(
            lambda: train_tokenizer(sentences, kind=data.tokenizer, size=data.vocab_size)
        )
        tokens = [list(linearise(tree)) for tree in corpus.train]
        self.answers = ParseSpec(
            labels=tuple(sorted({token[1:] for own in tokens for token in own if token != LEAF})),
            run=max(_longest_run(own) for own in tokens),
            beam=recipe.decode.beam,
            length_penalty=recipe.decode.length_penalty,
        )
        brackets = BracketVocabulary(self.answers.labels)
        row = row_of(PARSERS, recipe)
        sizes = {"source_vocab": self.tokenizer.size, "target_vocab": brackets.size}
        self.config = translator_config(row, **sizes, joint=False)
        positions = most_positions(self.config)
        longest = min(data.longest, positions or data.longest)
        encoded = list(zip(self.tokenizer.encode(sentences), map(brackets.encode, corpus.train), strict=True))
        self.pairs = [pair for pair in encoded if max(map(len, pair)) < longest]
        if not self.pairs:
            what = f"every tree is longer than data.longest = {longest} tokens"
            raise InputError(what, where=corpus.name, fix="--set data.longest=1000")
        if left_out := len(encoded) - len(self.pairs):
            self.notes.append(f"{counted(left_out, 'tree')} of more than {longest} tokens {are(left_out)} left out")
        if positions is not None:  # data for measuring and scoring are never left out
            for part in (corpus.valid, *corpus.tests.values()):
                words = self.tokenizer.encode([" ".join(tree.words()) for tree in part])
                check_lengths([*words, *map(brackets.encode, part)], positions, where=corpus.name)
        self.fingerprint = sha256("\n".join(map(str, corpus.train)).encode()).hexdigest()
        self.valid = [corpus.valid[i] for i in some_of(len(corpus.valid), recipe.train.eval_sentences)]

    def read(self) -> Parts[list[Tree]]:
        return read_treebank(self.recipe.data.path)

    def describe(self) -> str:
        trees = f"{counted(len(self.pairs), 'tree')} with {counted(len(self.answers.labels), 'label')}"
        return f"{trees}, {self.tokenizer.size:,} tokens in the vocabulary"

    def own_facts(self) -> dict[str, object]:
        labels = list(self.answers.labels)
        return {"trained_on": len(self.pairs), "labels": labels, "vocabulary": self.tokenizer.size}

    def task(self, model: TranslationModel) -> TranslationTask:
        return TranslationTask(self.pairs, self.recipe.train, packs=model.packs)

    def floor(self) -> float:
        """By one bracket around all words, and luck."""
        valid: list[Tree] = self.valid
        top = Counter(next(tree.constituents())[0] for tree in valid).most_common(1)[0][0]
        flat = [Tree(top, (*tree.leaves(),)) for tree in valid]
        return by_luck(len(valid), bracket_scores(valid, flat).f1)

    def measure(self, model: TranslationModel) -> Measurement:
        """Measures the loss under teacher forcing, and EVALB's scores of greedy trees; the sample shows a few of
        them."""
        scores, found = Parser(model, self.tokenizer, self.spec()).measure(self.valid, beam=1)
        lines = [f"model  {ours}\nright  {right}\n" for ours, right in zip(found[:SHOWN], self.valid, strict=False)]
        return Measurement(scores.pop("loss"), scores, scores["f1"], "\n".join(lines))

    def score(self, best: Parser, part: list[Tree]) -> Mapping[str, Any]:
        return best.measure(part)[0]

    def tells(self, folder: Path, scores: Scores, best: Mapping[str, Any]) -> CardText:
        names = ("f1", "precision", "recall", "complete", "f1_40")
        rows = [
            f"| {test} | {' | '.join(f'{100 * float(each[name]):.2f}' for name in names)} |"
            for test, each in scores.items()
        ]
        return CardText(
            what="Parses sentences into constituents.",
            learnt_on=f"{counted(len(self.pairs), 'tree')}, from `{self.corpus.name}`",
            after=f" Labels: {', '.join(self.answers.labels)}.",
            table=[
                "| trees | F1 | precision | recall | all right | F1 to 40 words |",
                "|---|---|---|---|---|---|",
                *rows,
            ],
            how="Labelled brackets as EVALB counts them, by COLLINS.prm, in percent. "
            f"Search: beam {self.answers.beam}, length penalty {self.answers.length_penalty:g}; "
            "nothing but trees of the sentence can be said.",
            kept=f"step {best['step']:,}, the best on the validation trees (F1 {best['f1']:.4f}, greedy)",
            use=[f'heed parse {folder} "The cat sleeps on the mat ."', f"heed eval {folder} --data more.tree"],
            limits="It has seen only the trees above: on other text expect worse than the table says. Words and "
            "punctuation must stand apart, as in a treebank. It does not tell the tags of words.",
        )


def _longest_run(tokens: list[str]) -> int:
    """The most brackets that open between two words."""
    runs = groupby((token for token in tokens if not token.startswith(")")), key=lambda token: token == LEAF)
    return max(len(list(run)) for leaves, run in runs if not leaves)
