"""Turns speech into text with a trained model: files of any length, in windows between their pauses.

B windows, M mel bands, F frames, S positions.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypedDict

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heedful.core.arguments import checks_arguments
from heedful.core.config import unknown_key
from heedful.data.parts import scored_by_name
from heedful.data.sound.features import Hearing
from heedful.data.sound.files import RATE, read_sound
from heedful.data.sound.subtitles import Segment
from heedful.data.sound.utterances import Utterance, read_test_utterances
from heedful.data.sound.windows import Window, windows_of
from heedful.data.tokenizer import Ids, Tokenizer
from heedful.decode.contract import with_attention
from heedful.decode.rules import ForbidAt
from heedful.decode.settings import Decoding, DecodingOptions
from heedful.errors import InputError
from heedful.metrics.speech import error_rates
from heedful.models import CTC, SpeechToText
from heedful.run.folder import Saved
from heedful.run.task import Ask, Scored
from heedful.tasks.shared.asked import refuse_nothing
from heedful.tasks.shared.one_or_many import one_or_many
from heedful.tasks.shared.options import DataOptions
from heedful.tasks.shared.served import TextModel, refuse_nan_answers, spec_of, text_facts
from heedful.tasks.shared.writing import written
from heedful.tasks.transcribe.losses import speech_loss
from heedful.tasks.transcribe.options import TranscribeOptions

READ = 8192  # positions that are heard together: a decoder keeps their keys in every layer
FILES = 16  # that are measured together


@dataclass(frozen=True, kw_only=True)
class TranscribeSpec:
    """The content of task.json besides the task's name: how sound is heard, and, of a model with a decoder, how it
    searches, which tokens name the language of a text that begins with one, which ones follow it, and which never come,
    or not as the first of the text."""

    hearing: Hearing
    decode: DecodingOptions = field(default_factory=lambda: DecodingOptions(beam=1))
    languages: dict[str, int] = field(default_factory=dict)
    begin: tuple[int, ...] = ()
    forbidden: tuple[int, ...] = ()
    forbidden_first: tuple[int, ...] = ()


@dataclass(frozen=True)
class Transcript:
    """`language` is "" where the model has no names of languages."""

    segments: tuple[Segment, ...]
    seconds: float
    language: str = ""

    @property
    def text(self) -> str:
        return " ".join(segment.text for segment in self.segments if segment.text)


class Transcriber(TextModel[SpeechToText | CTC]):
    """A trained model that turns speech into text."""

    task: ClassVar = "transcribe"
    purpose: ClassVar = "turning speech into text"

    def __init__(self, model: SpeechToText | CTC, tokenizer: Tokenizer, about: dict[str, Any]) -> None:
        super().__init__(model, tokenizer, about)
        self.spec = spec_of(TranscribeSpec, about)
        self.decoding = Decoding(**self.spec.decode)

    @one_or_many()
    def transcribe(self, files: Sequence[str | Path], *, language: str = "") -> list[Transcript]:
        """What is said in each file, with times. `language`: of a model with several, the language that is spoken; ""
        lets the model tell. Raises InputError or MissingError."""
        return [self.hear(read_sound(file), language=language) for file in files]

    @checks_arguments
    def hear(self, sound: Tensor, *, language: str = "") -> Transcript:
        """The same of samples, of which there are RATE a second."""
        cut = windows_of(sound, self.spec.hearing.samples)
        steps = self.decoding.beam * with_attention(self.longest)
        self.spend(len(cut) * (self.spec.hearing.positions + steps), self.decoding.beam * self.longest)
        windows = [sound[window.first : window.last] for window in cut]
        language = self.language_of(windows, language)
        segments = map(_segment, cut, self.texts(windows, language))
        return Transcript((*segments,), round(len(sound) / RATE, 3), language)

    @property
    def longest(self) -> int:
        """Tokens of a window's text, at most, that are written one by one."""
        if isinstance(self.model, CTC):
            return 0
        most = self.model.config.target.context_length - 1
        return min(self.decoding.longest or most, most)

    @torch.inference_mode()
    def texts(self, windows: Sequence[Tensor], language: str = "") -> list[str]:
        """The text of each window, in this language, if the model has several."""
        texts: list[str] = []
        together = max(1, READ // self.spec.hearing.positions)
        for first in range(0, len(windows), together):
            sound, lengths = self.spec.hearing.inputs(windows[first : first + together], self.model.head.weight.device)
            if isinstance(self.model, CTC):
                rows = said_by_positions(self.model, sound, lengths)
            else:
                rows = self._written(sound, language)
            texts += [" ".join(self.tokenizer.decode(ids).split()) for ids in rows]
        return texts

    def language_of(self, windows: Sequence[Tensor], language: str) -> str:
        """The language that is asked for, or that of the first window as the model tells it. Raises InputError for one
        that it does not know."""
        known = self.spec.languages
        if language and not known:
            raise InputError("this model has one language", where=language, fix="leave out the language")
        if language and language not in known:
            raise unknown_key(language, [*known], where="language", what="language")
        if language or not known or not windows or isinstance(self.model, CTC):
            return language
        with torch.inference_mode():
            device = self.model.head.weight.device
            sound, bos = self.spec.hearing(windows[:1]).to(device), torch.tensor([self.tokenizer.bos], device=device)
            logits, _ = self.model.step(bos, self.model.start(sound))
        return max(known, key=lambda name: float(logits[0, known[name]]))

    def begin(self, language: str = "") -> Ids:
        """The tokens that begin a text, behind the first one."""
        return [*([self.spec.languages[language]] if language else []), *self.spec.begin]

    def _written(self, sound: Float[Tensor, "B M F"], language: str) -> list[Ids]:
        """The tokens of each text that the decoder writes."""
        assert isinstance(self.model, SpeechToText)
        begin = self.begin(language)
        return written(
            self.model,
            sound,
            [begin] * len(sound),
            self.tokenizer,
            self.decoding,
            longest=self.longest,
            at_once=self.at_once,
            forbidden=self.spec.forbidden,
            rules=[ForbidAt(len(begin), self.spec.forbidden_first)] if self.spec.forbidden_first else [],
        )

    @checks_arguments
    def measure(self, part: Sequence[Utterance]) -> tuple[dict[str, float], list[str]]:
        """The loss in nats a token, the word error rate and the character error rate; and the texts. A file that is
        longer than a window has no loss."""
        refuse_nothing(part)
        heard, total, count = list[str](), 0.0, 0
        targets = self.tokenizer.encode([row.text for row in part])
        for first in range(0, len(part), FILES):
            numbers = range(first, min(first + FILES, len(part)))
            batch = [read_sound(part[i].file) for i in numbers]
            heard += self._all_said(batch)
            fitting = [i for i, sound in zip(numbers, batch, strict=True) if len(sound) <= self.spec.hearing.samples]
            if fitting:
                with torch.inference_mode():
                    sounds, hearing = [batch[i - first] for i in fitting], self.spec.hearing
                    ids, begin, lengths = [targets[i] for i in fitting], self.spec.begin, hearing.lengths(sounds)
                    loss = speech_loss(self.model, hearing(sounds), ids, self.tokenizer, begin=begin, lengths=lengths)
                total, count = total + float(loss.total), count + loss.count
        rates = error_rates([row.text for row in part], heard)
        return ({"loss": total / count} if count else {}) | rates, heard

    def _all_said(self, sounds: Sequence[Tensor]) -> list[str]:
        """The text of each sound. Those that are one window, in the one language of the model, are heard together."""
        counts = [len(windows_of(sound, self.spec.hearing.samples)) for sound in sounds]
        together = [i for i, count in enumerate(counts) if count == 1 and len(sounds[i]) <= self.spec.hearing.samples]
        together = [] if self.spec.languages else together
        texts = dict(zip(together, self.texts([sounds[i] for i in together]), strict=True))
        return [texts[i] if i in texts else self.hear(sound).text for i, sound in enumerate(sounds)]


def _segment(window: Window, text: str) -> Segment:
    return Segment(round(window.begin, 3), round(window.end, 3), text)


def said_by_positions(model: CTC, sound: Float[Tensor, "B M F"], lengths: Int[Tensor, "B"] | None = None) -> list[Ids]:
    """What the likeliest path says: each token once for all positions in a row that say it, without blanks (Graves et
    al. 2006, section 3.2). `lengths`: as in `CTC`."""
    logits = model(sound, lengths)
    paths = [row[:end] for row, end in zip(logits.argmax(-1), model.encoder.ends(logits, lengths), strict=True)]
    refuse_nan_answers(logits)
    return [[token for token in path.unique_consecutive().tolist() if token != model.config.blank] for path in paths]


class TranscribedFile(TypedDict, total=False):
    """An answer as a record. `language` is there where the model has several."""

    input: str
    text: str
    seconds: float
    language: str
    segments: list[dict[str, Any]]


def transcribed_record(file: str, transcript: Transcript) -> TranscribedFile:
    segments = [segment._asdict() for segment in transcript.segments]
    record = TranscribedFile(input=file, text=transcript.text, seconds=transcript.seconds, segments=segments)
    if transcript.language:
        record["language"] = transcript.language
    return record


def transcribe_files(model: Transcriber, files: Sequence[str], options: TranscribeOptions) -> Iterator[TranscribedFile]:
    for file in files:
        yield transcribed_record(file, model.transcribe(file, language=options.language or ""))


ASK = Ask(transcribe_files, TranscribeOptions, gathers=lambda options: False, reads="sounds")


def score_transcriber(model: Transcriber, options: DataOptions) -> Iterator[Scored]:
    tests: Mapping[str, list[Utterance]] = read_test_utterances(options.path)
    for name, part in scored_by_name(tests, options.path).items():
        yield Scored(name, model.measure(part)[0], examples=map(repr, part))


def transcriber_facts(saved: Saved) -> dict[str, Any]:
    spec = spec_of(TranscribeSpec, dict(saved.about))
    target = getattr(saved.config, "target", None)
    languages = {"languages": ", ".join(spec.languages)} if spec.languages else {}
    facts = text_facts(saved, None if target is None else target.context_length)
    return facts | {"hears": spec.hearing.in_words} | languages
