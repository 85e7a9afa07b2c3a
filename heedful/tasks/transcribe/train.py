"""Trains a model that turns speech into text."""

from collections import deque
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from heedful.core.config import from_json, to_json, unknown_key
from heedful.data.sound.features import Hearing, varied
from heedful.data.sound.files import RATE, Sounds
from heedful.data.sound.utterances import Utterance, Utterances, read_utterances
from heedful.data.tokenizer import Ids, Tokenizer, train_tokenizer
from heedful.decode.settings import DecodingOptions
from heedful.errors import InputError, are, counted
from heedful.metrics.labels import by_luck
from heedful.models import CTC, SpeechToText, config_from
from heedful.models.speech import CTCConfig
from heedful.models.speech_presets import SPEECH, speech_config
from heedful.run.card import CardText, Scores, fingerprint, score_table
from heedful.run.job import Job, Measurement
from heedful.run.recipe import row_of
from heedful.run.start import Start, read_start
from heedful.tasks.shared.pictures import PictureBatch, picture_batches
from heedful.tasks.transcribe.losses import speech_loss
from heedful.tasks.transcribe.recipe import TranscribeRecipe
from heedful.tasks.transcribe.use import Transcriber, TranscribeSpec
from heedful.training.loss import Loss

SHOWN = 4  # utterances in a sample
LONGEST_WINDOW = 30  # seconds of a new model's window, at most
ROOM = 2  # times the tokens of the longest training text, at which a search ends


class TranscribeTask:
    """Batches of utterances, whose sound is changed anew in every epoch."""

    def __init__(self, job: "TranscribeJob") -> None:
        self.job, self.plan = job, job.recipe

    def batches(self, epoch: int, model: object) -> list[PictureBatch]:
        tokens = [len(self.job.answers.begin) + len(ids) for ids in self.job.targets]
        size, seed = self.plan.sound.batch, self.plan.train.seed
        return picture_batches(len(tokens), size, seed=seed, epoch=epoch, tokens=tokens)

    def loss(self, model: SpeechToText | CTC, batch: PictureBatch) -> Loss:
        job = self.job
        keys = [(self.plan.train.seed, batch.epoch, i) for i in batch.pictures if self.plan.sound.augment]
        features, lengths = varied(job.answers.hearing, [job.sounds[i] for i in batch.pictures], keys)
        targets, begin = [job.targets[i] for i in batch.pictures], job.answers.begin
        return speech_loss(model, features, targets, job.tokenizer, begin=begin, lengths=lengths, longest=batch.longest)


