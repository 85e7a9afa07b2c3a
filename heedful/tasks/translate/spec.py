"""What task.json says of a translator. It is read and written here alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from heedful.core.config import from_json, to_json
from heedful.data.lines import listed
from heedful.data.tokenizer import Ids, Tokenizer
from heedful.decode.settings import Decoding, DecodingOptions
from heedful.errors import InputError
from heedful.run.folder import task_name
from heedful.store import files
from heedful.tasks.translate.confidence import FILE, Calibration, calibration_of
from heedful.tasks.translate.languages import Languages, as_told, only_direction

TASK, NAME = "task.json", "translate"  # the file, and what it calls the task


@dataclass(frozen=True, kw_only=True)
class TokenLengths:
    """Numbers of tokens of the training sources: of the longest, the 99th centile, and of the shortest (0: unknown)."""

    longest: int
    centile_99: int
    shortest: int = 0

    @classmethod
    def of(cls, sources: Sequence[int], begun: Path | None) -> "TokenLengths | None":
        """From the numbers of tokens of all sources; None for a run that was begun without these facts."""
        spec = None if begun is None else spec_in(begun)
        if spec is not None and spec.source_tokens is None:
            return None
        lengths = sorted(sources)
        return cls(longest=lengths[-1], centile_99=lengths[-(-99 * len(lengths) // 100) - 1], shortest=lengths[0])


@dataclass(frozen=True, kw_only=True)
class NoiseSpec:
    """What a denoiser was taught, and the most tokens of a passage."""

    objective: Literal["spans", "infill"]
    longest: int


@dataclass(frozen=True)
class StoredCalibration:
    """A calibration of confidence as confidence.json has it, which is read when it is first needed."""

    written: Mapping[str, Any]

    @cached_property
    def calibration(self) -> Calibration:
        """Raises InputError."""
        return calibration_of(self.written)


@dataclass(frozen=True, kw_only=True)
class TranslatorSpec:
    """The keys of task.json; None for one that it does not have. What a training keeps of the model that it starts from
    is such a spec too, without a task.

    `source` and `target` are the default direction; "" is a language that has to be asked for. `before` and `after` are
    the token ids around a source, `begin` those that begin each target, and `forbidden` those that are never generated.
    `decode` has the settings of the default search. `longest_source` is the number of tokens of a source that are read,
    and `source_tokens` how many the training sources had; `sources_of_several_sentences` is the share of these with
    several sentences, `reads_signs` has the unusual white space that many of them have, and `reads_capitals` says
    whether many are in capitals. `scores` is the metric. `tags` are the tokens of the kinds of translations, by name,
    and `tagged` is the kind that is asked for.
    """

    task: str | None = None
    family: str | None = None  # on the Hub
    source: str | None = None
    target: str | None = None
    before: tuple[int, ...] | None = None
    after: tuple[int, ...] | None = None
    begin: tuple[int, ...] | None = None
    forbidden: tuple[int, ...] | None = None
    decode: dict[str, Any] | None = None
    longest_source: int | None = None
    source_tokens: TokenLengths | None = None
    sources_of_several_sentences: float | None = None
    reads_signs: str | None = None
    reads_capitals: bool | None = None
    scores: Literal["bleu", "rouge"] | None = None
    noise: NoiseSpec | None = None
    languages: Languages | None = None
    tags: dict[str, int] | None = None
    tagged: str | None = None
    confidence: StoredCalibration | None = None  # in confidence.json of a run, and in task.json of an export
    more: Mapping[str, Any] = field(default_factory=dict)  # keys that are not known here, which are kept

    @classmethod
    def read(cls, about: Mapping[str, Any], *, where: str = TASK) -> "TranslatorSpec":
        """From the content of task.json. Raises InputError for a value of the wrong type."""
        given = {key: value for key, value in about.items() if key in KNOWN and value is not None}
        more = {key: value for key, value in about.items() if key not in given}
        decode, confidence = given.pop("decode", None), given.pop("confidence", None)
        if "languages" in given:
            given["languages"] = from_json(Languages, given["languages"], where=f"{where}: languages")
        return replace(
            from_json(cls, given, where, largest=None),
            decode=decode,
            confidence=None if confidence is None else StoredCalibration(confidence),
            more=more,
        )

    def written(self) -> dict[str, Any]:
        """The content of task.json; `read` is the inverse."""
        given = {name: value for name in KNOWN if (value := getattr(self, name)) is not None}
        own = {name: to_json(value) for name, value in given.items()}
        if self.languages is not None:
            own["languages"] = as_told(self.languages)
        if self.source_tokens is not None and not self.source_tokens.shortest:
            del own["source_tokens"]["shortest"]
        if self.confidence is not None:
            own["confidence"] = self.confidence.written
        return {**self.more, **own}

    @property
    def direction(self) -> tuple[str, str]:
        """The languages that are translated from and to by default."""
        source, target = self.source, self.target
        return "source" if source is None else source, "target" if target is None else target

    @property
    def language_pair(self) -> tuple[str, str] | None:
        """The same; None for a model that writes summaries."""
        return None if self.scores == "rouge" else self.direction

    @property
    def directions(self) -> list[tuple[str, str]]:
        """All directions of a model of several languages; none for another."""
        return [] if self.languages is None else self.languages.pairs()

    @property
    def longest_learnt(self) -> int | None:
        """How many tokens the longest training source had; None where that is not known."""
        return None if self.source_tokens is None else self.source_tokens.longest

    @property
    def shortest_learnt(self) -> int:
        """How many tokens the shortest training source had; 0 where that is not known, and for a model that fills gaps,
        whose sources are passages of text that were cut anywhere."""
        return 0 if self.source_tokens is None or self.noise is not None else self.source_tokens.shortest

    @property
    def longest_search(self) -> int | None:
        """The most tokens of a translation by default; None: it depends on the source."""
        return (self.decode or {}).get("longest")

    def decoding(self, settings: DecodingOptions) -> Decoding:
        """The search with these settings, and otherwise the default ones."""
        return Decoding(**{**(self.decode or {}), **settings})

    @property
    def calibration(self) -> Calibration | None:
        return None if self.confidence is None else self.confidence.calibration

    def around(self, tokenizer: Tokenizer) -> tuple[Ids, Ids]:
        """The tokens before a source, and after it, of this vocabulary."""
        return [*(self.before or ())], [tokenizer.eos] if self.after is None else [*self.after]

    def never(self, tokenizer: Tokenizer) -> list[int]:
        """The tokens of this vocabulary that are never generated."""
        return [tokenizer.pad, tokenizer.bos] if self.forbidden is None else [*self.forbidden]

    def between(self, source: str, target: str, tokenizer: Tokenizer) -> "TranslatorSpec":
        """The same with this direction of `languages`, and the tokens around its texts; "" is an unknown language."""
        assert self.languages is not None
        before, after, begin = self.languages.around(source, target, tokenizer)
        return replace(self, before=before, after=after, begin=begin, source=source, target=target)

    def redirected(self, source: str, target: str, tokenizer: Tokenizer) -> "tuple[TranslatorSpec, int | None] | None":
        """The same with the direction that is asked for, "" for a default, and the token that decoding starts with, if
        that is the target's language; None if nothing changes. Raises InputError for a direction that the model does
        not have."""
        if not source and not target:
            return None
        given = self.source or "", self.target or ""
        if self.languages is None:
            only_direction(source, target, given=given)
            return None
        source, target = self.languages.direction(source, target, given=given)
        return self.between(source, target, tokenizer), self.languages.start(target)

    def with_tag(self, tag: str) -> "TranslatorSpec":
        """The same for translations of this kind: its token is the last one before a source. Raises InputError for an
        unknown tag."""
        tokens = self.tags or {}
        if tag not in tokens:
            what = f"no tag {tag!r}: there are {listed(tokens)}" if tokens else "this model has learnt no tags"
            raise InputError(what, where="--tag", fix="name one of them" if tokens else "leave it out")
        plain = [token for token in self.before or () if token not in tokens.values()]
        return replace(self, before=(*plain, tokens[tag]), tagged=tag)

    def with_calibration(self, run: Path) -> "TranslatorSpec":
        """The same with the calibration in a run's folder, if it has one."""
        path = run / FILE
        return replace(self, confidence=StoredCalibration(files.read_json(path))) if path.is_file() else self


KNOWN = tuple(each.name for each in fields(TranslatorSpec) if each.name != "more")


def spec_in(folder: Path) -> TranslatorSpec | None:
    """What the folder's task.json says; None where it has none, or one of another task. Raises InputError or
    StorageError."""
    path = folder / TASK
    about = files.read_json(path) if path.is_file() else {}
    return TranslatorSpec.read(about) if about.get("task") == NAME else None


def spec_of_run(run: Path) -> TranslatorSpec:
    """What the task.json of a run says. Raises MissingError where there is no run, and InputError."""
    return TranslatorSpec.read(task_name(run)[1])


def languages_of(about: Mapping[str, Any]) -> tuple[str, str] | None:
    """The languages that a model translates from and to, by its task.json; None for a model that writes summaries."""
    return TranslatorSpec.read(about).language_pair


def directions_of(about: Mapping[str, Any]) -> list[tuple[str, str]]:
    """All directions of a model of several languages, by its task.json; none for another."""
    return TranslatorSpec.read(about).directions
