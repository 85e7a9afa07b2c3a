"""Matches pictures and texts with a trained model.

I pictures of N channels and H x W pixels, B texts of T tokens, D width of the common space.
"""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, NotRequired, TypedDict

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from tokenizers import normalizers
from torch import Tensor

from heedful.core.arguments import checks_arguments
from heedful.data.batches import pad
from heedful.data.images.captions import Captioned, pictures_in, read_test_captions, same_pictures
from heedful.data.images.files import ImageFile, ImageFiles, Images, Preparation, each_of, is_image, where_of
from heedful.data.parts import scored_by_name
from heedful.data.tokenizer import Ids, Tokenizer
from heedful.errors import InputError, MissingError, TextError
from heedful.models.clip import CLIP
from heedful.run.folder import Saved
from heedful.run.task import Ask, Scored
from heedful.tasks.match.options import TEMPLATE, MatchOptions, PictureSearchOptions
from heedful.tasks.shared.asked import refuse_no_answers, refuse_nothing
from heedful.tasks.shared.lengths import cut_at, cut_warning, shorten, warn
from heedful.tasks.shared.one_or_many import is_one, listed, one_or_many
from heedful.tasks.shared.options import DataOptions
from heedful.tasks.shared.served import TextModel, refuse_nan_answers, size_in_words, spec_of
from heedful.training.loss import contrastive

READ = 128  # pictures, or texts, in a batch
RANKED = 1024  # pictures, or texts, whose similarities to all others are in memory at a time
RECALLS = (1, 5, 10)


Picture = ImageFile | Path | str


@dataclass(frozen=True, kw_only=True)
class MatchSpec:
    """The content of task.json besides the task's name: how pictures and texts are prepared for a model."""

    preparation: Preparation
    lower: bool = True  # texts are read in lower case


def lowered(text: str) -> str:
    """The text in lower case, as in the exported tokenizer.json, from which `str.lower` differs in some scripts."""
    return normalizers.Lowercase().normalize_str(text)


class MatchLayout:
    """Lays out texts as rows of at most `context` tokens; a text that is too long loses its end."""

    def __init__(self, tokenizer: Tokenizer, *, lower: bool, context: int, end: int) -> None:
        self.tokenizer, self.lower, self.context, self.end = tokenizer, lower, context, end
        self.cut = 0  # the number of texts that were cut

    def encode(self, texts: Sequence[str]) -> list[Ids]:
        """The ids between the first and the last token of each text. Raises TextError for an empty text."""
        return self.encode_warned(texts)[0]

    def encode_warned(self, texts: Sequence[str]) -> tuple[list[Ids], list[str]]:
        """Like `encode`, and for each text that was cut a warning, otherwise ""."""
        if any(not text.strip() for text in texts):
            raise TextError("an empty text", fix="give some words")
        kept, beyond = cut_at(self.tokenizer.encode([self.normalised(text) for text in texts]), self.context - 2)
        self.cut += sum(map(bool, beyond))
        return kept, [cut_warning(len(ids), len(ids) + more) for ids, more in zip(kept, beyond, strict=True)]

    def normalised(self, text: str) -> str:
        return lowered(text) if self.lower else text

    def rows(self, ids: Sequence[Ids]) -> Int[Tensor, "B T"]:
        return pad(ids, before=[self.tokenizer.bos], after=[self.end], filler=self.tokenizer.pad)[0]


class FoundPicture(NamedTuple):
    """A picture, and the cosine between it and a text."""

    input: str
    score: float


class Matched(NamedTuple):
    """The texts of each picture with their probabilities, the best first; and a warning for each text, or ""."""

    scores: list[list[tuple[str, float]]]
    warned: list[str]


