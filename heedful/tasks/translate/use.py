"""The finished translator."""

import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

from jaxtyping import Int
from torch import Tensor

from heedful.apply.inference import for_inference
from heedful.core.arguments import checks_arguments
from heedful.data.batches import pad
from heedful.data.text.pairs import Pairs
from heedful.data.tokenizer import Tokenizer
from heedful.decode.constrained import Wish
from heedful.decode.contract import Hypothesis
from heedful.decode.ensemble import Ensemble
from heedful.decode.processes import Processes
from heedful.decode.settings import DEFAULT_SAMPLING, SHAPING, Decoding, DecodingOptions
from heedful.errors import InputError
from heedful.metrics.texts import METRICS, Metric, Rouge, Scores
from heedful.models import TranslationModel
from heedful.run.device import Device, known_device
from heedful.run.folder import read_run
from heedful.tasks.shared.asked import refuse_nothing
from heedful.tasks.shared.lengths import check_lengths, cut_at, most_positions, refuse_longer, warn
from heedful.tasks.shared.one_or_many import one_or_many
from heedful.tasks.shared.opened import Opened
from heedful.tasks.shared.served import refuse_run_of_another
from heedful.tasks.translate.capitals import READS_CAPITALS, in_capitals, in_small_letters
from heedful.tasks.translate.confidence import KEY, Calibration, calibration_of, read_calibration
from heedful.tasks.translate.languages import TAGGED, redirected, tagged
from heedful.tasks.translate.pipeline import translate_texts
from heedful.tasks.translate.searching import (
    Ids,
    Number,
    Searched,
    SearchEngine,
    Translation,
    groups_of,
    search_batch,
)
from heedful.tasks.translate.training.losses import ends_of, framed_pairs, target_nats
from heedful.tasks.translate.wishes import NO_WISHES, Phrases, Terms, Wishes, wishes_of

if TYPE_CHECKING:
    from heedful.tasks.translate.documents.files import TranslatedDocument


