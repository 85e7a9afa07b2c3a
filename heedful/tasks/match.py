"""Which text belongs to which picture: `MatchTask` is what the training loop needs, `Matcher` what a person uses.

I pictures of N channels and H x W pixels, B texts of T tokens, D width of the space of both.
"""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from tokenizers import normalizers
from torch import Tensor

from heedful.core.config import from_json
from heedful.data.augment import Augment, seen
from heedful.data.batches import pad, shuffled
from heedful.data.captions import Captioned, same_pictures
from heedful.data.images import ImageFile, ImageFiles, Images, Preparation
from heedful.data.noise import drawing
from heedful.data.tokenizer import Tokenizer
from heedful.errors import InputError, NonFiniteError
from heedful.models.clip import CLIP
from heedful.models.inference import for_inference
from heedful.tasks.folder import read_run
from heedful.tasks.recipe import Recipe
from heedful.train.loss import Loss, contrastive

READ = 128  # pictures, or texts, that are looked at together
RANKED = 1024  # pictures, or texts, whose likeness to all others exists at a time
RECALLS = (1, 5, 10)
LARGEST_SCALE = math.log(100)  # of the logarithm: what cosines are multiplied by (Radford et al. 2021, section 2.5)
TEMPLATE = "{}"

Ids = list[int]
Picture = ImageFile | Path | str


@dataclass(frozen=True, kw_only=True)
class About:
    """How pictures and texts are prepared for a model: task.json, beside the task's name."""

    preparation: Preparation
    lower: bool = True  # texts are read in lower case


def lowered(text: str) -> str:
    """As the exported tokenizer.json does it, which `str.lower` does not in all scripts."""
    return normalizers.Lowercase().normalize_str(text)


class Layout:
    """From texts to rows of at most `context` tokens: what is too long loses its end."""

    def __init__(self, tokenizer: Tokenizer, *, lower: bool, context: int, end: int) -> None:
        self.tokenizer, self.lower, self.context, self.end = tokenizer, lower, context, end
        self.cut = 0  # texts that lost an end

    def encode(self, texts: Sequence[str]) -> list[Ids]:
        """The ids between the first and the last token of each. Raises InputError for an empty text."""
        if any(not text.strip() for text in texts):
            raise InputError("an empty text", fix="give some words")
        ids = self.tokenizer.encode([self.normalised(text) for text in texts])
        room = self.context - 2
        self.cut += sum(len(own) > room for own in ids)
        return [own[:room] for own in ids]

    def normalised(self, text: str) -> str:
        return lowered(text) if self.lower else text

    def rows(self, ids: Sequence[Ids]) -> Int[Tensor, "B T"]:
        return pad(ids, before=[self.tokenizer.bos], after=[self.end], filler=self.tokenizer.pad)[0]


class Batch(NamedTuple):
    """Which pictures of the training set, and which of all texts each of them comes with."""

    epoch: int
    pictures: list[int]
    texts: list[int]

    @property
    def rows(self) -> int:
        return len(self.pictures)

    def part(self, rank: int, ranks: int) -> "Batch":
        """What is `rank`'s of `ranks` that share this batch: a batch of its own, as a loss is over the pairs of one."""
        return Batch(self.epoch, self.pictures[rank::ranks], self.texts[rank::ranks])


class MatchTask:
    """Batches of pictures, each with one of its texts, which an epoch draws for it.

    A loss is over the pairs of one batch: accumulating batches, or sharing one among ranks, leaves each pair fewer
    others to be told from. Texts that belong to a picture too, as they are another picture's or its own twin's, are
    none of those others.
    """

    def __init__(self, part: Captioned, about: About, layout: Layout, augment: Augment, recipe: Recipe) -> None:
        self.images, self.about, self.layout, self.augment = part.images, about, layout, augment
        self.seed, self.size = recipe.train.seed, recipe.images.batch
        listed = [text for texts in part.captions for text in texts]
        numbers: dict[tuple[int, ...], int] = {}
        ids = iter([numbers.setdefault(tuple(own), len(numbers)) for own in layout.encode(listed)])
        self.texts = [[next(ids) for _ in texts] for texts in part.captions]  # of each picture, by number
        self.ids = [list(own) for own in numbers]
        twins = same_pictures(part.images)
        together: dict[int, set[int]] = {}
        for first, own in zip(twins, self.texts, strict=True):
            together.setdefault(first, set()).update(own)
        self.belonging = [together[first] for first in twins]

    def batches(self, epoch: int) -> list[Batch]:
        order = shuffled(len(self.texts), self.seed, epoch)
        count = math.ceil(len(order) / self.size)
        drawn = [own[drawing(self.seed, epoch, "text", i).randrange(len(own))] for i, own in enumerate(self.texts)]
        return [Batch(epoch, own, [drawn[i] for i in own]) for own in (order[n::count] for n in range(count))]

    def loss(self, model: CLIP, batch: Batch) -> Loss:
        device = model.log_scale.device
        images = model.encode_image(self.pixels(batch).to(model.image_out.weight))
        texts = model.encode_text(self.layout.rows([self.ids[i] for i in batch.texts]).to(device))
        similarity = model.log_scale.clamp(max=LARGEST_SCALE).exp() * images @ texts.mT
        return contrastive(similarity, self.same(batch).to(device))

    def pixels(self, batch: Batch) -> Float[Tensor, "I N H W"]:
        """The pictures as this epoch sees them."""
        return seen(self.images, batch.pictures, self.about.preparation, self.augment, self.seed, batch.epoch)

    def same(self, batch: Batch) -> Bool[Tensor, "I I"]:
        """Whether the text in a column belongs to the picture in a row."""
        columns: dict[int, list[int]] = {}
        for column, text in enumerate(batch.texts):
            columns.setdefault(text, []).append(column)
        same = torch.zeros(batch.rows, batch.rows, dtype=torch.bool)
        for row, picture in enumerate(batch.pictures):
            for text in self.belonging[picture] & columns.keys():
                same[row, columns[text]] = True
        return same


