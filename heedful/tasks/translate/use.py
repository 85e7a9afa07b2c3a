"""Translating, with a model that has learnt to."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, NotRequired, TypedDict, Unpack

from jaxtyping import Int
from torch import Tensor

from heedful.apply.inference import for_inference
from heedful.data.batches import by_length, pad
from heedful.data.text.pairs import Pairs
from heedful.data.tokenizer import Tokenizer
from heedful.decode.constrained import Wish
from heedful.decode.ensemble import Ensemble
from heedful.decode.processes import Processes
from heedful.decode.search import Hypothesis
from heedful.decode.settings import Decoding, DecodingOptions
from heedful.decode.trace import Node, Traced
from heedful.errors import InputError, TextError
from heedful.metrics.texts import METRICS, Metric, Rouge, Scores
from heedful.models import TranslationModel
from heedful.run.folder import read_run
from heedful.run.task import Ask, Saved
from heedful.tasks.shared.lengths import (
    check_lengths,
    cut_at,
    cut_warning,
    length_warning,
    most_positions,
    shorten,
    warn,
)
from heedful.tasks.shared.one_or_many import one_or_many
from heedful.tasks.shared.opened import Opened
from heedful.tasks.shared.served import refuse_run_of_another
from heedful.tasks.translate.confidence import (
    Calibration,
    Likelihood,
    WordConfidence,
    calibration_of,
    doubtful,
    likelihood_of,
    read_calibration,
    sentence_confidence,
    word_confidences,
)
from heedful.tasks.translate.languages import TAGGED, TAGS, in_a_line, languages_in, redirected, tagged
from heedful.tasks.translate.searching import Ids, Searched, SearchEngine, search_batch
from heedful.tasks.translate.training.losses import ends_of, framed_pairs, target_nats
from heedful.tasks.translate.wishes import NO_WISHES, Phrases, Terms, UsedTerm, Wishes, wishes_of

SEARCH_TOKENS = 8192  # source tokens in a batch that is searched, times the beam
NARROWEST = 5  # beam of what is held to words
WORTH = 2048  # source tokens, times the beam, that are worth being shared by processes


class Translation(NamedTuple):
    """One source sentence and what the model makes of it, the best first. A score is the log-probability (nats)
    divided by length ** length_penalty. Of a source that was too long, the last `cut` tokens were not read; `warning`
    says so, or that the source is longer than all that the model was trained on. `terms` are those of a glossary that
    the source has, and `said` the words and probabilities of each hypothesis, where they were asked for."""

    source: str
    text: str
    score: float
    hypotheses: list[tuple[str, float]]
    cut: int = 0
    warning: str = ""
    terms: tuple[UsedTerm, ...] = ()
    said: tuple[Likelihood, ...] = ()


class Translator(Opened):
    """A trained model, its tokenizers, and how it searches unless told otherwise.

    With an `engine` it searches, and can nothing else: the model has a configuration then, and no weights.
    """

    model: TranslationModel
    purpose: ClassVar = "translation"

    def __init__(self, model: TranslationModel, source: Tokenizer, target: Tokenizer, about: dict[str, Any]) -> None:
        self.model = model.eval()
        self.source, self.target, self.about = source, target, about
        self.engine: SearchEngine | None = None
        self.others: list[TranslationModel] = []  # that search with it, as one
        self.processes: Processes | None = None
        self.phrases = Phrases(target)

    @classmethod
    def load(cls, run: str | Path, *, device: str = "cpu") -> "Translator":
        """Reads a run's folder. Raises MissingError, InputError or StorageError."""
        refuse_run_of_another(run, "translate", "translation")
        model, source, target, about = read_run(Path(run))
        return cls(for_inference(model.to(device)), source, target, about | read_calibration(Path(run)))

    @one_or_many("prefix")
    def translate(
        self,
        texts: Sequence[str],
        *,
        prefix: Sequence[str] | None = None,
        glossary: Terms | None = None,
        require: str | Sequence[str] = (),
        avoid: str | Sequence[str] = (),
        **settings: Unpack[DecodingOptions],
    ) -> list[str]:
        """The best translation of each text, searched for as `Decoding` says. Warns of texts that are not read as a
        whole, or are longer than all that the model was trained on, and of wishes that are not met."""
        from heedful.tasks.translate.documents.parts import search_in_parts

        wishes = wishes_of(require, avoid, glossary, self.languages)
        found = search_in_parts(self, texts, prefix=prefix, wishes=wishes, **settings)
        warn([translation.warning for translation in found])
        return [translation.text for translation in found]

    @one_or_many("prefix")
    def search(
        self,
        texts: Sequence[str],
        *,
        prefix: Sequence[str] | None = None,
        wishes: Wishes = NO_WISHES,
        first: int = 0,
        confidence: bool = False,
        **settings: Unpack[DecodingOptions],
    ) -> list[Translation]:
        """The translations of each text, with scores. `prefix`: how each one must begin. `wishes`: what each must have
        in it, and must not. `first`: the number of the first text among all that are asked for, which counts where
        translations are drawn. `confidence`: tell the words and their probabilities. Raises TextError for a text of
        more tokens than the model can read."""
        decoding = self.decoding(**settings)
        ids, beyond = self.encode(texts)
        self.refuse_too_long(texts, ids)
        forced = None if prefix is None else self.target.encode(prefix)
        wanted = [wishes.of(text) if own else [] for text, own in zip(texts, ids, strict=True)]
        found = self.hypotheses(ids, decoding, forced, first=first, avoid=wishes.avoid)
        read = [self.texts_of(best) for best in found]
        for all_wishes in (False, True):  # what comes by itself need not be searched for
            lacking = [n for n, own in enumerate(wanted) if not all(one.met(text) for one in own for text in read[n])]
            if not lacking:
                break
            held = [
                [self.phrases.wish(one) for one in wanted[n] if all_wishes or not all(map(one.met, read[n]))]
                for n in lacking
            ]
            again = self.hypotheses(
                [ids[n] for n in lacking],
                replace(decoding, beam=max(decoding.beam, NARROWEST)),
                None if forced is None else [forced[n] for n in lacking],
                wishes=held,
                avoid=wishes.avoid,
            )
            for n, best in zip(lacking, again, strict=True):
                found[n], read[n] = best, self.texts_of(best)
        if confidence and self.engine is not None:
            filled = [n for n, own in enumerate(ids) if own]
            scored = self.engine.scored([self.framed(ids[n]) for n in filled], [found[n] for n in filled], decoding)
            for n, best in zip(filled, scored, strict=True):
                found[n] = best
        made = []
        for text, own, best, cut, said, asked in zip(texts, ids, found, beyond, read, wanted, strict=True):
            warnings = [cut_warning(len(own), len(own) + cut) or length_warning(len(own), self.about)]
            warnings += [one.warning for one in asked if not one.met(said[0])]
            listed = list(zip(said, (hypothesis.score for hypothesis in best), strict=True))
            terms = tuple(one.told(said[0]) for one in asked if one.source is not None)
            told = [likelihood_of(self.target, one.tokens, one.token_log_probabilities) for one in best if confidence]
            warning = "; ".join(filter(None, warnings))
            made.append(Translation(text, *listed[0], listed, cut, warning, terms, tuple(told)))
        return made

    def texts_of(self, found: Sequence[Hypothesis]) -> list[str]:
        tokens = [hypothesis.tokens for hypothesis in found]
        return [*map(self.target.decode_marked, tokens)] if self.marked else self.target.decode_batch(tokens)

    def directed(self, source: str = "", target: str = "", tag: str = "") -> "Translator":
        """The same from and to these languages, and for translations of this kind, of those that it has; "" is what it
        has by default. Raises InputError for another."""
        own = str(self.about.get(TAGGED, ""))
        other = self._between(source, target)
        if (tag or own) and (other is not self or tag not in ("", own)):
            other = copy(other)
            other.about = tagged(other.about, tag or own)
        return other

    def _between(self, source: str, target: str) -> "Translator":
        found = redirected(self.about, source, target, self.source)
        if found is None:
            return self
        other = copy(self)
        other.about, start = found
        other.target = self.target if start is None else self.target.begun_by(start)
        return other

    def join(self, other: "Translator", *, name: str = "") -> None:
        """Searches with the other model as well from now on, by the mean of their probabilities. Raises InputError for
        one that has another vocabulary, or reads or begins texts otherwise."""
        if self.engine is not None or other.engine is not None:
            raise InputError("several models search by heedful alone", where=name, fix="leave out the engine")
        sides = zip((self.source, self.target), (other.source, other.target), strict=True)
        alike = all(own.fingerprint == theirs.fingerprint for own, theirs in sides)
        if not alike or any(getattr(self, what) != getattr(other, what) for what in ("around", "begin", "forbidden")):
            what = "its vocabulary is not that of the first model"
            fix = "train both on the same data with the same data.vocab_size, or one --from the other"
            raise InputError(what, where=name, fix=fix)
        self.others += [other.model, *other.others]

    @property
    def positions(self) -> int | None:
        """How many tokens a source and a target may have, ends included; None where any number."""
        every = (most_positions(model.config) for model in (self.model, *self.others))
        return min((most for most in every if most is not None), default=None)

    def refuse_too_long(self, texts: Sequence[str], ids: Sequence[Ids]) -> None:
        """Raises TextError for a text, of these tokens, of more of them than the model can read."""
        positions = self.positions
        room = None if positions is None else positions - sum(map(len, self.around))
        for text, own in zip(texts, ids, strict=True):
            if room is not None and len(own) > room:
                what = f"{len(own):,} tokens, but the model reads at most {room:,}"
                raise TextError(what, where=shorten(text), fix="give it in shorter parts")

    def encode(self, texts: Sequence[str]) -> tuple[list[Ids], list[int]]:
        """Each source's tokens, as many as were read in training where those were cut, and how many there are
        beyond. One of blanks has none."""
        texts = [text if text.strip() else "" for text in texts]
        ids = self.source.encode_marked(texts) if self.marked else self.source.encode(texts)
        return cut_at(ids, self.about.get("longest_source"))

    @property
    def marked(self) -> bool:
        """Whether it reads and says "<mask>" and the like as the marks that they name: a denoiser does."""
        return "noise" in self.about

    @property
    def languages(self) -> tuple[str, str]:
        """What it translates from and to, as task.json names them."""
        return str(self.about.get("source", "source")), str(self.about.get("target", "target"))

    @property
    def metric(self) -> Metric:
        """What its translations are scored by."""
        return METRICS[self.about.get("scores", "bleu")]

    @property
    def around(self) -> tuple[Ids, Ids]:
        """What stands before a source, and after it."""
        return self.about.get("before", []), self.about.get("after", [self.source.eos])

    def framed(self, source: Ids) -> Ids:
        """A source as the model reads it."""
        before, after = self.around
        return [*before, *source, *after]

    def padded(self, sentences: Sequence[Ids]) -> tuple[Int[Tensor, "B S"], Int[Tensor, "B S"]]:
        """(ids, segments) of sources, as the model reads them."""
        before, after = self.around
        return pad(sentences, before=before, after=after, filler=self.source.pad)

    @property
    def begin(self) -> Ids:
        """What every target begins with."""
        return self.about.get("begin", [])

    @property
    def forbidden(self) -> tuple[int, ...]:
        """What is never said."""
        return tuple(self.about.get("forbidden", (self.target.pad, self.target.bos)))

    @property
    def calibration(self) -> Calibration | None:
        """What its probabilities mean, where that was measured; several models as one were not."""
        return None if self.others else calibration_of(self.about)

    def decoding(self, **settings: Unpack[DecodingOptions]) -> Decoding:
        """How it searches: as these settings say, and otherwise as task.json does."""
        return Decoding(**{**self.about.get("decode", {}), **settings})

    def hypotheses(
        self,
        ids: Sequence[Ids],
        decoding: Decoding,
        forced: Sequence[Ids] | None = None,
        *,
        first: int = 0,
        wishes: Sequence[list[Wish]] | None = None,
        avoid: tuple[str, ...] = (),
    ) -> list[list[Hypothesis]]:
        """Searches for all sentences, in batches of like length, and hands the results back in the order given. They
        are numbered from `first`, where what is drawn hangs on it."""
        out = [[Hypothesis((), 0.0, 0.0, (), True)] for _ in ids]  # nothing said is translated by nothing
        filled = [i for i, sentence in enumerate(ids) if sentence]
        width = max(decoding.beam, decoding.samples, 1)
        sources, shared = [ids[i] for i in filled], self.processes
        groups = by_length(sources, max(256, SEARCH_TOKENS // width))
        tokens = sum(len(source) + 1 for source in sources)
        if shared is not None and tokens * width >= WORTH:  # as many batches for each, of about as many tokens
            wanted = -(-len(groups) // shared.count) * shared.count
            tokens //= wanted
            while len(groups := by_length(sources, tokens)) > wanted:
                tokens += tokens // 20 + 1
        batches = []
        for group in groups:
            rows = [filled[i] for i in group]
            begin = None if forced is None else [[*self.begin, *forced[i]] for i in rows]
            own = None if wishes is None else [wishes[i] for i in rows]
            batches.append(Searched([ids[i] for i in rows], decoding, [first + i for i in rows], begin, own, avoid))
        found = shared.map(batches) if shared is not None and len(batches) > 1 else map(self._search, batches)
        for batch, best in zip(batches, found, strict=True):
            for number, one in zip(batch.numbers, best, strict=True):
                out[number - first] = one
        return out

    @contextmanager
    def in_processes(self, count: int) -> Iterator[None]:
        """Within it so many processes of one thread each search, on Linux and a CPU, where there is more than a batch:
        faster for files. The model is as it was when it began, and another thread must not hold a lock then."""
        on_cpu = next(self.model.parameters()).device.type == "cpu"
        if count < 2 or sys.platform != "linux" or self.engine is not None or not on_cpu:
            yield
            return
        self.processes = Processes(self._search, count)
        try:
            yield
        finally:
            self.processes.close()
            self.processes = None

    @property
    def searched(self) -> Any:
        """What a search asks: the model, or several as one."""
        return Ensemble([self.model, *self.others]) if self.others else self.model

    def traced(self, ids: Ids, decoding: Decoding, forced: Ids | None = None) -> tuple[list[Hypothesis], list[Node]]:
        """The hypotheses of one source, and the tree of all beginnings that the search kept for a while."""
        through: Traced[Any] = Traced(self.searched)
        prefix = None if forced is None else [[*self.begin, *forced]]
        (found,) = search_batch(self, Searched([ids], decoding, [0], prefix), through=through)
        return found, through.tree(found, eos=self.target.eos)

    def _search(self, batch: Searched) -> list[list[Hypothesis]]:
        return search_batch(self, batch)

    def evaluate(
        self, pairs: Pairs, *, bootstrap: int = 0, **settings: Unpack[DecodingOptions]
    ) -> tuple[Scores | Rouge, list[Translation]]:
        """The scores of the translations of `pairs`, and the translations."""
        made = self.search_pairs(pairs, **settings)
        texts = [translation.text for translation in made]
        return self.metric.score(texts, pairs.references, bootstrap=bootstrap), made

    def search_pairs(
        self, pairs: Pairs, *, confidence: bool = False, **settings: Unpack[DecodingOptions]
    ) -> list[Translation]:
        """The translations of the sources, each in the direction and of the kind of its pair."""
        kinds = pairs.by_kind()
        if not kinds:
            return self.search(pairs.source, confidence=confidence, **settings)
        made: dict[int, Translation] = {}
        for (direction, tag), rows in kinds.items():
            own = self.directed(*direction, tag)
            found = own.search([pairs.source[i] for i in rows], confidence=confidence, **settings)
            made |= dict(zip(rows, found, strict=True))
        return [made[i] for i in range(len(pairs))]

    def loss(self, pairs: Pairs) -> float:
        """Nats a token of the first references. Raises InputError for texts of more tokens than the model has
        positions, or a model whose sources end otherwise than its targets."""
        found = [
            self.directed(*direction, tag)._nats(pairs.rows(rows)) for (direction, tag), rows in pairs.by_kind().items()
        ] or [self._nats(pairs)]
        return sum(nats for nats, _ in found) / sum(tokens for _, tokens in found)

    def _nats(self, pairs: Pairs) -> tuple[float, int]:
        sides = self.encode(pairs.source)[0], self.target.encode(pairs.target)
        whole = framed_pairs([pair for pair in zip(*sides, strict=True) if all(pair)], self.about)
        if (positions := most_positions(self.model.config)) is not None:
            check_lengths([ids for pair in whole for ids in pair], positions, where=pairs.name)
        return target_nats(self.model, whole, ends_of(self.target, self.about))


class Hypothetical(TypedDict):
    """One of the best translations, as part of a record."""

    text: str
    score: float
    confidence: NotRequired[float]
    words: NotRequired[list[WordConfidence]]


class Translated(TypedDict):
    """An answer as a record. `confidence` and `words` are those of the first hypothesis; not `calibrated`, they are
    probabilities of the model as they are."""

    source: str
    text: str
    score: float
    hypotheses: list[Hypothetical]
    confidence: NotRequired[float]
    words: NotRequired[list[WordConfidence]]
    calibrated: NotRequired[bool]
    flagged: NotRequired[bool]
    warning: NotRequired[str]
    terms: NotRequired[list[UsedTerm]]
    alignment: NotRequired[list[tuple[int, int]]]


@dataclass(frozen=True, kw_only=True)
class TranslateOptions:
    """`decoding` are those keys of `Decoding` that are to be other than the model's own; `first` is the number of the
    first text, which counts where translations are drawn. With `confidence` it is told how sure each translation and
    its words are, and those less sure than `flag` are flagged. `glossary` has a term and its translation in each entry;
    words that are required or to be avoided, and terms, are those of `tasks.translate.wishes`."""

    decoding: DecodingOptions = field(default_factory=DecodingOptions)
    prefix: str | None = None
    first: int = 0
    source: str = ""  # the language of the texts, where the model has several
    target: str = ""  # and the one to translate to
    tag: str = ""  # the kind of translation, where the model has learnt several
    require: tuple[str, ...] = ()
    avoid: tuple[str, ...] = ()
    glossary: tuple[tuple[str, ...], ...] = ()
    confidence: bool = True
    flag: float | None = None

    def wishes(self, languages: tuple[str, str]) -> Wishes:
        """Raises InputError."""
        if any(len(entry) != 2 for entry in self.glossary):
            raise InputError("an entry of the glossary is not a term and its translation", fix='[["dog", "Hund"]]')
        pairs = [(entry[0], entry[1]) for entry in self.glossary]
        return wishes_of(self.require, self.avoid, pairs or None, languages)


def translate_texts(translator: Translator, texts: Sequence[str], options: TranslateOptions) -> Iterator[Translated]:
    """Of n best, the beam is at least as wide. Raises InputError."""
    from heedful.tasks.translate.documents.parts import search_in_parts

    settings, told = options.decoding, options.confidence or options.flag is not None
    translator = translator.directed(options.source, options.target, options.tag)
    if settings.get("n_best", 1) > 1 or "beam" in settings:
        width = max(settings.get("beam", translator.decoding().beam), settings.get("n_best", 1))
        settings = {**settings, "beam": width}
    forced = None if options.prefix is None else [options.prefix] * len(texts)
    wishes = options.wishes(translator.languages)
    for found in search_in_parts(
        translator, texts, prefix=forced, wishes=wishes, first=options.first, confidence=told, **settings
    ):
        made = as_record(found, translator.calibration)
        yield made if options.flag is None else flagged(made, options.flag)


def as_record(found: Translation, calibration: Calibration | None) -> Translated:
    listed: list[Hypothetical] = [{"text": text, "score": score} for text, score in found.hypotheses]
    for one, said in zip(listed, found.said, strict=False):
        one["confidence"], one["words"] = sentence_confidence(said, calibration), word_confidences(said, calibration)
    made: Translated = {"source": found.source, **listed[0], "hypotheses": listed}
    if found.said:
        made["calibrated"] = calibration is not None
    if found.terms:
        made["terms"] = [*found.terms]
    if found.warning:
        made["warning"] = found.warning
    return made


def flagged(record: Translated, flag: float) -> Translated:
    """The record with whether a person should read it first, which its warning says as well."""
    doubt = doubtful(record["confidence"], record["words"], flag)
    made: Translated = {**record, "flagged": bool(doubt)}
    if doubt:
        made["warning"] = "; ".join(filter(None, [record.get("warning", ""), doubt]))
    return made


ASK = Ask(translate_texts, TranslateOptions, gathers=lambda options: not options.decoding.get("samples"))


def translator_facts(saved: Saved) -> dict[str, Any]:
    assert saved.tokenizers is not None
    about, decode = saved.about, saved.about.get("decode", {})
    languages = languages_in(about)
    way = f"{about['source']} to {about['target']}" if languages is None else in_a_line(languages)
    facts = {
        "task": f"translate {way}",
        "vocabulary": saved.tokenizers[1].size,
        "search": " ".join(f"{key}={value:g}" for key, value in decode.items() if value is not None),
    }
    if about.get(TAGS):
        default = f", {about[TAGGED]} unless asked" if about.get(TAGGED) else ""
        facts["tags"] = f"{', '.join(about[TAGS])}{default}"
    if known := about.get("source_tokens"):
        facts["trained on"] = f"sources of at most {known['longest']:,} tokens, 99 % of at most {known['centile_99']:,}"
    return facts