class Translator(Opened):
    """A trained model, its tokenizers, and its default search.

    With an `engine` it can only search: the model then has a configuration, but no weights.
    """

    model: TranslationModel
    purpose: ClassVar = "translation"

    def __init__(self, model: TranslationModel, source: Tokenizer, target: Tokenizer, about: dict[str, Any]) -> None:
        self.model = model.eval()
        self.source, self.target, self.about = source, target, about
        self.engine: SearchEngine | None = None
        self.others: list[TranslationModel] = []  # the other models of an ensemble
        self.processes: Processes | None = None
        self.phrases = Phrases(target)
        self._calibration: tuple[Any, Calibration] | None = None  # and what it was read from

    @classmethod
    @checks_arguments
    def load(cls, run: str | Path, *, device: Device = "cpu") -> "Translator":
        """Reads a run's folder. Raises MissingError, InputError or StorageError."""
        refuse_run_of_another(run, "translate", "translation")
        model, source, target, about = read_run(Path(run))
        return cls(for_inference(model.to(known_device(device))), source, target, about | read_calibration(Path(run)))

    @one_or_many("prefix")
    def translate(
        self,
        texts: Sequence[str],
        *,
        to: str | None = "",
        from_language: str | None = "",
        tag: str | None = "",
        prefix: Sequence[str] | None = None,
        glossary: Terms | None = None,
        require: str | Collection[str] = (),
        avoid: str | Collection[str] = (),
        **settings: Unpack[DecodingOptions],
    ) -> list[str]:
        """The best translation of each text, by a search with the settings of `Decoding`, in the languages and of the
        kind that are asked for, as in `directed`. Warns of texts that are not read completely or are longer than all
        that the model was trained on, and of wishes that are not met."""
        asked = self.directed(from_language, to, tag)
        wishes = wishes_of(require, avoid, glossary, asked.languages)
        found = translate_texts(asked, texts, prefix=prefix, wishes=wishes, **settings)
        warn([translation.warning for translation in found])
        return [translation.text for translation in found]

    @one_or_many()
    def translate_files(
        self,
        documents: Sequence[str | Path],
        out: str | Path,
        *,
        to: str | None = "",
        from_language: str | None = "",
        tag: str | None = "",
        glossary: Terms | None = None,
        require: str | Collection[str] = (),
        avoid: str | Collection[str] = (),
        flag: float | None = None,
        **settings: Unpack[DecodingOptions],
    ) -> "list[TranslatedDocument]":
        """Translates documents (.docx, .html, .md, .po, .srt, .txt, .vtt, .xlf) as `heed translate --file` does: one
        into the file `out`, several into the folder `out`. `flag`: passages with a sentence below this confidence are
        marked. Raises InputError, MissingError or StorageError; files that were written before stay."""
        from heedful.tasks.translate.documents.files import translate_documents

        asked = self.directed(from_language, to, tag)
        wishes, paths = wishes_of(require, avoid, glossary, asked.languages), [Path(one) for one in documents]
        return [*translate_documents(asked, paths, Path(out), settings, wishes, flag=flag)]

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
        """The translations of each text, with scores. `prefix`: how each one must begin. `wishes`: words that each must
        have, and must not have. `first`: the number of the first text, which matters for sampling. `confidence`: return
        the words and their probabilities."""
        return translate_texts(
            self, texts, prefix=prefix, wishes=wishes, first=first, confidence=confidence, **settings
        )

    def texts_of(self, found: Sequence[Hypothesis]) -> list[str]:
        tokens = [hypothesis.tokens for hypothesis in found]
        return [*map(self.target.decode_marked, tokens)] if self.marked else self.target.decode_batch(tokens)

    @checks_arguments
    def directed(self, source: str | None = "", target: str | None = "", tag: str | None = "") -> "Translator":
        """The same translator, set to these languages and this kind of translation; "" and None mean the default.
        Raises InputError for those that it does not have."""
        own = str(self.about.get(TAGGED, ""))
        tag, other = tag or "", self._between(source or "", target or "")
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

    @checks_arguments
    def join(self, other: "Translator", *, name: str = "") -> None:
        """Adds the other model to an ensemble, which searches by the mean of the probabilities. Raises InputError for a
        model with another vocabulary, or other tokens around texts."""
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
        """How many tokens a source and a target may have, including end tokens; None: any number."""
        every = (most_positions(model.config) for model in (self.model, *self.others))
        return min((most for most in every if most is not None), default=None)

    @property
    def room(self) -> int | None:
        """How many tokens a source may have, besides those around it; None: any number."""
        return None if self.positions is None else self.positions - sum(map(len, self.around))

    def refuse_too_long(self, texts: Sequence[str], ids: Sequence[Ids]) -> None:
        """Raises TextError for a text with more tokens than the model can read."""
        refuse_longer(texts, ids, self.room, does="reads")

    def encode(self, texts: Sequence[str]) -> tuple[list[Ids], list[int]]:
        """Each source's tokens, cut as in training, and how many were cut off. A blank source has none."""
        texts = [self.as_read(text) if text.strip() else "" for text in texts]
        ids = self.source.encode_marked(texts) if self.marked else self.source.encode(texts)
        return cut_at(ids, self.about.get("longest_source"))

    def trimmed(self, text: str) -> str:
        """The text without surrounding white space, if the vocabulary was made here: it does not know that."""
        return text.strip() if self.source.ours else text

    def as_read(self, text: str) -> str:
        """The source as it is encoded, with the same number of characters: in lower case if it is in capitals and the
        model does not know those."""
        lowered = not self.about.get(READS_CAPITALS, True) and in_capitals(text)
        return in_small_letters(text, self.languages[0], self.source.encode_whole) if lowered else text

    @property
    def marked(self) -> bool:
        """Whether "<mask>" and the like in a text are control tokens: for a denoiser they are."""
        return "noise" in self.about

    @property
    def languages(self) -> tuple[str, str]:
        """The languages that it translates from and to, as in task.json."""
        return str(self.about.get("source", "source")), str(self.about.get("target", "target"))

    @property
    def metric(self) -> Metric:
        """The metric for its translations."""
        return METRICS[self.about.get("scores", "bleu")]

    @property
    def around(self) -> tuple[Ids, Ids]:
        """The tokens before a source, and after it."""
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
        """The tokens that every target begins with."""
        return self.about.get("begin", [])

    @property
    def forbidden(self) -> tuple[int, ...]:
        """The tokens that are never generated."""
        return tuple(self.about.get("forbidden", (self.target.pad, self.target.bos)))

    @property
    def calibration(self) -> Calibration | None:
        """The calibration of its confidence, if there is one; None for an ensemble."""
        if self.others or KEY not in self.about:
            return None
        if self._calibration is None or self._calibration[0] is not self.about[KEY]:
            self._calibration = self.about[KEY], calibration_of(self.about[KEY])
        return self._calibration[1]

    def is_unlike(self, ids: Ids, text: str) -> bool:
        """Whether a source of these tokens is unlike all that the model was trained on."""
        pieces = None if self.calibration is None else self.calibration.pieces
        return pieces is not None and bool(ids) and pieces.nats(ids, text) > pieces.usual

    @checks_arguments
    def decoding(self, **settings: Unpack[DecodingOptions]) -> Decoding:
        """The search settings: these, and otherwise those of task.json. The beam is at least as wide as `n_best`.
        Raises InputError for sampling settings without samples."""
        made = Decoding(**{**self.about.get("decode", {}), **settings})
        unused = [
            name for name in SHAPING if name in settings and getattr(made, name) != getattr(DEFAULT_SAMPLING, name)
        ]
        if unused and not made.samples:
            raise InputError(f"{unused[0]} is not used by a search", fix="leave it out, or ask for samples")
        return replace(made, beam=made.n_best) if 1 <= made.beam < made.n_best and not made.samples else made

    def hypotheses(
        self,
        ids: Sequence[Ids],
        decoding: Decoding,
        forced: Sequence[Ids] | None = None,
        *,
        numbers: Sequence[Number] | None = None,
        wishes: Sequence[list[Wish]] | None = None,
        plain: Sequence[int] | None = None,
        avoid: tuple[str, ...] = (),
    ) -> list[list[Hypothesis]]:
        """The hypotheses of all sentences, in their order, searched in batches of similar length. Their `numbers` (from
        0) matter for sampling. `plain`: the lengths of their translations without wishes, to bound those with them."""
        out = [[Hypothesis((), 0.0, 0.0, (), True)] for _ in ids]  # the translation of a blank source
        filled = [i for i, sentence in enumerate(ids) if sentence]
        shared, batches = self.processes, []
        device, count = next(self.model.parameters()).device, 1 if shared is None else shared.count
        groups = [[filled[i] for i in own] for own in groups_of([ids[i] for i in filled], decoding, count, device)]
        for rows in groups:
            begin = None if forced is None else [[*self.begin, *forced[i]] for i in rows]
            held = None if wishes is None else [wishes[i] for i in rows]
            usual = None if plain is None else [plain[i] for i in rows]
            named: list[Number] = [*rows] if numbers is None else [numbers[i] for i in rows]
            batches.append(Searched([ids[i] for i in rows], decoding, named, begin, held, usual, avoid))
        found = map(partial(search_batch, self), batches) if shared is None or len(batches) < 2 else shared.map(batches)
        for rows, best in zip(groups, found, strict=True):
            for i, one in zip(rows, best, strict=True):
                out[i] = one
        return out

    @contextmanager
    def in_processes(self, count: int) -> Iterator[None]:
        """Inside this block, `count` processes of one thread each search, if there is more than one batch: faster for
        files. Only on Linux and a CPU. The processes are forked: no other thread may hold a lock then, and later
        changes of the model do not reach them."""
        on_cpu = next(self.model.parameters()).device.type == "cpu"
        if count < 2 or sys.platform != "linux" or self.engine is not None or not on_cpu:
            yield
            return
        self.processes = Processes(partial(search_batch, self), count)
        try:
            yield
        finally:
            self.processes.close()
            self.processes = None

    def with_own_search(self) -> "Translator | None":
        """The same translator without an engine, which can be looked into and be held to words; None where only another
        library has the model."""
        if self.engine is None:
            return self
        own = self.engine.own
        return None if own is None else own.directed(*self.languages, str(self.about.get(TAGGED, "")))

    @property
    def searched(self) -> Any:
        """The model that is searched: a single one, or the ensemble."""
        return Ensemble([self.model, *self.others]) if self.others else self.model

    @checks_arguments
    def measure(
        self, pairs: Pairs, *, bootstrap: int = 0, **settings: Unpack[DecodingOptions]
    ) -> tuple[Scores | Rouge, list[Translation]]:
        """The scores of the translations of `pairs`, and the translations."""
        made = self.search_pairs(pairs, **settings)
        texts = [translation.text for translation in made]
        return self.metric.score(texts, pairs.references, bootstrap=bootstrap), made

    def search_pairs(
        self, pairs: Pairs, *, confidence: bool = False, **settings: Unpack[DecodingOptions]
    ) -> list[Translation]:
        """The translations of the sources, as by `translate`, each in the direction and of the kind of its pair."""
        kinds = pairs.by_kind()
        if not kinds:
            return translate_texts(self, pairs.source, confidence=confidence, **settings)
        made: dict[int, Translation] = {}
        for (direction, tag), rows in kinds.items():
            own = self.directed(*direction, tag)
            found = translate_texts(own, [pairs.source[i] for i in rows], confidence=confidence, **settings)
            made |= dict(zip(rows, found, strict=True))
        return [made[i] for i in range(len(pairs))]

    @checks_arguments
    def loss(self, pairs: Pairs) -> float:
        """The loss of the first references, in nats a token. Raises InputError for texts of more tokens than the model
        has positions, and for a model whose sources do not end like its targets."""
        refuse_nothing(pairs)
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
