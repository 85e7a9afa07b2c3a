"""Training a translator: pairs of texts in, a model out. A summariser is one too, of long and short texts."""

import math
import shlex
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import compress, islice
from pathlib import Path
from textwrap import shorten
from typing import Any, ClassVar

from heedful.apply.inference import for_inference
from heedful.data.lines import is_composed
from heedful.data.parts import some_of, spread
from heedful.data.stored import MOST_TOKENS, Prepared, StoredPairs
from heedful.data.text.corpus import Corpus, by_direction, read_parallel, with_synthetic
from heedful.data.text.doubts import doubts
from heedful.data.text.mix import read_mixes
from heedful.data.text.pairs import Pairs, told_apart
from heedful.data.text.quality.told import in_three_lines
from heedful.data.text.reading import paths_of
from heedful.data.tokenizer import Ids, Tokenizer
from heedful.errors import InputError, are, counted
from heedful.metrics.labels import entropy
from heedful.metrics.names import BEFORE, SPEED, TEACHER
from heedful.metrics.texts import METRICS, rouge_scorer
from heedful.models import TranslationModel, config_from
from heedful.models.presets import TRANSLATORS, translator_config
from heedful.run.card import CardText, Scores, data_facts, fingerprint
from heedful.run.folder import read_textless_run
from heedful.run.job import Job, Measurement
from heedful.run.prepared import prepared_for
from heedful.run.recipe import row_of
from heedful.run.start import Start, read_start
from heedful.run.tokenizers import read_tokenizers, tokenizer_files
from heedful.store import files
from heedful.tasks.shared.lengths import check_lengths, cut_at, most_positions
from heedful.tasks.shared.preparing.opened import open_pairs, prepared_facts
from heedful.tasks.translate.calibration import calibrated
from heedful.tasks.translate.capitals import has_capitals
from heedful.tasks.translate.confidence import FILE, Calibration, write_calibration
from heedful.tasks.translate.languages import tag_token
from heedful.tasks.translate.recipe import TranslateRecipe
from heedful.tasks.translate.scoring import known
from heedful.tasks.translate.segment import source_facts
from heedful.tasks.translate.spec import NAME, TASK, TokenLengths, TranslatorSpec, spec_in
from heedful.tasks.translate.training.card import card_text
from heedful.tasks.translate.training.directions import (
    ONE_WAY,
    another_direction,
    directed_start,
    languages_known,
    spec_of_start,
    specs_of,
    tags_said,
)
from heedful.tasks.translate.training.epochs import TranslationTask
from heedful.tasks.translate.training.framing import Framing, Kind
from heedful.tasks.translate.training.losses import ends_of, framed_pairs
from heedful.tasks.translate.training.prepared import refuse_unprepared
from heedful.tasks.translate.training.synthetic import teacher_of, with_tag
from heedful.tasks.translate.training.tokenizers import train_tokenizers
from heedful.tasks.translate.training.variants import Variants, varies
from heedful.tasks.translate.use import Translator

WARM = 8  # sentences that are translated before a model's speed is measured
ENOUGH = 50_000  # pairs to learn two languages from, and nothing else
# What translations of less than this BLEU are good for.
USES = (
    (10.0, "of no use yet: its translations seldom keep the meaning"),
    (20.0, "good for a hint of what a text is about, and for no more"),
    (30.0, "good for the gist, with grave errors"),
    (40.0, "good for drafts that a translator corrects"),
    (math.inf, "good for drafts that need few corrections"),
)
CALIBRATED = 400  # pairs of the validation data that confidence is calibrated on, at most


