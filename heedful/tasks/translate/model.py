"""A translator: its model or engine, its tokenizers, and its spec. What it translates is in `use`."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar, Unpack, runtime_checkable

from jaxtyping import Int
from torch import Tensor

from heedful.apply.inference import for_inference
from heedful.core.arguments import checks_arguments
from heedful.data.batches import pad
from heedful.data.text.pairs import Pairs
from heedful.data.tokenizer import Ids, Tokenizer
from heedful.decode.contract import Hypothesis
from heedful.decode.ensemble import Ensemble
from heedful.decode.processes import Processes
from heedful.decode.settings import DEFAULT_SAMPLING, SHAPING, Decoding, DecodingOptions
from heedful.errors import InputError
from heedful.metrics.texts import METRICS, Metric
from heedful.models import TranslationModel
from heedful.run.device import Device, known_device
from heedful.run.folder import read_run
from heedful.tasks.shared.asked import refuse_nothing
from heedful.tasks.shared.lengths import check_lengths, cut_at, most_positions, refuse_longer
from heedful.tasks.shared.opened import Opened, OpenedChanges, changed
from heedful.tasks.shared.served import refuse_run_of_another
from heedful.tasks.translate.capitals import in_capitals, in_small_letters
from heedful.tasks.translate.confidence import Calibration
from heedful.tasks.translate.spec import NAME, TranslatorSpec
from heedful.tasks.translate.training.losses import ends_of, framed_pairs, target_nats
from heedful.tasks.translate.wishes import Phrases

T = TypeVar("T", bound="BaseTranslator")


@runtime_checkable
class SearchEngine(Protocol):
    """Another library, which searches in place of our model."""

    @property
    def own(self) -> "BaseTranslator | None":
        """The model as heedful has it, which can be looked into; None where only the library has it."""

    def takes(self, limit: int, decoding: Decoding) -> bool:
        """Whether it searches for so many tokens; or else the model itself does."""

    def search(
        self, sources: Sequence[Ids], *, limits: Sequence[int], decoding: Decoding, prefix: Sequence[Ids] | None
    ) -> list[list[Hypothesis]]:
        """The best hypotheses of each source, of at most `limits` tokens, as from `decode.search`."""

    def scored(
        self, sources: Sequence[Ids], listed: Sequence[Sequence[Hypothesis]], decoding: Decoding
    ) -> list[list[Hypothesis]]:
        """The same hypotheses with the log-probabilities of their tokens."""


class TranslatorChanges(OpenedChanges, total=False):
    """What another translator may have in place of a translator's own: see `BaseTranslator.changed`."""

    target: Tokenizer
    spec: TranslatorSpec
    engine: SearchEngine | None
    others: tuple[TranslationModel, ...]
    processes: Processes | None


