"""Trains a model that matches pictures and texts."""

import math
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.core.config import to_json
from heedful.core.seeds import random_stream, shuffled
from heedful.data.images.augment import AUGMENTS, Augment, seen
from heedful.data.images.captions import Captioned, CaptionedImages, read_captioned, same_pictures
from heedful.data.images.files import Preparation
from heedful.data.tokenizer import Tokenizer, train_tokenizer
from heedful.errors import InputError, counted
from heedful.models.clip import CLIP, CLIPConfig
from heedful.models.vision_presets import PAIRS, clip_config
from heedful.run.card import CardText, Scores
from heedful.run.folder import parameters
from heedful.run.job import Measurement
from heedful.run.recipe import row_of
from heedful.run.tokenizers import read_tokenizers
from heedful.tasks.match.recipe import MatchRecipe
from heedful.tasks.match.use import RECALLS, Matcher, MatchLayout, MatchSpec, lowered
from heedful.tasks.shared.picture_job import PictureJob, augment_of, fitted
from heedful.training.loss import Loss, contrastive

SHOWN = 8  # pictures in a sample
MEASURED = ("text_to_image_recall_10", "image_to_text_recall_10")
LARGEST_SCALE = math.log(100)  # the largest logarithm of the cosines' factor (Radford et al. 2021, section 2.5)


class CaptionBatch(NamedTuple):
    """Indices of training pictures, and for each that of one of its texts among all texts."""

    epoch: int
    pictures: list[int]
    texts: list[int]


def bounded(log_scale: Float[Tensor, ""]) -> Float[Tensor, ""]:
    """The logarithm, at most LARGEST_SCALE. A larger value gets only gradients that decrease it."""
    beyond = (log_scale.detach() - LARGEST_SCALE).clamp(min=0)
    held = log_scale - beyond
    if held.requires_grad and beyond > 0:
        held.register_hook(lambda gradient: gradient.clamp(min=0))
    return held


class MatchTask:
    """Batches of pictures, each with one of its texts, drawn anew in every epoch.

    The loss is over the pairs of one batch: with accumulation, or with a batch that is split among ranks, each pair has
    fewer negatives. Texts that also belong to a picture, because it occurs twice or they belong to several pictures,
    are not negatives.
    """

    def __init__(
        self, part: Captioned, spec: MatchSpec, layout: MatchLayout, augment: Augment, recipe: MatchRecipe
    ) -> None:
        self.images, self.spec, self.layout, self.augment = part.images, spec, layout, augment
        self.seed, self.size = recipe.train.seed, recipe.images.batch
        listed = [text for texts in part.captions for text in texts]
        numbers: dict[tuple[int, ...], int] = {}
        ids = iter([numbers.setdefault(tuple(own), len(numbers)) for own in layout.encode(listed)])
        self.texts = [[next(ids) for _ in texts] for texts in part.captions]  # the numbers of each picture's texts
        self.ids = [list(own) for own in numbers]
        twins = same_pictures(part.images)
        together: dict[int, set[int]] = {}
        for first, own in zip(twins, self.texts, strict=True):
            together.setdefault(first, set()).update(own)
        self.belonging = [together[first] for first in twins]

    def batches(self, epoch: int, model: object) -> list[CaptionBatch]:
        order = shuffled(len(self.texts), self.seed, epoch)
        count = math.ceil(len(order) / self.size)
        drawn = [
            own[random_stream(self.seed, epoch, "text", i).randrange(len(own))] for i, own in enumerate(self.texts)
        ]
        return [CaptionBatch(epoch, own, [drawn[i] for i in own]) for own in (order[n::count] for n in range(count))]

    def loss(self, model: CLIP, batch: CaptionBatch) -> Loss:
        device = model.log_scale.device
        images = model.encode_image(self.pixels(batch).to(model.image_out.weight))
        texts = model.encode_text(self.layout.rows([self.ids[i] for i in batch.texts]).to(device))
        similarity = bounded(model.log_scale).exp() * images @ texts.mT
        return contrastive(similarity, self.same(batch).to(device))

    def pixels(self, batch: CaptionBatch) -> Float[Tensor, "I N H W"]:
        """The pictures with this epoch's augmentations."""
        return seen(self.images, batch.pictures, self.spec.preparation, self.augment, self.seed, batch.epoch)

    def same(self, batch: CaptionBatch) -> Bool[Tensor, "I I"]:
        """Whether the text of a column belongs to the picture of a row."""
        columns: dict[int, list[int]] = {}
        for column, text in enumerate(batch.texts):
            columns.setdefault(text, []).append(column)
        same = torch.zeros(len(batch.pictures), len(batch.pictures), dtype=torch.bool)
        for row, picture in enumerate(batch.pictures):
            for text in self.belonging[picture] & columns.keys():
                same[row, columns[text]] = True
        return same