class TranslateJob(Job[TranslateRecipe, Corpus, TranslationModel]):
    unit: ClassVar = "pairs"
    kinds: ClassVar = "a folder or .zip, a .tsv, .csv, .jsonl or .json file, or two files, one a language"
    served: ClassVar = Translator
    starts: ClassVar = ("translate",)
    start: Start | None
    calibration: Calibration | None = None
    pairs: Sequence[tuple[Ids, Ids]]  # as the model reads them
    variants: Variants | None = None
    weights: Sequence[float] = ()
    mixed: Sequence[tuple[range, float]] = ()
    lengths: TokenLengths | None  # of the training sources

    def __init__(self, recipe: TranslateRecipe, corpus: Corpus | None = None, begun: Path | None = None) -> None:
        super().__init__(recipe, corpus, begun)
        data, read = recipe.data, self.corpus
        self.metric = METRICS[data.scores]
        self.score_names = self.metric.names
        if data.scores == "rouge":
            rouge_scorer()  # raises now where it is not installed, and not after the training
        if read.prepared is not None:
            refuse_unprepared(recipe, read.prepared, self.start)
        written = data.synthetic if self.start else [*map(with_tag, data.synthetic)]
        self.corpus = with_synthetic(read, written, data.originals)
        self.mixes = read_mixes(data.mix, self.corpus)
        self.corpora = [self.corpus, *(mix.corpus for mix in self.mixes)]  # all training data
        self.notes = self._notes(read)
        if self.start and not self.corpus.directions:
            self.start, told = directed_start(self.start, self.corpus.source, self.corpus.target)
            self.notes += [told] if told else []
        parts = [corpus.train.apart() for corpus in self.corpora]
        self.prepared = read.prepared
        # Pairs of the data, one for each reference, and pairs that models wrote.
        self.originals = len(read.train.apart()) if self.prepared is None else len(self.prepared.stored)
        self.synthetic = 0 if self.prepared is not None else len(parts[0]) - self.originals
        tags = tags_said(parts)
        self.tag = tags[0] if parts[0].tags and all(parts[0].tags) else ""  # the default, if all pairs have a tag
        self.source, self.target, self.config = self._model(tags)
        self.framing = self._framing(tags)
        self.around = self.framing.around
        self.ends = ends_of(self.target, self.around, where=recipe.start_from)
        texts = [text for part in parts for text in part.source], [text for part in parts for text in part.target]
        if self.prepared is None:
            self._encode(parts, texts)
        else:
            self._take(self.prepared)
        self.several, self.signs = source_facts(texts[0], self.corpus.source)
        as_they_are = data.scores != "bleu" or recipe.noise.capitals > 0
        self.reads_capitals = as_they_are or has_capitals(texts[0])
        if (positions := most_positions(self.config)) is not None:
            self._check_lengths(positions)
        self.fewest_steps = 0 if self.start else recipe.FEWEST_STEPS
        self.valid = self.corpus.valid.rows(some_of(len(self.corpus.valid), recipe.train.eval_sentences))

    def _take(self, prepared: Prepared[StoredPairs]) -> None:
        """Takes pairs whose tokens are on disk."""
        framing = self.framing
        self.pairs = prepared.stored.read_as(framing.framed_alone, most=framing.longest, cut=framing.longest_source)
        most = MOST_TOKENS if framing.longest_source is None else framing.longest_source
        cut = int((prepared.stored.lengths[:, 0] > most).sum())
        self.notes += self._cut_and_left_out(cut, len(prepared.stored) - len(self.pairs))
        if not len(self.pairs):
            raise self._nothing_left(self.corpus.name)
        self.turns = self.pairs.turns
        self.lengths = TokenLengths.of(self.pairs.lengths[:, 0].tolist(), self.begun)
        self.fingerprint, self.learnt_before = prepared.fingerprint, prepared.learnt

    def _encode(self, parts: Sequence[Pairs], texts: tuple[list[str], list[str]]) -> None:
        """Encodes the pairs of the data and of the mixes."""
        apart = sum(not (is_composed(one) and is_composed(other)) for one, other in zip(*texts, strict=True))
        if apart and self.source.composes:
            self.notes.append(f"{counted(apart, 'pair')} with accents apart from letters: composed (Unicode's NFC)")
        sources, beyond = cut_at(self.source.encode(texts[0]), self.framing.longest_source)
        kinds = self._kinds(parts)
        encoded = self.framing.framed(zip(sources, self.target.encode(texts[1]), strict=True), kinds)
        fits = [max(map(len, pair)) < self.framing.longest for pair in encoded]
        self.pairs = [*compress(encoded, fits)]
        self.notes += self._cut_and_left_out(sum(map(bool, beyond)), len(encoded) - len(self.pairs))
        self.variants = self._variants([*compress(zip(*texts, strict=True), fits)], [*compress(kinds, fits)])
        self.weights = self._weights(parts[0], fits)
        self.mixed = self._mixed(fits, [len(part) for part in parts])
        self.lengths = TokenLengths.of([*map(len, compress(sources, fits))], self.begun)
        self.fingerprint = fingerprint((*texts[0], "", *texts[1]), end="\n")

    @cached_property
    def tokenizer_hash(self) -> str:
        return f"{self.source.fingerprint} {self.target.fingerprint}"

    def _notes(self, read: Corpus) -> list[str]:
        """Notes on the columns and the direction, on doubtful pairs in the data as they were `read`, and those of all
        training data."""
        corpus, originals = self.corpus, read.train.apart()
        tests = {pair for part in read.tests.values() for pair in zip(part.source, part.target, strict=True)}
        wrong, much = doubts(originals.source, originals.target, tests), ""
        if read.prepared is not None:
            tokens = " and ".join(f"{count:,}" for count in read.prepared.stored.lengths.sum(0).tolist())
            much = f"{counted(len(read.prepared.stored), 'pair')} to train on, of {tokens} tokens"
            wrong = [f"in a sample: {line}" for line in wrong]
        ways = [(way, read.train.rows(rows)) for way, rows in read.train.by_direction().items()]
        held = [read.valid, *read.tests.values()]
        for (source, target), part in ways or [((read.source, read.target), read.train)]:
            wrong += in_three_lines(part, held, source, target, much) if self.recipe.data.scores == "bleu" else []
        notes = [*corpus.taken, *_direction(self.recipe, corpus), *wrong, *corpus.notes]
        for mix in self.mixes:
            notes += [f"mixed in, {100 * mix.share:g} % of each epoch: {line}" for line in mix.corpus.taken]
            notes += mix.corpus.notes
        return notes

    def _model(self, tags: Sequence[str]) -> tuple[Tokenizer, Tokenizer, Any]:
        """The tokenizers and the configuration: of the model to start from, or new ones as the recipe says."""
        recipe = self.recipe
        if self.start:
            config = config_from(self.start.model, where=f"{recipe.start_from}/config.json")
            return self.start.source, self.start.target, config
        row, known = row_of(TRANSLATORS, recipe), None if self.begun is None else read_tokenizers(self.begun)
        if self.prepared is not None:
            known = self.prepared.tokenizers
        asked = self.corpus.directions, [*map(tag_token, tags)]
        source, target = known or train_tokenizers(recipe, self.corpus.train, *asked)
        sizes = {"source_vocab": source.size, "target_vocab": target.size}
        return source, target, translator_config(row, **sizes, joint=recipe.data.joint)

    def _framing(self, tags: Sequence[str]) -> Framing:
        """The tokens before and after each side, by direction and tag, and the longest pair that is trained on."""
        data, where, positions = self.recipe.data, self.recipe.start_from, most_positions(self.config)
        specs = specs_of(self.corpus.directions, tags, spec_of_start(self.start), self.source, where=where)
        return Framing(specs, data.longest if positions is None else min(data.longest, positions), data.cut)

    def _cut_and_left_out(self, cut: int, left_out: int) -> list[str]:
        """Notes on the numbers of sources that were cut and of pairs that were left out."""
        longest = self.framing.longest
        told = [f"{counted(cut, 'source')} {are(cut)} cut after {longest} tokens"] if cut else []
        if left_out:
            told.append(f"{counted(left_out, 'pair')} of more than {longest} tokens {are(left_out)} left out")
        return told

    @classmethod
    def first_look(cls, recipe: TranslateRecipe, begun: Path | None) -> tuple[Corpus | None, list[str]]:
        if not recipe.data.path:
            return None, []
        read_start(recipe, begun, *cls.starts)  # what is no model to begin with is refused before the pairs are read
        corpus = languages_known(cls._read(recipe, begun), recipe, begun)
        return corpus, [*corpus.taken, *_direction(recipe, corpus)]

    def read(self) -> Corpus:
        return languages_known(self._read(self.recipe, self.begun), self.recipe, self.begun)

    @classmethod
    def _read(cls, recipe: TranslateRecipe, begun: Path | None) -> Corpus:
        folder = prepared_for(recipe.data.path, begun)
        return cls.read_pairs(recipe) if folder is None else open_pairs(folder)

    @classmethod
    def read_pairs(cls, recipe: TranslateRecipe) -> Corpus:
        data = recipe.data
        return read_parallel(
            data.path, source=data.source, target=data.target, tag=data.tag, valid=data.valid, test=data.test
        )

    def _variants(self, texts: Sequence[tuple[str, str]], kinds: Sequence[Kind]) -> Variants | None:
        """Makes other forms of the pairs in each epoch; None where the recipe asks for none."""
        if not varies(self.recipe):
            return None

        def framed(pairs: Iterable[tuple[Ids, Ids]], numbers: Sequence[int]) -> list[tuple[Ids, Ids]]:
            return self.framing.framed(pairs, [kinds[i] for i in numbers] if kinds else ())

        return Variants(texts, (self.source, self.target), self.recipe, framed=framed, longest=self.framing.longest)

    def _weights(self, pairs: Pairs, fits: Sequence[bool]) -> list[float]:
        """How often an epoch has each kept pair of the data; empty where all come equally often."""
        weights = self.corpus.weights
        kept = compress(range(len(pairs)), fits)
        return [weights.get(pairs.origin_of(i), 1.0) for i in kept] if weights else []

    def _mixed(self, fits: Sequence[bool], lengths: Sequence[int]) -> list[tuple[range, float]]:
        """The numbers of each mix's pairs among the kept ones, and its share. `lengths`: the numbers of pairs of the
        data and of each mix. Raises InputError where no pair of a part is kept."""
        each, kept = iter(fits), [range(0)]
        for corpus, length in zip(self.corpora, lengths, strict=True):
            begin = kept[-1].stop
            kept.append(range(begin, begin + sum(islice(each, length))))
            if not kept[-1]:
                raise self._nothing_left(corpus.train.name)
        return [(own, mix.share) for own, mix in zip(kept[2:], self.mixes, strict=True)]

    def _nothing_left(self, name: str) -> InputError:
        what = f"every pair is longer than data.longest = {self.framing.longest} tokens"
        fix = "--set data.longest=1000, or --set data.cut=true where only the sources are long"
        return InputError(what, where=name, fix=fix)

    def _kinds(self, parts: Sequence[Pairs]) -> list[Kind]:
        """The direction and the tag of each pair of the data and of the mixes; empty where all are of one kind. Raises
        InputError for a direction that is only in a mix."""
        several = bool(self.corpus.directions)
        if not several and any(mix.corpus.directions for mix in self.mixes):
            what = "several directions are mixed into data of one"
            raise InputError(what, where="--mix", fix="say which is meant: --mix PATH:en>de:0.2")
        kinds: list[Kind] = []
        for part, own in zip(parts, self.corpora, strict=True):
            alone = [(own.source, own.target) if several else ONE_WAY] * len(part)
            ways = [part.directions[way] for way in part.ways if several] or alone
            kinds += zip(ways, part.tags or [""] * len(part), strict=True)
        for source, target in dict.fromkeys(way for way, _ in kinds):
            if (source, target) not in self.framing.arounds:
                what = f"pairs from {source} to {target} are mixed in, a direction that is not learnt"
                raise InputError(what, where="--mix", fix="say the direction: --mix PATH:en>de:0.2")
        return kinds if several or any(tag for _, tag in kinds) else []

    def tests(self) -> Iterator[tuple[str, Pairs]]:
        """A test set for each direction, and those of the mixes, which show what was forgotten."""
        yield from by_direction(dict(super().tests()))
        for mix in self.mixes:
            for name, part in by_direction(mix.corpus.tests):
                yield f"{Path(mix.corpus.name).stem}, mixed in: {name}", part

    def finish(self, folder: Path, device: str) -> Scores:
        """Includes the scores of the model that the training started from and of a teacher, if they still exist; with a
        teacher, also the speed of both."""
        best = self.served.load(folder, device=device)
        self._calibrate(folder, best)
        models = {"": best, BEFORE: self._as_begun(device)}
        models[TEACHER] = self._teacher(device)
        scores: dict[str, dict[str, Any]] = {}
        for name, part in self.tests():
            own = scores.setdefault(name, {})
            for ending, model in models.items():
                if model is None:
                    continue
                if models[TEACHER] is not None:
                    model.search(part.source[:WARM])  # one-time work is not timed
                begin = time.perf_counter()
                made = model.search_pairs(part)
                seconds = time.perf_counter() - begin  # without scoring
                found = known(model.metric.score([one.text for one in made], part.references))
                own |= {f"{key}{ending}": found[key] for key in (self.score_names if ending else found)}
                if models[TEACHER] is not None and ending != BEFORE:
                    own[f"{SPEED}{ending}"] = len(part) / seconds
        return scores

    def _teacher(self, device: str) -> Translator | None:
        """The model whose translations were trained on; None where there is none, or it has changed."""
        return teacher_of([path for path, _ in paths_of(self.recipe.data.synthetic)], device)

    def write(self, folder: Path, model: TranslationModel) -> None:
        files.remove_tree(folder / FILE)  # it was fitted to another model
        super().write(folder, model)

    def _calibrate(self, folder: Path, best: Translator) -> None:
        """Calibrates confidence on the validation data, for translations (not summaries)."""
        valid = self.portion(self.corpus.valid, min(1.0, CALIBRATED / max(1, len(self.corpus.valid))))
        self.calibration = calibrated(best, valid, self._token_counts(0)) if self.metric.rank == "bleu" else None
        if self.calibration is not None:
            write_calibration(folder, self.calibration)

    def _as_begun(self, device: str) -> Translator | None:
        """The model that the training started from; None if it was no translator, or no longer exists."""
        folder = Path(self.recipe.start_from)
        begun = None if self.start is None else spec_in(folder)
        if begun is None or begun.noise is not None:
            return None
        model = read_textless_run(folder)[0].to(device)
        return Translator(for_inference(model), self.source, self.target, self.translator_spec())

    def read_start(self) -> Start | None:
        return read_start(self.recipe, self.begun, *self.starts)

    def doubts(self, scores: Scores) -> Iterator[str]:
        start = self.recipe.start_from
        if start and not (Path(start) / TASK).is_file():
            yield f"{start}, which this training began with, is not there: the scores of before are not told"

    def describe(self) -> str:
        sizes = " and ".join(f"{side.size:,}" for side in dict.fromkeys((self.source, self.target)))
        return f"{counted(len(self.pairs), 'pair')}, {sizes} tokens in the vocabulary"

    def trained_on(self) -> Iterator[str]:
        for corpus in self.corpora:
            yield from told_apart(corpus.train)

    @cached_property
    def valid_fingerprint(self) -> str:
        valid = self.corpus.valid
        return fingerprint(map(repr, zip(valid.source, valid.references, strict=True)))

    def tokenizers(self) -> dict[str, bytes]:
        return tokenizer_files(self.source, self.target)

    def own_facts(self) -> dict[str, object]:
        joint = self.source is self.target
        mixed = [
            {"path": mix.corpus.name, "share": mix.share, "held_out": mix.corpus.held_out}
            | data_facts(mix.corpus, self.unit)
            | {"pairs": len(mix.corpus.train)}
            for mix in self.mixes
        ]
        written: dict[str, object] = {"synthetic": self.synthetic} if self.synthetic else {}
        if self.prepared is not None:
            written |= prepared_facts(self.prepared, self.corpus, self.unit)
        return (
            ({"mix": mixed} if mixed else {})
            | written
            | {
                "source": self.corpus.source,
                "target": self.corpus.target,
                "held_out": self.corpus.held_out,
                "trained_on": len(self.pairs),
                "example": self.valid.source[0] if len(self.valid) else "",
                "vocabulary": {"source": self.source.size, "target": self.target.size, "joint": joint},
            }
        )

    def spec(self) -> dict[str, Any]:
        return self.translator_spec().written()

    def translator_spec(self) -> TranslatorSpec:
        """Languages, lengths, and the default search."""
        around, scores = self.around, self.recipe.data.scores
        spec = replace(
            around,
            task=NAME,
            decode=self.recipe.decode.model_dump(exclude_none=True),
            source=self.corpus.source if around.source is None else around.source,
            target=self.corpus.target if around.target is None else around.target,
            source_tokens=self.lengths,
            sources_of_several_sentences=self.several,
            reads_signs=self.signs or None,
            reads_capitals=None if self.reads_capitals else False,
            longest_source=self.framing.longest_source,
            scores=None if scores == "bleu" else scores,
        )
        return spec.with_tag(self.tag) if self.tag else spec

    def portion(self, valid: Pairs, share: float) -> Pairs:
        return valid.rows(spread(len(valid), share))

    def task(self, model: TranslationModel) -> TranslationTask:
        return TranslationTask(
            self.pairs,
            self.recipe.train,
            packs=model.packs,
            ends=self.ends,
            weights=self.weights,
            mixes=self.mixed,
            variants=self.variants,
        )

    def chance(self) -> float:
        return entropy(self._token_counts(1))

    def _token_counts(self, side: int) -> Counter[int]:
        """How often each token is in the training sources (side 0) or the targets (1)."""
        if isinstance(self.pairs, StoredPairs):
            return self.pairs.counts(side)
        return Counter(token for pair in self.pairs for token in pair[side])

    def floor(self) -> float:
        return self.metric.by_luck(self.valid.references)

    def good_for(self, scores: Scores) -> str:
        """By bands of BLEU, about those of Lavie (2010, Evaluating the Output of Machine Translation Systems)."""
        name, found = next(iter(scores.items()))
        if self.metric.rank != "bleu":
            return super().good_for(scores)
        bleu = float(found["bleu"])
        use = next(use for below, use in USES if bleu < below)
        return f"{use}, of texts like its own (BLEU {bleu:.1f} on {name})"

    def few_data(self) -> tuple[str, list[str]]:
        path = self.recipe.data.path
        if self.metric.rank != "bleu" or self.originals >= ENOUGH or not path:
            return "", []
        source, target = self.corpus.source, self.corpus.target
        source, target = (name.partition("-")[0].lower() for name in (source, target))  # of "en-GB" the language
        known = len(source) == len(target) == 2  # codes of languages
        name = f"Helsinki-NLP/opus-mt-{source}-{target}" if known else "Helsinki-NLP/opus-mt-en-fr"
        data = shlex.join(["--data", *([path] if isinstance(path, str) else path)])
        why = f"{counted(self.originals, 'pair')} are few to learn languages from, and a published model knows them"
        return f"{why}: {name}{'' if known else ', or that of your languages'}", [
            f"heed import {name} --out runs/published",
            f"heed train translate --from runs/published {data} --out runs/tuned",
        ]

    def measure(self, model: TranslationModel) -> Measurement:
        """The loss with teacher forcing, the scores of greedy translations, and a sample of these."""
        translator = Translator(model, self.source, self.target, self.translator_spec())
        scores, made = translator.measure(self.valid, beam=1)
        found = {name: getattr(scores, name) for name in self.score_names}
        shown = zip(made[:8], self.valid.target, strict=False)
        lines = [f"source     {t.source}\nmodel      {t.text}\nreference  {reference}\n" for t, reference in shown]
        return Measurement(translator.loss(self.valid), found, found[self.metric.rank], "\n".join(lines))

    def tells(self, folder: Path, scores: Scores, best: Mapping[str, Any]) -> CardText:
        return card_text(self, folder, scores, best)

    def _check_lengths(self, positions: int) -> None:
        """Raises InputError where a validation or test text is too long for the model."""
        for pairs in (self.corpus.valid, *(part for _, part in self.tests())):
            sides = (
                cut_at(self.source.encode(pairs.source), self.framing.longest_source)[0],
                self.target.encode(pairs.target),
            )
            whole = framed_pairs(zip(*sides, strict=True), self.around)
            room = positions - bool(self.around.tags)
            check_lengths([ids for pair in whole for ids in pair], room, where=pairs.name)


def _direction(recipe: TranslateRecipe, corpus: Corpus) -> list[str]:
    """Notes on the direction, and the first pair."""
    purpose = recipe.PURPOSE.format(source=corpus.source, target=corpus.target).removesuffix(".")
    other_way = f" (the other way: {corpus.other_way})" if corpus.other_way else ""
    first = (shorten(side[0], 60, placeholder=" ...") for side in (corpus.train.source, corpus.train.target))
    told = f"{purpose[0].lower()}{purpose[1:]}{other_way}"
    tuned = "" if corpus.directions else another_direction(recipe.start_from, corpus.source, corpus.target)
    return [told, *([tuned] if tuned else []), f"the first pair: {' -> '.join(first)}"]
