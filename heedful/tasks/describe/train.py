"""Trains a model that writes texts about pictures."""

from collections import Counter
from collections.abc import Mapping
from hashlib import sha256
from math import sqrt
from pathlib import Path
from typing import Any, ClassVar

from torch import nn

from heedful.core.config import to_json
from heedful.core.dropout import Dropout
from heedful.core.seeds import shuffled
from heedful.data.images.augment import AUGMENTS, seen
from heedful.data.images.captions import Captioned, CaptionedImages, read_captioned
from heedful.data.tokenizer import Ids, Tokenizer, train_tokenizer
from heedful.decode.settings import DecodingOptions
from heedful.errors import InputError, are, counted
from heedful.models import ImageToText, ImageToTextConfig
from heedful.models.vision_presets import DESCRIBERS, describe_config
from heedful.run.card import CardText, Scores
from heedful.run.job import Measurement
from heedful.run.recipe import row_of
from heedful.run.tokenizers import read_tokenizers
from heedful.tasks.describe.recipe import DescribeRecipe
from heedful.tasks.describe.use import Described, Describer, DescribeSpec, described, text_loss, text_scores
from heedful.tasks.shared.picture_job import PictureJob, augment_of
from heedful.tasks.shared.pictures import PictureBatch, in_batches
from heedful.training.loss import Loss

SHOWN = 8  # pictures in a sample
ROOM = 2  # times the tokens of the longest training text, at which a search ends


class DescribeTask:
    """Batches of texts, each with its picture, which is augmented anew in every epoch. The texts of a picture follow
    each other, so that without dropout it is encoded once for all that are in a batch."""

    def __init__(self, job: "DescribeJob") -> None:
        self.job, self.plan = job, job.recipe
        self.augment = augment_of(self.plan.images, AUGMENTS)
        rows: dict[int, list[int]] = {}
        for row, (picture, _, _) in enumerate(job.texts):
            rows.setdefault(picture, []).append(row)
        self.rows_of_each = [*rows.values()]  # the numbers of each picture's texts

    def batches(self, epoch: int, model: object) -> list[PictureBatch]:
        tokens = [len(begin) + len(text) for _, begin, text in self.job.texts]
        pictures = shuffled(len(self.rows_of_each), self.plan.train.seed, epoch)
        order = [row for picture in pictures for row in self.rows_of_each[picture]]
        return in_batches(order, self.plan.images.batch, epoch=epoch, tokens=tokens)

    def loss(self, model: ImageToText, batch: PictureBatch) -> Loss:
        job, spec = self.job, self.job.answers
        pictures, begins, texts = zip(*(job.texts[i] for i in batch.pictures), strict=True)
        images, seed = job.corpus.train.images, self.plan.train.seed
        different = pictures if _drops(model.encoder) else [*dict.fromkeys(pictures)]
        shown = None if different is pictures else [different.index(picture) for picture in pictures]
        pixels = spec.shown(seen(images, different, spec.preparation, self.augment, seed, batch.epoch))
        return text_loss(model, pixels, begins, texts, job.tokenizer, pictures=shown, longest=batch.longest)


def _drops(encoder: nn.Module) -> bool:
    """Whether it has dropout, of which each row of a batch draws its own."""
    return any(isinstance(part, Dropout) and part.p > 0 for part in encoder.modules())