class MatchJob(PictureJob[MatchRecipe, CaptionedImages, CLIP]):
    kinds: ClassVar = "a .csv with the columns image,text, or a folder"
    served: ClassVar = Matcher
    config_kind: ClassVar = CLIPConfig
    spec_kind: ClassVar = MatchSpec
    score_names = MEASURED
    halves = False  # all other pictures of a batch are negatives
    answers: MatchSpec
    tokenizer: Tokenizer

    def __init__(self, recipe: MatchRecipe, corpus: CaptionedImages | None = None, begun: Path | None = None) -> None:
        super().__init__(recipe, corpus, begun)
        corpus = self.corpus
        if len(corpus.train) < 2:
            raise InputError("one picture alone, expected at least two to tell apart", where=corpus.name)
        found = self.read_pictures()
        texts = [text for own in corpus.train.captions for text in own]
        known = Path(recipe.start_from) if begun is None and recipe.start_from else begun
        tokenizers = None if known is None else read_tokenizers(known)
        self.tokenizer = _learnt(recipe, texts) if tokenizers is None else tokenizers[0]
        if self.start is None:
            seen = Preparation(channels=corpus.channels, mean=found.mean, std=found.std)
            self.config, self.answers = _new_config(corpus, recipe, seen, self.tokenizer)
        else:
            self.config, self.answers = self.start
            if recipe.images.size not in (None, self.answers.preparation.size[0]):
                raise InputError("images.size cannot be chosen: the model is that of another run", fix="leave it out")
        self.layout = _layout(self.tokenizer, self.answers, self.config)
        self.layout.encode(texts)
        if self.layout.cut:
            what = f"the end of {counted(self.layout.cut, 'text')} is not read"
            self.notes.append(f"{what}: longer than {self.layout.context - 2} tokens")
        if recipe.train.accumulate > 1:
            self.notes.append(f"pictures are told from the others of their batch of {recipe.images.batch} alone")
        self.fingerprint = sha256(repr((found.fingerprint, corpus.train.captions)).encode()).hexdigest()

    def read(self) -> CaptionedImages:
        return read_captioned(self.recipe.data.path, channels=self.channels)

    def describe(self) -> str:
        rows, columns = self.answers.preparation.size
        texts = sum(map(len, self.corpus.train.captions))
        return f"{counted(len(self.corpus.train), 'picture')} with {counted(texts, 'text')}, {rows} x {columns} pixels"

    def own_facts(self) -> dict[str, object]:
        return {
            "texts": {name: sum(map(len, part.captions)) for name, part in self.corpus.named().items()},
            "preparation": to_json(self.answers.preparation),
            "vocabulary": self.tokenizer.size,
        }

    def task(self, model: object) -> MatchTask:
        augment = augment_of(self.recipe.images, AUGMENTS)
        layout = _layout(self.tokenizer, self.answers, self.config)
        return MatchTask(self.corpus.train, self.answers, layout, augment, self.recipe)

    def floor(self) -> float:
        """Two standard deviations above the sum of all recalls of keys in random order, from both sides."""
        count = len(self.valid)
        of_rank = [sum(rank < most for most in RECALLS) for rank in range(count)]
        return 2 * (fmean(of_rank) + 2 * pstdev(of_rank) / math.sqrt(count))

    def measure(self, model: CLIP) -> Measurement:
        matcher = Matcher(model, self.tokenizer, self.spec())
        found = matcher.measure(self.valid)
        loss, sample = found.pop("loss"), matcher.sample(self.valid, SHOWN)
        return Measurement(loss, {name: found[name] for name in MEASURED}, sum(found.values()), sample)

    def tensors(self, model: CLIP) -> dict[str, Tensor]:
        """The weights, with the logarithm of the scale clamped as in every loss."""
        tensors = parameters(model)
        tensors["log_scale"] = tensors["log_scale"].clamp(max=LARGEST_SCALE)
        return tensors

    def tells(self, folder: Path, scores: Scores, best: Mapping[str, Any]) -> CardText:
        sizes = ", ".join(f"{counted(len(part), 'picture')} in {name}" for name, part in self.tests())
        return self.told(
            scores,
            what="Says which texts belong to a picture, and which pictures to a text. Recall at k: how often one that "
            f"belongs to it is among the best k, of {sizes}. Its probabilities are not calibrated, and say "
            "nothing of texts that were not asked for.",
            learnt_on=f"{self.describe()}, from `{self.corpus.name}`",
            kept=f"step {best['step']:,}, the best on the validation pictures by the sum of all recalls (text to image "
            f"recall 10: {best[MEASURED[0]]:.4f})",
            use=[f'heed match {folder} PICTURE.png --text "one thing" --text "another"'],
        )


def _learnt(recipe: MatchRecipe, texts: list[str]) -> Tokenizer:
    return train_tokenizer(map(lowered, texts), kind=recipe.data.tokenizer, size=recipe.data.vocab_size)


def _layout(tokenizer: Tokenizer, spec: MatchSpec, config: CLIPConfig) -> MatchLayout:
    text = config.text
    return MatchLayout(tokenizer, lower=spec.lower, context=text.embed.context_length, end=text.end)


def _new_config(
    corpus: CaptionedImages, recipe: MatchRecipe, seen: Preparation, tokenizer: Tokenizer
) -> tuple[CLIPConfig, MatchSpec]:
    """A new model's configuration and spec."""
    row, size = fitted(row_of(PAIRS, recipe), recipe, recipe.images.size, corpus.size)
    config = clip_config(row, vocab_size=tokenizer.size, end=tokenizer.eos, size=(size, size), channels=corpus.channels)
    return config, MatchSpec(preparation=replace(seen, resize=(size,), crop=(size, size)))