class Matcher(TextModel[CLIP]):
    """A trained model of two encoders, for pictures and for texts, and its tokenizer."""

    task: ClassVar = "match"
    purpose: ClassVar = "matching pictures and texts"

    def __init__(self, model: CLIP, tokenizer: Tokenizer, about: dict[str, Any]) -> None:
        super().__init__(model, tokenizer, about)
        self.spec = spec_of(MatchSpec, about)
        text = model.config.text
        self.layout = MatchLayout(tokenizer, lower=self.spec.lower, context=text.embed.context_length, end=text.end)

    @one_or_many()
    def match(
        self, files: Sequence[Picture], texts: Sequence[str], *, templates: Sequence[str] = (TEMPLATE,)
    ) -> list[list[tuple[str, float]]]:
        """The texts of each picture with their probabilities among all given texts, the best first.

        Each text replaces "{}" in each template, and is represented by the mean of the resulting vectors (Radford et
        al. 2021, section 3.1.4). Warns about texts that are too long to be read as a whole. Raises MissingError or
        InputError.
        """
        found = self.matched(files, listed(texts), templates)
        warn(found.warned)
        return found.scores

    def matched(self, files: Sequence[Picture], texts: Sequence[str], templates: Sequence[str]) -> Matched:
        """Like `match`, but returns the warnings: for each text that was not read as a whole a warning, otherwise
        ""."""
        if not texts:
            raise InputError("no text to match", fix="give two or more")
        own, warned = self.prompt_vectors(texts, templates)
        images = self.embed_images(files)
        chances = (self.model.log_scale.detach().exp().cpu() * images @ own.mT).softmax(1).tolist()
        return Matched([sorted(zip(texts, each, strict=True), key=lambda item: -item[1]) for each in chances], warned)

    @one_or_many()
    def search(
        self,
        texts: Sequence[str],
        files: Sequence[Picture],
        *,
        vectors: Float[Tensor, "I D"] | None = None,
        top: int = 10,
        templates: Sequence[str] = (TEMPLATE,),
    ) -> list[list[FoundPicture]]:
        """The pictures that are nearest to each text, the best first. `vectors`: the pictures' vectors from
        `embed_images`, if known. Warns about texts that are too long to be read as a whole. Raises MissingError or
        InputError."""
        refuse_no_answers(top)
        files = listed(files)
        vectors = self.embed_images(files) if vectors is None else vectors
        own, warned = self.prompt_vectors(texts, templates)
        warn(warned)
        return nearest_pictures(own, files, vectors, top)

    def sample(self, part: Captioned, shown: int) -> str:
        """The nearest of all texts to each of the first pictures, after one of its own texts, a line each."""
        texts = list(dict.fromkeys(text for own in part.captions for text in own))
        cosines = self.image_vectors(part.images, most=shown) @ self.text_vectors(texts)[0].mT
        best = [texts[i] for i in cosines.argmax(1).tolist()]
        return "".join(f"{own[0]}: {found}\n" for own, found in zip(part.captions, best, strict=False))

    @checks_arguments
    def embed_images(self, files: Picture | Sequence[Picture]) -> Float[Tensor, "*I D"]:
        """The vector of each picture, or of a single one, with norm 1. Raises MissingError or InputError."""
        several: Sequence[Picture] = listed(files)
        given = [file if isinstance(file, ImageFile) else ImageFile(Path(file)) for file in several]
        vectors = self.image_vectors(ImageFiles(given, channels=self.spec.preparation.channels, most=0))
        return vectors[0] if is_one(files) else vectors

    def embed_prompts(self, texts: Sequence[str], templates: Sequence[str]) -> Float[Tensor, "B D"]:
        """The mean of each text's vectors with all templates, normalised."""
        return self.prompt_vectors(texts, templates)[0]

    def prompt_vectors(self, texts: Sequence[str], templates: Sequence[str]) -> tuple[Float[Tensor, "B D"], list[str]]:
        """`embed_prompts`, and for each text that was not read as a whole a warning, otherwise ""."""
        if not templates:
            raise InputError("no template", fix='write "a picture of {}", or leave templates out')
        for template in templates:
            if (count := template.count(TEMPLATE)) != 1:
                what = f"{count or 'no'} {TEMPLATE} in the template {shorten(template)}, expected one"
                raise InputError(what, fix='write "a picture of {}"')
        letters = len(templates) * sum(map(len, texts)) + len(texts) * sum(map(len, templates))
        self.spend(letters, 0)  # of all prompts: no fewer than their tokens
        prompts = [template.replace(TEMPLATE, text) for text in texts for template in templates]
        made, warned = self.text_vectors(prompts)
        each = range(0, len(prompts), len(templates))
        longest = [max(warned[first : first + len(templates)], key=len) for first in each]
        return F.normalize(made.unflatten(0, (len(texts), len(templates))).mean(1), dim=-1), longest

    @checks_arguments
    def embed_texts(self, texts: str | Sequence[str]) -> Float[Tensor, "*B D"]:
        """The vector of each text, or of a single one, with norm 1. Warns about texts that are too long to be read as a
        whole. Raises TextError for an empty text."""
        vectors, warned = self.text_vectors(listed(texts))
        warn(warned)
        return vectors[0] if is_one(texts) else vectors

    @torch.inference_mode()
    def text_vectors(self, texts: Sequence[str]) -> tuple[Float[Tensor, "B D"], list[str]]:
        """`embed_texts` of several texts, and for each that was not read as a whole a warning, otherwise ""."""
        (ids, warned), device = self.layout.encode_warned(texts), self.model.log_scale.device
        groups = (ids[i : i + READ] for i in range(0, len(ids), READ))
        made = [self.model.encode_text(self.layout.rows(own).to(device)).float().cpu() for own in groups]
        return self.finite_vectors(made), warned

    @checks_arguments
    def embed(self, inputs: str | Sequence[str]) -> Float[Tensor, "*B D"]:
        """The vector of each input, or of a single one, with norm 1: of a picture where it is the path of a file,
        otherwise of a text. Warns about texts that are too long to be read as a whole. Raises InputError."""
        vectors, warned = self.vectors_of(listed(inputs))
        warn(warned)
        return vectors[0] if is_one(inputs) else vectors

    def vectors_of(self, inputs: Sequence[str]) -> tuple[Float[Tensor, "B D"], list[str]]:
        """`embed` of several inputs, and for each text that was not read as a whole a warning, otherwise "". Raises
        MissingError for the name of a picture that does not exist."""
        # unlike Path's, `isfile` is False for a string that is too long for a name
        shown = [i for i, one in enumerate(inputs) if os.path.isfile(one)]
        for one in {*inputs}.difference(inputs[i] for i in shown):
            if is_image(one) and not re.search(r"\s", one):
                raise MissingError("no such picture", where=one, fix="check the path")
        texts = sorted({*range(len(inputs))}.difference(shown))
        made, warned = torch.empty(len(inputs), self.model.config.d_common), [""] * len(inputs)
        if shown:
            made[shown] = self.embed_images([inputs[i] for i in shown])
        if texts:
            made[texts], found = self.text_vectors([inputs[i] for i in texts])
            for i, warning in zip(texts, found, strict=True):
                warned[i] = warning
        return made, warned

    @torch.inference_mode()
    def image_vectors(self, images: Images, most: int | None = None) -> Float[Tensor, "I D"]:
        """`embed_images` of pictures that were read already; `most`: only the first ones."""
        device, made = self.model.log_scale.device, []
        count = len(images) if most is None else min(most, len(images))
        for first in range(0, count, READ):
            numbers = range(first, min(first + READ, count))
            pixels = self.spec.preparation([images[i] for i in numbers], [where_of(images, i) for i in numbers])
            made.append(self.model.encode_image(pixels.to(device)).float().cpu())
        return self.finite_vectors(made)

    def finite_vectors(self, made: Sequence[Float[Tensor, "_ D"]]) -> Float[Tensor, "B D"]:
        """All vectors in one tensor. Raises NonFiniteError."""
        vectors = torch.cat([torch.empty(0, self.model.config.d_common), *made])
        refuse_nan_answers(vectors, "vectors")
        return vectors

    @checks_arguments
    def measure(self, part: Captioned) -> dict[str, float]:
        """The loss in nats, over all pictures at once, each with its first text; and for pictures and for texts, how
        often a match is among the best 1, 5 and 10. Repeated pictures and texts count once."""
        refuse_nothing(part)
        captions = [[self.layout.normalised(text) for text in own] for own in part.captions]
        numbers: dict[str, int] = {}
        own = [[numbers.setdefault(text, len(numbers)) for text in texts] for texts in captions]
        twins = same_pictures(part.images)
        rows = {picture: row for row, picture in enumerate(dict.fromkeys(twins))}
        belonging = torch.zeros(len(rows), len(numbers), dtype=torch.bool)
        for twin, texts in zip(twins, own, strict=True):
            belonging[rows[twin], texts] = True
        images, vectors = self.image_vectors(part.images)[[*rows]], self.text_vectors([*numbers])[0]
        first = [own[picture][0] for picture in rows]
        scale = self.model.log_scale.detach().exp().cpu()
        loss = contrastive(scale * images @ vectors[first].mT, belonging[:, first])
        found = {"loss": float(loss.total) / loss.count}
        found |= {f"image_to_text_{name}": share for name, share in recalls(images, vectors, belonging).items()}
        return found | {
            f"text_to_image_{name}": share for name, share in recalls(vectors, images, belonging.mT).items()
        }