class DescribeJob(PictureJob[DescribeRecipe, CaptionedImages, ImageToText]):
    kinds: ClassVar = "a .csv with the columns image,text (and question), or a folder"
    served: ClassVar = Describer
    config_kind: ClassVar = ImageToTextConfig
    spec_kind: ClassVar = DescribeSpec
    score_names = ("exact", "cer")
    answers: DescribeSpec
    tokenizer: Tokenizer

    def __init__(
        self, recipe: DescribeRecipe, corpus: CaptionedImages | None = None, begun: Path | None = None
    ) -> None:
        super().__init__(recipe, corpus, begun)
        pictures, train, rows = self.read_pictures(), self.corpus.train, described(self.corpus.train)
        known = Path(recipe.start_from) if begun is None and recipe.start_from else begun
        tokenizers = None if known is None else read_tokenizers(known)
        words = [text for row in rows for text in (row.question, *row.texts) if text]
        kind, size = recipe.data.tokenizer, recipe.data.vocab_size
        self.tokenizer = train_tokenizer(words, kind=kind, size=size) if tokenizers is None else tokenizers[0]
        if self.start is None:
            preset = row_of(DESCRIBERS, recipe)
            longest = round(preset.size * sqrt(max(self.corpus.size) / min(self.corpus.size)))
            preparation = self.seen_whole(pictures, longest=longest)  # as many pixels as a square of the preset's size
            self.config = describe_config(
                preset, vocab_size=self.tokenizer.size, size=preparation.size, channels=preparation.channels
            )
        else:
            self.config, preparation = self.start.config, self.start.spec.preparation
            if recipe.images.size not in (None, max(preparation.size)):
                raise InputError("images.size cannot be chosen: the model is that of another run", fix="leave it out")
        self.texts = self._encoded(rows)
        asked = Counter(bool(row.question) for row in rows)
        self.answers = DescribeSpec(
            preparation=preparation,
            questions="never" if not asked[True] else "sometimes" if asked[False] else "always",
            decode=DecodingOptions(beam=1, longest=ROOM * max(len(text) for _, _, text in self.texts)),
            forbidden=() if self.start is None else self.start.spec.forbidden,
            blank=recipe.images.blank,
        )
        for name, part in self.corpus.named().items():
            questions = [row.question for row in described(part) if name != "train"]
            try:
                self.answers.encoded(questions, self.tokenizer, longest=self.room)
            except InputError as error:
                raise InputError(error.what, where=f"{self.corpus.name}: {name}", fix=error.fix) from None
        self.fingerprint = sha256(repr((pictures.fingerprint, train.captions, train.questions)).encode()).hexdigest()

    def read(self) -> CaptionedImages:
        return read_captioned(self.recipe.data.path, channels=self.channels)

    def _encoded(self, rows: list[Described]) -> list[tuple[int, Ids, Ids]]:
        """The number of a picture, a question and a text, for each text that the model has room for. Raises InputError
        where there is none."""
        flat = [(row.picture, row.question, text) for row in rows for text in row.texts]
        begins = self.tokenizer.encode([question for _, question, _ in flat])
        texts = self.tokenizer.encode([text for *_, text in flat])
        every = [(picture, begin, text) for (picture, *_), begin, text in zip(flat, begins, texts, strict=True)]
        kept = [each for each in every if len(each[1]) + len(each[2]) <= self.room]
        if not kept:
            what = f"every text has more than {self.room} tokens"
            raise InputError(what, where=self.corpus.name, fix="--set model.context_length=512")
        if left_out := len(every) - len(kept):
            self.notes.append(f"{counted(left_out, 'text')} of more than {self.room} tokens {are(left_out)} left out")
        return kept

    @property
    def room(self) -> int:
        """Tokens of a question and its text, at most."""
        return self.config.target.context_length - 1

    def describe(self) -> str:
        rows, columns = self.answers.preparation.size
        texts = counted(len(self.texts), "text")
        return f"{counted(len(self.corpus.train), 'picture')} with {texts}, {rows} x {columns} pixels"

    def own_facts(self) -> dict[str, object]:
        return {
            "texts": len(self.texts),
            "preparation": to_json(self.answers.preparation),
            "vocabulary": self.tokenizer.size,
        }

    def task(self, model: object) -> DescribeTask:
        return DescribeTask(self)

    def measure(self, model: ImageToText) -> Measurement:
        scores, texts = Describer(model, self.tokenizer, self.spec()).measured(self.valid)
        rows = described(self.valid)[:SHOWN]
        shown = (" ".join(filter(None, (row.question, row.texts[0]))) for row in rows)
        lines = [f"right    {right}\nwritten  {text}\n" for right, text in zip(shown, texts, strict=False)]
        loss = scores.pop("loss", float("inf"))
        return Measurement(loss, scores, rank_of(scores), "\n".join(lines))

    def floor(self) -> float:
        """Of the text that is the most frequent, for each question, in the training data."""
        texts = dict[str, Counter[str]]()
        for row in described(self.corpus.train):
            for question in {row.question, ""}:
                texts.setdefault(question, Counter()).update(row.texts)
        rows = described(self.valid)
        frequent = [texts.get(row.question, texts[""]).most_common(1)[0][0] for row in rows]
        return rank_of(text_scores(frequent, [row.texts for row in rows]))

    def score(self, best: Describer, part: Captioned) -> Mapping[str, Any]:
        return best.measure(part)

    def tells(self, folder: Path, scores: Scores, best: Mapping[str, Any]) -> CardText:
        ask = "" if self.answers.questions == "never" else ' --question "..."'
        return self.told(
            scores,
            what="Writes a text about a picture. `exact` is the share of texts that are exactly right, `cer` the "
            "characters that are wrong, a character of the right text.",
            learnt_on=f"{self.describe()}, from `{self.corpus.name}`",
            kept=f"step {best['step']:,}, the best on the validation pictures (exactly right {best['exact']:.4f}, "
            f"character error rate {best['cer']:.4f})",
            use=[f"heed describe {folder} PICTURE.png{ask}", f"heed eval {folder} --data MORE.csv"],
        )


def rank_of(scores: Mapping[str, float]) -> float:
    """More is better. What is exactly right tells short answers apart, and characters long texts, of which none is."""
    return scores["exact"] - scores["cer"]