class BaseTranslator(Opened):
    """A trained model, its tokenizers, and its default search. It never changes: what differs in its direction, its
    engine or the like is another translator.

    With an `engine` it can only search: the model then has a configuration, but no weights. `others` are the other
    models of an ensemble.
    """

    model: TranslationModel
    purpose: ClassVar = "translation"

    def __init__(self, model: TranslationModel, source: Tokenizer, target: Tokenizer, spec: TranslatorSpec) -> None:
        self.model = model.eval()
        self.source, self.target, self.spec = source, target, spec
        self.engine: SearchEngine | None = None
        self.others: tuple[TranslationModel, ...] = ()
        self.processes: Processes | None = None
        self.phrases = Phrases(target)

    @classmethod
    @checks_arguments
    def load(cls: type[T], run: str | Path, *, device: Device = "cpu") -> T:
        """Reads a run's folder. Raises MissingError, InputError or StorageError."""
        refuse_run_of_another(run, NAME, "translation")
        model, source, target, about = read_run(Path(run))
        spec = TranslatorSpec.read(about).with_calibration(Path(run))
        return cls(for_inference(model.to(known_device(device))), source, target, spec)

    @property
    def about(self) -> dict[str, Any]:
        """The content of task.json."""
        return self.spec.written()

    def changed(self: T, **values: Unpack[TranslatorChanges]) -> T:
        return changed(self, values)

    def texts_of(self, found: Sequence[Hypothesis]) -> list[str]:
        tokens = [hypothesis.tokens for hypothesis in found]
        return [*map(self.target.decode_marked, tokens)] if self.marked else self.target.decode_batch(tokens)

    @checks_arguments
    def directed(self: T, source: str | None = "", target: str | None = "", tag: str | None = "") -> T:
        """The same translator, set to these languages and this kind of translation; "" and None mean the default.
        Raises InputError for those that it does not have."""
        own = self.spec.tagged or ""
        tag, other = tag or "", self._between(source or "", target or "")
        if (tag or own) and (other is not self or tag not in ("", own)):
            return other.changed(spec=other.spec.with_tag(tag or own))
        return other

    def _between(self: T, source: str, target: str) -> T:
        found = self.spec.redirected(source, target, self.source)
        if found is None:
            return self
        spec, start = found
        return self.changed(spec=spec, target=self.target if start is None else self.target.begun_by(start))

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

    def refuse_untold_target(self) -> None:
        """Raises InputError for a model of several languages without a default target language."""
        if self.spec.target == "":
            raise InputError("it has several languages: to which one?", fix="--to names it, such as de")

    def encode(self, texts: Sequence[str]) -> tuple[list[Ids], list[int]]:
        """Each source's tokens, cut as in training, and how many were cut off. A blank source has none."""
        texts = [self.as_read(text) if text.strip() else "" for text in texts]
        ids = self.source.encode_marked(texts) if self.marked else self.source.encode(texts)
        return cut_at(ids, self.spec.longest_source)

    def trimmed(self, text: str) -> str:
        """The text without surrounding white space, if the vocabulary was made here: it does not know that."""
        return text.strip() if self.source.ours else text

    def as_read(self, text: str) -> str:
        """The source as it is encoded, with the same number of characters: in lower case if it is in capitals and the
        model does not know those."""
        lowered = self.spec.reads_capitals is False and in_capitals(text)
        return in_small_letters(text, self.languages[0], self.source.encode_whole) if lowered else text

    @property
    def marked(self) -> bool:
        """Whether "<mask>" and the like in a text are control tokens: for a denoiser they are."""
        return self.spec.noise is not None

    @property
    def languages(self) -> tuple[str, str]:
        """The languages that it translates from and to, as in task.json."""
        return self.spec.direction

    @property
    def metric(self) -> Metric:
        """The metric for its translations."""
        return METRICS[self.spec.scores or "bleu"]

    @property
    def around(self) -> tuple[Ids, Ids]:
        """The tokens before a source, and after it."""
        return self.spec.around(self.source)

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
        return [*(self.spec.begin or ())]

    @property
    def forbidden(self) -> tuple[int, ...]:
        """The tokens that are never generated."""
        return tuple(self.spec.never(self.target))

    @property
    def calibration(self) -> Calibration | None:
        """The calibration of its confidence, if there is one; None for an ensemble."""
        return None if self.others else self.spec.calibration

    def is_unlike(self, ids: Ids, text: str) -> bool:
        """Whether a source of these tokens is unlike all that the model was trained on: shorter than each source, or of
        rarer pieces."""
        pieces = None if self.calibration is None else self.calibration.pieces
        rare = pieces is not None and pieces.nats(ids, text) > pieces.usual
        return bool(ids) and (rare or len(ids) < self.spec.shortest_learnt)

    @checks_arguments
    def decoding(self, **settings: Unpack[DecodingOptions]) -> Decoding:
        """The search settings: these, and otherwise those of task.json. The beam is at least as wide as `n_best`.
        Raises InputError for sampling settings without samples."""
        made = self.spec.decoding(settings)
        unused = [
            name for name in SHAPING if name in settings and getattr(made, name) != getattr(DEFAULT_SAMPLING, name)
        ]
        if unused and not made.samples:
            raise InputError(f"{unused[0]} is not used by a search", fix="leave it out, or ask for samples")
        return replace(made, beam=made.n_best) if 1 <= made.beam < made.n_best and not made.samples else made

    def with_own_search(self) -> "BaseTranslator | None":
        """The same translator without an engine, which can be looked into and be held to words; None where only another
        library has the model."""
        if self.engine is None:
            return self
        own = self.engine.own
        return None if own is None else own.directed(*self.languages, self.spec.tagged)

    @property
    def searched(self) -> Any:
        """The model that is searched: a single one, or the ensemble."""
        return Ensemble([self.model, *self.others]) if self.others else self.model

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
        whole = framed_pairs([pair for pair in zip(*sides, strict=True) if all(pair)], self.spec)
        if (positions := most_positions(self.model.config)) is not None:
            check_lengths([ids for pair in whole for ids in pair], positions, where=pairs.name)
        return target_nats(self.model, whole, ends_of(self.target, self.spec))