def nearest_pictures(
    texts: Float[Tensor, "B D"], files: Sequence[Picture], vectors: Float[Tensor, "I D"], top: int
) -> list[list[FoundPicture]]:
    """The nearest pictures of each text, the best first."""
    best = (texts @ vectors.mT).sort(dim=1, descending=True, stable=True)
    return [
        [FoundPicture(str(files[i]), score) for i, score in zip(indices[:top], scores[:top], strict=True)]
        for indices, scores in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    ]


def recalls(
    queries: Float[Tensor, "Q D"], keys: Float[Tensor, "K D"], belonging: Bool[Tensor, "Q K"]
) -> dict[str, float]:
    """recall_1, recall_5 and recall_10: the share of queries with a matching key among the 1, 5 or 10 nearest; in a
    tie, keys that do not match come first."""
    ranks = []
    for first in range(0, len(queries), RANKED):
        cosines, own = queries[first : first + RANKED] @ keys.mT, belonging[first : first + RANKED]
        best = cosines.masked_fill(~own, -torch.inf).amax(1, keepdim=True)
        ranks.append(((cosines >= best) & ~own).sum(1))
    return {f"recall_{most}": float((torch.cat(ranks) < most).float().mean()) for most in RECALLS}


class MatchedPicture(TypedDict):
    """An answer as a record: the texts with their probabilities, the best first."""

    input: str
    texts: list[dict[str, Any]]
    warning: NotRequired[str]