class TranscribeJob(Job[TranscribeRecipe, Utterances, SpeechToText | CTC]):
    unit: ClassVar = "utterances"
    kinds: ClassVar = "a .csv, .tsv or .jsonl file with a file of sound and a text on each line, or a folder of such"
    served: ClassVar = Transcriber
    score_names = ("wer",)
    answers: TranscribeSpec
    tokenizer: Tokenizer
    start: Start | None

    def __init__(self, recipe: TranscribeRecipe, corpus: Utterances | None = None, begun: Path | None = None) -> None:
        super().__init__(recipe, corpus, begun)
        train, data = self.corpus.train, recipe.data
        texts = [row.text for row in train]
        sounds = Sounds([row.file for row in train])
        lengths = [len(sound) for sound in sounds]  # reads each, so that a damaged one is reported now
        self.heard = [len(sound) for sound in Sounds([row.file for row in self.corpus.valid])]
        for part in self.corpus.tests.values():
            deque(Sounds([row.file for row in part]), maxlen=0)
        if self.start:
            self.tokenizer = self.start.source
            self.config = config_from(self.start.model, where=f"{recipe.start_from}/config.json")
            hearing = from_json(Hearing, self.start.around["hearing"], where=f"{recipe.start_from}/task.json")
        else:
            self.tokenizer = self.kept_tokenizer(
                lambda: train_tokenizer(texts, kind=data.tokenizer, size=data.vocab_size)
            )
            row = row_of(SPEECH, recipe)
            seconds = recipe.sound.seconds or min(LONGEST_WINDOW, -(-max(lengths) // RATE))
            hearing = Hearing(seconds=seconds, mels=row.mels)
            self.config = speech_config(row, vocab_size=self.tokenizer.size, positions=hearing.positions)
        targets = self._learnt(self.tokenizer.encode(texts))
        self.answers = self._spec(hearing, max(map(len, targets)))
        room = self._room(hearing)
        kept = [i for i in range(len(train)) if lengths[i] <= hearing.samples and 0 < len(targets[i]) <= room]
        if not kept:
            what = f"no sound is as short as a window of {hearing.seconds} s with a text of {room} tokens"
            raise InputError(what, where=self.corpus.name, fix="--set sound.seconds=30")
        if left_out := len(train) - len(kept):
            self.notes.append(
                f"{counted(left_out, 'utterance')} of more than {hearing.seconds} s or {room} tokens {are(left_out)} "
                "left out"
            )
        self.targets = [targets[i] for i in kept]
        self.sounds = sounds if not left_out else Sounds([train[i].file for i in kept])
        self.hours = sum(lengths[i] for i in kept) / RATE / 3600
        self.fingerprint = fingerprint([*texts, *map(str, lengths)])

    @cached_property
    def valid_fingerprint(self) -> str:
        """Of texts and lengths: files may be elsewhere."""
        return fingerprint(f"{row.text}\0{n}" for row, n in zip(self.corpus.valid, self.heard, strict=True))

    def read(self) -> Utterances:
        return read_utterances(self.recipe.data.path)

    def read_start(self) -> Start | None:
        if self.recipe.start_from and self.recipe.sound.seconds is not None:
            raise InputError("sound.seconds is that of the model that it starts from", fix="leave it out")
        return read_start(self.recipe, self.begun, "transcribe")

    def _spec(self, hearing: Hearing, longest: int) -> TranscribeSpec:
        """With a start, the tokens around its texts are kept, those of one language of several."""
        around = self.start.around if self.start else {}
        languages, language = around.get("languages") or {}, self.recipe.sound.language
        if languages and language not in languages:
            raise unknown_key(language, [*languages], where="sound.language", what="language")
        if language and not languages:
            raise InputError(f"sound.language is {language!r}, and the model has one language", fix="leave it out")
        begin = (*([languages[language]] if language else []), *around.get("begin", ()))
        return TranscribeSpec(
            hearing=hearing,
            decode=DecodingOptions(beam=1, longest=ROOM * longest + len(begin)),
            begin=begin,
            forbidden=tuple(around.get("forbidden", ())),
            forbidden_first=tuple(around.get("forbidden_first", ())),
        )

    def _learnt(self, targets: list[Ids]) -> list[Ids]:
        """Without what a vocabulary of letters does not have."""
        if self.tokenizer.ours or not isinstance(self.config, CTCConfig):
            return targets
        unknown = {*self.tokenizer.controls}
        kept = [[token for token in ids if token not in unknown] for ids in targets]
        if left_out := sum(map(len, targets)) - sum(map(len, kept)):
            share = left_out / sum(map(len, targets))
            self.notes.append(f"{share:.1%} of the texts' letters are none of the model's, and are left out")
        return kept

    def _room(self, hearing: Hearing) -> int:
        """Tokens of a text, at most."""
        if isinstance(self.config, CTCConfig):
            return hearing.positions // 2  # between two of the same there is a blank
        return self.config.target.context_length - 1 - len(self.answers.begin)

    def describe(self) -> str:
        amount = f"{counted(len(self.targets), 'utterance')}, {60 * self.hours:.1f} minutes"
        return (
            f"{amount} in windows of {self.answers.hearing.seconds} s, {self.tokenizer.size:,} tokens in the vocabulary"
        )

    def own_facts(self) -> dict[str, object]:
        return {"hours": self.hours, "vocabulary": self.tokenizer.size, "hearing": to_json(self.answers.hearing)}

    def task(self, model: SpeechToText | CTC) -> TranscribeTask:
        return TranscribeTask(self)

    def measure(self, model: SpeechToText | CTC) -> Measurement:
        rows: Sequence[Utterance] = self.valid
        scores, heard = Transcriber(model, self.tokenizer, self.spec()).measure(rows)
        lines = [f"said   {row.text}\nheard  {text}\n" for row, text in zip(rows[:SHOWN], heard, strict=False)]
        loss = scores.pop("loss", float("inf"))
        return Measurement(loss, scores, 1 - scores["wer"], "\n".join(lines))

    def floor(self) -> float:
        return by_luck(sum(len(row.text.split()) for row in self.corpus.valid))

    def score(self, best: Transcriber, part: list[Utterance]) -> Mapping[str, Any]:
        return best.measure(part)[0]

    def tells(self, folder: Path, scores: Scores, best: Mapping[str, Any]) -> CardText:
        spec = self.answers
        return CardText(
            what="Turns speech into text.",
            learnt_on=f"{counted(len(self.targets), 'utterance')} ({self.hours:.2f} hours), from `{self.corpus.name}`",
            table=score_table("speech", scores),
            how="`wer` is the share of words that are wrong, `cer` that of characters, in lower case without "
            f"punctuation. Sound is heard in windows of {spec.hearing.seconds} s.",
            kept=f"step {best['step']:,}, the best on the validation speech (WER {best['wer']:.4f})",
            use=[f"heed transcribe {folder} SPEECH.wav", f"heed eval {folder} --data MORE.csv"],
            limits="It has heard only the voices, words and rooms above: on others expect worse than the table says.",
        )