class Found(NamedTuple):
    """A picture, and how near it is to a text: the cosine of the angle between them."""

    input: str
    score: float


class Matcher:
    """A trained pair of towers, one for pictures and one for texts, and the tokenizer."""

    def __init__(self, model: CLIP, tokenizer: Tokenizer, about: dict[str, Any]) -> None:
        self.model: CLIP = model.eval()
        self.tokenizer, self.about = tokenizer, about
        own = {key: value for key, value in about.items() if key != "task"}
        self.says = from_json(About, own, where="task.json")
        text = model.config.text
        self.layout = Layout(tokenizer, lower=self.says.lower, context=text.embed.places.size, end=text.end)

    @classmethod
    def load(cls, run: str | Path, *, device: str = "cpu") -> "Matcher":
        """Reads a run's folder. Raises MissingError, InputError or StorageError."""
        model, tokenizer, _, about = read_run(Path(run))
        if about.get("task") != "match":
            raise InputError(f"a model for {about.get('task')!r}, not for matching pictures and texts", where=str(run))
        return cls(for_inference(model.to(device)), tokenizer, about)

    def match(
        self, files: Sequence[Picture], texts: Sequence[str], *, templates: Sequence[str] = (TEMPLATE,)
    ) -> list[list[tuple[str, float]]]:
        """The texts of each picture, the best first, each with its probability among them all.

        Each text is put into the place of "{}" in each template, and stands for the mean of what comes out (Radford et
        al. 2021, section 3.1.4). Raises MissingError or InputError.
        """
        if not texts:
            raise InputError("no text to match", fix="give two or more")
        images, own = self.embed_images(files), self.embed_prompts(texts, templates)
        chances = (self.model.log_scale.detach().exp().cpu() * images @ own.mT).softmax(1)
        return [sorted(zip(texts, each, strict=True), key=lambda item: -item[1]) for each in chances.tolist()]

    def search(
        self,
        texts: Sequence[str],
        files: Sequence[Picture],
        *,
        vectors: Float[Tensor, "I D"] | None = None,
        top: int = 10,
        templates: Sequence[str] = (TEMPLATE,),
    ) -> list[list[Found]]:
        """The pictures that are nearest to each text, the best first. `vectors`: what `embed_images` gave for them, if
        it was asked before. Raises MissingError or InputError."""
        vectors = self.embed_images(files) if vectors is None else vectors
        best = (self.embed_prompts(texts, templates) @ vectors.mT).sort(dim=1, descending=True, stable=True)
        return [
            [Found(str(files[i]), score) for i, score in zip(indices[:top], scores[:top], strict=True)]
            for indices, scores in zip(best.indices.tolist(), best.values.tolist(), strict=True)
        ]

    def sample(self, part: Captioned, shown: int) -> str:
        """The nearest of all texts to each of the first pictures, a line each, behind a text of its own."""
        texts = list(dict.fromkeys(text for own in part.captions for text in own))
        cosines = self.image_vectors(part.images, most=shown) @ self.embed_texts(texts).mT
        best = [texts[i] for i in cosines.argmax(1).tolist()]
        return "".join(f"{own[0]}: {found}\n" for own, found in zip(part.captions, best, strict=False))

    def embed_images(self, files: Sequence[Picture]) -> Float[Tensor, "I D"]:
        """Of length 1. Raises MissingError or InputError."""
        given = [file if isinstance(file, ImageFile) else ImageFile(Path(file)) for file in files]
        return self.image_vectors(ImageFiles(given, channels=self.says.preparation.channels, most=0))

    def embed_prompts(self, texts: Sequence[str], templates: Sequence[str]) -> Float[Tensor, "B D"]:
        """The mean of each text in every template, brought to length 1."""
        for template in templates:
            if TEMPLATE not in template:
                raise InputError(f"no {{}} in the template {template!r}", fix='write "a picture of {}"')
        made = self.embed_texts([template.replace(TEMPLATE, text) for text in texts for template in templates])
        return F.normalize(made.unflatten(0, (len(texts), len(templates))).mean(1), dim=-1)

    @torch.inference_mode()
    def embed_texts(self, texts: Sequence[str]) -> Float[Tensor, "B D"]:
        """Of length 1. Raises InputError for an empty text."""
        ids, device = self.layout.encode(texts), self.model.log_scale.device
        groups = (ids[i : i + READ] for i in range(0, len(ids), READ))
        made = [self.model.encode_text(self.layout.rows(own).to(device)).float().cpu() for own in groups]
        return _finite(torch.cat(made))

    def embed(self, inputs: Sequence[str]) -> Float[Tensor, "B D"]:
        """Of length 1: of a picture where it is a file's path, else of a text. Raises InputError."""
        shown = [os.path.isfile(given) for given in inputs]  # unlike Path's, False for what is too long for a name
        made = torch.empty(len(inputs), self.model.config.d_common)
        for each, chosen in ((self.embed_images, shown), (self.embed_texts, [not own for own in shown])):
            own = [given for given, is_own in zip(inputs, chosen, strict=True) if is_own]
            if own:
                made[torch.tensor(chosen)] = each(own)
        return made

    @torch.inference_mode()
    def image_vectors(self, images: Images, most: int | None = None) -> Float[Tensor, "I D"]:
        """`embed_images`, of pictures that are read already: of the first `most`."""
        device, made = self.model.log_scale.device, []
        count = len(images) if most is None else min(most, len(images))
        for first in range(0, count, READ):
            pictures = [images[i] for i in range(first, min(first + READ, count))]
            made.append(self.model.encode_image(self.says.preparation(pictures).to(device)).float().cpu())
        return _finite(torch.cat(made))

    def evaluate(self, part: Captioned) -> dict[str, float]:
        """The loss in nats, over all pictures at once, each with its first text; and of pictures and texts, how often
        one that belongs to it is among the best 1, 5 and 10. The same text, and the same picture, is there once."""
        captions = [[self.layout.normalised(text) for text in own] for own in part.captions]
        numbers: dict[str, int] = {}
        own = [[numbers.setdefault(text, len(numbers)) for text in texts] for texts in captions]
        twins = same_pictures(part.images)
        rows = {picture: row for row, picture in enumerate(dict.fromkeys(twins))}
        belonging = torch.zeros(len(rows), len(numbers), dtype=torch.bool)
        for twin, texts in zip(twins, own, strict=True):
            belonging[rows[twin], texts] = True
        images, vectors = self.image_vectors(part.images)[[*rows]], self.embed_texts([*numbers])
        first = [own[picture][0] for picture in rows]
        scale = self.model.log_scale.detach().exp().cpu()
        loss = contrastive(scale * images @ vectors[first].mT, belonging[:, first])
        found = {"loss": float(loss.total) / loss.count}
        found |= {f"image_to_text_{name}": share for name, share in recalls(images, vectors, belonging).items()}
        return found | {
            f"text_to_image_{name}": share for name, share in recalls(vectors, images, belonging.mT).items()
        }


def recalls(
    queries: Float[Tensor, "Q D"], keys: Float[Tensor, "K D"], belonging: Bool[Tensor, "Q K"]
) -> dict[str, float]:
    """recall_1, recall_5 and recall_10: for how many queries a key that belongs to them is among so many nearest, all
    keys that do not belong and are as near counted as nearer."""
    ranks = []
    for first in range(0, len(queries), RANKED):
        cosines, own = queries[first : first + RANKED] @ keys.mT, belonging[first : first + RANKED]
        best = cosines.masked_fill(~own, -torch.inf).amax(1, keepdim=True)
        ranks.append(((cosines >= best) & ~own).sum(1))
    return {f"recall_{most}": float((torch.cat(ranks) < most).float().mean()) for most in RECALLS}


def _finite(vectors: Float[Tensor, "B D"]) -> Float[Tensor, "B D"]:
    if vectors.isnan().any():
        raise NonFiniteError("the model's vectors are not finite", fix="train it with a lower train.lr")
    return vectors