class MatchedText(TypedDict):
    """An answer as a record: the pictures nearest to a text, the best first."""

    text: str
    images: list[dict[str, Any]]  # of `FoundPicture`
    warning: NotRequired[str]


def match_pictures(matcher: Matcher, files: Sequence[str], options: MatchOptions) -> Iterator[MatchedPicture]:
    found = matcher.matched(files, options.texts, options.templates)
    told = [
        f"{shorten(text)} is {warning}" for text, warning in zip(options.texts, found.warned, strict=True) if warning
    ]
    for file, scores in zip(files, found.scores, strict=True):
        made: MatchedPicture = {"input": file, "texts": [{"text": text, "score": score} for text, score in scores]}
        if told:
            made["warning"] = "; ".join(told)
        yield made


class PictureSearch:
    """Searches the pictures of a folder, which are embedded once for all texts."""

    def __init__(self, matcher: Matcher, options: PictureSearchOptions) -> None:
        self.matcher, self.options = matcher, options
        self.pictures = pictures_in(options.images)
        self.vectors = matcher.embed_images(self.pictures)

    def __call__(self, texts: Sequence[str]) -> Iterator[MatchedText]:
        vectors, warned = self.matcher.prompt_vectors(texts, self.options.templates)
        found = nearest_pictures(vectors, self.pictures, self.vectors, self.options.top)
        for text, best, warning in zip(texts, found, warned, strict=True):
            made: MatchedText = {"text": text, "images": [each._asdict() for each in best]}
            if warning:
                made["warning"] = warning
            yield made


def search_pictures(matcher: Matcher, texts: Sequence[str], options: PictureSearchOptions) -> Iterator[MatchedText]:
    yield from PictureSearch(matcher, options)(texts)


ASK_MATCH = Ask(match_pictures, MatchOptions, reads="pictures")
ASK_SEARCH = Ask(search_pictures, PictureSearchOptions, local=True)


def score_matcher(matcher: Matcher, options: DataOptions) -> Iterator[Scored]:
    tests = read_test_captions(options.path, channels=matcher.spec.preparation.channels)
    for name, part in scored_by_name(tests, options.path).items():
        yield Scored(name, matcher.measure(part), examples=each_of(part.images))


def matcher_facts(saved: Saved) -> dict[str, Any]:
    assert saved.tokenizers is not None
    spec, config = spec_of(MatchSpec, dict(saved.about)), saved.config
    return {
        "task": "match",
        "pictures": size_in_words(spec.preparation),
        "vocabulary": saved.tokenizers[0].size,
        "context": config.text.embed.context_length,
        "common width": config.d_common,
    }
