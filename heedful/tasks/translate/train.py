"""Training a translator: pairs of texts in, a model out. A summariser is one, of long texts and short ones."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import compress
from pathlib import Path
from textwrap import shorten
from typing import Any, ClassVar

from heedful.core.seeds import shuffled
from heedful.data.batches import OUR_ENDS, Ends, PairBatch, bucket_rows, pack_rows
from heedful.data.parts import spread
from heedful.data.text.corpus import Corpus, read_parallel
from heedful.data.text.doubts import doubts
from heedful.data.text.pairs import Pairs
from heedful.data.text.quality.told import in_a_line
from heedful.data.tokenizer import Tokenizer, train_tokenizer
from heedful.errors import InputError
from heedful.metrics.labels import entropy
from heedful.metrics.names import LABELS
from heedful.metrics.texts import METRICS, rouge_scorer
from heedful.models import TranslationModel, config_from
from heedful.models.presets import TRANSLATORS, translator_config
from heedful.run.card import CardText, Scores, fingerprint
from heedful.run.folder import read_tokenizers, tokenizer_files
from heedful.run.job import Job, Measurement
from heedful.run.recipe import row_of
from heedful.run.start import Start, copy_weights, read_start
from heedful.tasks.shared.lengths import check_lengths, cut_at, length_facts, most_positions
from heedful.tasks.shared.sections import PackedTrain
from heedful.tasks.translate.languages import directed_start
from heedful.tasks.translate.losses import ends_of, framed_pairs, training_loss
from heedful.tasks.translate.recipe import TranslateRecipe
from heedful.tasks.translate.use import Translator
from heedful.tasks.translate.variants import Variants, varies
from heedful.training.loss import Loss

Ids = list[int]
SMOOTHING = 0.1  # of the labels, unless the recipe says otherwise (Vaswani et al. 2017, section 5.4)


class TranslationTask:
    """Batches of sentence pairs, and the cross-entropy of the target's tokens.

    A decoder alone also learns from the source's, which its loss does not count: the losses of all models compare.
    A model that can keep sentences apart gets rows packed with several of them, of one shape all along; one that
    cannot gets a sentence a row, sorted by length.
    """

    def __init__(
        self,
        pairs: Sequence[tuple[Ids, Ids]],
        plan: PackedTrain,
        *,
        packs: bool,
        ends: Ends = OUR_ENDS,
        weights: Sequence[float] = (),
        variants: Variants | None = None,
    ) -> None:
        """`weights`: how often an epoch has each pair; once, where there are none. `variants` has other pairs in each
        epoch."""
        self.plan, self.packs, self.ends = plan, packs, ends
        self.weights, self.variants = weights, variants
        self.pairs = pairs
        longest = max(max(len(source), len(target)) + 1 for source, target in pairs)
        self.row = max(plan.row, -(-longest // 16) * 16)

    def batches(self, epoch: int, model: object) -> list[PairBatch]:
        plan = self.plan
        order: Sequence[int] = (
            weighted_order(self.weights, plan.seed, epoch)
            if self.weights
            else shuffled(len(self.pairs), plan.seed, epoch)
        )
        pairs = self.pairs
        if self.variants is not None:
            pairs = self.variants.of(pairs, order, epoch, row=self.row)
            order = range(len(pairs))
        if self.packs:
            rows = max(1, plan.tokens // self.row)
            return list(pack_rows(pairs, order, row=self.row, rows=rows, ends=self.ends))
        made = bucket_rows(pairs, order, tokens=max(plan.tokens, self.row), ends=self.ends)
        # The order in which lengths come is drawn too: long sentences last would be what is remembered.
        return [made[i] for i in shuffled(len(made), plan.seed + 1, epoch)]

    def loss(self, model: TranslationModel, batch: PairBatch) -> Loss:
        smoothing = SMOOTHING if self.plan.smoothing is None else self.plan.smoothing
        return training_loss(model, batch, smoothing=smoothing)


def weighted_order(weights: Sequence[float], seed: int, epoch: int) -> list[int]:
    """The numbers of an epoch's pairs, in random order: of those with a weight of 2.2 all twice, and another fifth of
    them each epoch."""
    groups: dict[float, list[int]] = {}
    for i, weight in enumerate(weights):
        groups.setdefault(weight, []).append(i)
    chosen: list[int] = []
    for number, (weight, rows) in enumerate(sorted(groups.items()), 1):
        chosen += rows * int(weight)
        drawn = shuffled(len(rows), seed + number, epoch)
        chosen += [rows[i] for i in drawn[: round(weight % 1 * len(rows))]]
    return [chosen[i] for i in shuffled(len(chosen), seed, epoch)]


class TranslateJob(Job[TranslateRecipe, Pairs, TranslationModel]):
    unit: ClassVar = "pairs"
    kinds: ClassVar = "a folder or .zip, a .tsv, .csv, .jsonl or .json file, or two files, one a language"
    served: ClassVar = Translator
    start: Start | None

    def __init__(self, recipe: TranslateRecipe, corpus: Corpus | None = None, begun: Path | None = None) -> None:
        super().__init__(recipe, corpus, begun)
        corpus, data = self.corpus, recipe.data
        assert corpus is not None
        pairs = corpus.train.apart()
        tests = {pair for part in corpus.tests.values() for pair in zip(part.source, part.target, strict=True)}
        wrong = doubts(pairs.source, pairs.target, tests)
        if data.scores == "bleu":
            wrong += in_a_line(corpus.train, corpus.source, corpus.target)
        self.notes[:0] = [*corpus.taken, *self._direction(corpus), *wrong]
        self.metric = METRICS[data.scores]
        self.score_names = self.metric.names
        if data.scores == "rouge":
            rouge_scorer()  # found missing now, and not when the training is over
        if self.start:
            self.start, told = directed_start(self.start, corpus.source, corpus.target)
            self.notes += [told] if told else []
            self.source, self.target = self.start.source, self.start.target
            self.config = config_from(self.start.model, where=f"{recipe.start_from}/config.json")
        else:
            row = row_of(TRANSLATORS, recipe)
            known = None if begun is None else read_tokenizers(begun)
            self.source, self.target = known or _train_tokenizers(recipe, corpus)
            sizes = {"source_vocab": self.source.size, "target_vocab": self.target.size}
            self.config = translator_config(row, **sizes, joint=data.joint)
        self.around = self.start.around if self.start else {}
        self.ends = ends_of(self.target, self.around, where=recipe.start_from)
        positions = most_positions(self.config)
        self.longest = data.longest if positions is None else min(data.longest, positions)
        sources, beyond = cut_at(self.source.encode(pairs.source), self._cut())
        if any(beyond):
            self.notes.append(f"{sum(map(bool, beyond)):,} sources are cut after {self.longest} tokens")
        encoded = self._framed(zip(sources, self.target.encode(pairs.target), strict=True))
        fits = [max(map(len, pair)) < self.longest for pair in encoded]
        self.pairs = [*compress(encoded, fits)]
        self.variants = None
        if varies(recipe):
            texts = [*compress(zip(pairs.source, pairs.target, strict=True), fits)]
            sides = self.source, self.target
            self.variants = Variants(texts, sides, recipe, framed=self._framed, longest=self.longest)
        weights = corpus.weights
        self.weights = [weights.get(pairs.file_of(i), 1.0) for i, fit in enumerate(fits) if fit] if weights else []
        if len(self.pairs) < len(encoded):
            self.notes.append(
                f"{len(encoded) - len(self.pairs):,} pairs of more than {self.longest} tokens are left out"
            )
        if not self.pairs:
            what = f"every pair is longer than data.longest = {self.longest} tokens"
            fix = "--set data.longest=1000, or --set data.cut=true where only the sources are long"
            raise InputError(what, where=pairs.name, fix=fix)
        self.lengths = length_facts([*compress(sources, fits)], begun)
        self.fingerprint = fingerprint((*pairs.source, "", *pairs.target), end="\n")
        self.tokenizer_hash = f"{self.source.fingerprint} {self.target.fingerprint}"
        if positions is not None:
            self._check_lengths(positions)
        self.valid = corpus.valid.rows(range(min(recipe.train.eval_sentences, len(corpus.valid))))

    def read(self) -> Corpus:
        data = self.recipe.data
        return read_parallel(data.path, source=data.source or None, target=data.target or None)

    def read_start(self) -> Start | None:
        return read_start(self.recipe, self.begun, "translate")

    def _direction(self, corpus: Corpus) -> list[str]:
        """What becomes what, as it was found in the data, before time is spent on it."""
        purpose = self.recipe.PURPOSE.format(source=corpus.source, target=corpus.target).removesuffix(".")
        other_way = f" (the other way: {corpus.other_way})" if corpus.other_way else ""
        first = (shorten(side[0], 60, placeholder=" ...") for side in (corpus.train.source, corpus.train.target))
        return [f"{purpose[0].lower()}{purpose[1:]}{other_way}", f"the first pair: {' -> '.join(first)}"]

    def describe(self) -> str:
        sizes = " and ".join(f"{side.size:,}" for side in dict.fromkeys((self.source, self.target)))
        return f"{len(self.pairs):,} pairs, {sizes} tokens in the vocabulary"

    def tokenizers(self) -> dict[str, bytes]:
        return tokenizer_files(self.source, self.target)

    def own_facts(self) -> dict[str, object]:
        joint = self.source is self.target
        return {
            "source": self.corpus.source,
            "target": self.corpus.target,
            "trained_on": len(self.pairs),
            "example": self.valid.source[0] if len(self.valid) else "",
            "vocabulary": {"source": self.source.size, "target": self.target.size, "joint": joint},
        }

    def spec(self) -> dict[str, Any]:
        """What the model is for, and how it searches unless told otherwise."""
        decode, data = self.recipe.decode.model_dump(exclude_none=True), self.recipe.data
        about: dict[str, Any] = {"task": "translate", "decode": decode}
        about |= {"source": self.corpus.source, "target": self.corpus.target} | self.lengths
        about |= self.around | ({"longest_source": self._cut()} if data.cut else {})
        return about | ({"scores": data.scores} if data.scores != "bleu" else {})

    def portion(self, valid: Pairs, share: float) -> Pairs:
        return valid.rows(spread(len(valid), share))

    def begin(self, model: TranslationModel) -> None:
        if self.start:
            copy_weights(model, self.recipe.start_from)

    def task(self, model: TranslationModel) -> TranslationTask:
        return TranslationTask(
            self.pairs,
            self.recipe.train,
            packs=model.packs,
            ends=self.ends,
            weights=self.weights,
            variants=self.variants,
        )

    def chance(self) -> float:
        return entropy(token for _, target in self.pairs for token in target)

    def measure(self, model: TranslationModel) -> Measurement:
        """The loss, given the target's words; and the scores of greedy translations, of which a few are shown."""
        translator = Translator(model, self.source, self.target, self.spec())
        scores, made = translator.evaluate(self.valid, beam=1)
        found = {name: getattr(scores, name) for name in self.score_names}
        shown = zip(made[:8], self.valid.target, strict=False)
        lines = [f"source     {t.source}\nmodel      {t.text}\nreference  {reference}\n" for t, reference in shown]
        return Measurement(translator.loss(self.valid), found, found[self.metric.rank], "\n".join(lines))

    def score(self, best: Translator, part: Pairs) -> Mapping[str, Any]:
        return {key: value for key, value in asdict(best.evaluate(part)[0]).items() if value is not None}

    def tells(self, folder: Path, scores: Scores, best: Mapping[str, Any]) -> CardText:
        corpus, decode, first = self.corpus, self.recipe.decode, next(iter(scores.values()))
        verb, names, rank = self.recipe.task, self.score_names, self.metric.rank
        what, example = (
            text.format(source=corpus.source, target=corpus.target)
            for text in (self.recipe.PURPOSE, self.recipe.EXAMPLE)
        )
        columns = [LABELS[name] for name in names] + ["exactly right"] * ("exact" in first)
        rows = []
        tested = dict(self.tests())
        for name, each in scores.items():
            cells = [f"{each[own]:.1f}" for own in names]
            cells += [f"{100 * float(each['exact']):.1f} %"] if "exact" in each else []
            rows.append(f"| {name} | {len(tested[name]):,} | {' | '.join(cells)} |")
        signatures = " and ".join(f"`{first[key]}`" for key in ("signature", "chrf_signature") if key in first)
        return CardText(
            what=what,
            learnt_on=f"{len(corpus.train):,} pairs, from `{corpus.train.name}`",
            table=[f"| test set | pairs | {' | '.join(columns)} |", "|---|---|" + "---|" * len(columns), *rows],
            how=f"Search: beam {decode.beam}, length penalty {decode.length_penalty:g}. Scored by {signatures}.",
            kept=f"step {best['step']:,}, the best on the validation pairs ({LABELS[rank]} {best[rank]:.1f}, greedy)",
            use=[
                f'heed {verb} {folder} "{example}"',
                f'heed look {folder} "{example}" --out attention.html',
            ],
            limits="It has seen only the text above, and translates what is like it: on other text expect worse than "
            "the table says. It can leave out, invent and repeat; nothing in it checks facts.",
        )

    def _check_lengths(self, positions: int) -> None:
        """Raises InputError where there is a text to be measured on that the model cannot read."""
        for pairs in (self.corpus.valid, *self.corpus.tests.values()):
            sides = cut_at(self.source.encode(pairs.source), self._cut())[0], self.target.encode(pairs.target)
            whole = framed_pairs(zip(*sides, strict=True), self.around)
            check_lengths([ids for pair in whole for ids in pair], positions, where=pairs.name)

    def _framed(self, pairs: Iterable[tuple[Ids, Ids]]) -> list[tuple[Ids, Ids]]:
        """As the model reads them: sources that are too long are cut, where they may be."""
        return framed_pairs(((source[: self._cut()], target) for source, target in pairs), self.around)

    def _cut(self) -> int | None:
        """How many tokens of a source are read; None: all."""
        return self.longest - 1 - len(self.around.get("before", [])) if self.recipe.data.cut else None


def _train_tokenizers(recipe: TranslateRecipe, corpus: Corpus) -> tuple[Tokenizer, Tokenizer]:
    """Tokenizers trained on both sides together, or on each alone."""
    kind, size, pairs = recipe.data.tokenizer, recipe.data.vocab_size, corpus.train
    if recipe.data.joint:
        tokenizer = train_tokenizer([*pairs.source, *pairs.target], kind=kind, size=size)
        return tokenizer, tokenizer
    source, target = (train_tokenizer(side, kind=kind, size=size) for side in (pairs.source, pairs.target))
    return source, target
