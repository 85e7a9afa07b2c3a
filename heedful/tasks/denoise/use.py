"""A denoiser in use: a translator from marked text, which is measured by how likely the text as it was is to it."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from heedful.data.batches import Ends
from heedful.data.text.documents import read_text
from heedful.errors import InputError
from heedful.models import TranslationModel
from heedful.run.task import Scored
from heedful.tasks.denoise.noise import Ids, fixed, make_noise, read_passages
from heedful.tasks.translate.cli import TranslationScoring
from heedful.tasks.translate.scoring import score_translator
from heedful.tasks.translate.training.losses import ends_of, target_nats
from heedful.tasks.translate.use import Translator


@dataclass(frozen=True)
class Restored:
    """Targets of noised texts, and how likely a model finds them: nats summed, over tokens and ends of targets."""

    nats: float
    tokens: int

    @property
    def loss(self) -> float:
        """Nats a token."""
        return self.nats / self.tokens

    @property
    def perplexity(self) -> float:
        return math.exp(min(self.loss, 700.0))


def denoising_likelihood(translator: Translator, texts: Iterable[str], *, most: int | None = None) -> Restored:
    """On texts that are noised as the model's were in training, and alike each time: the first `most` passages."""
    about: dict[str, Any] = translator.about["noise"]
    noise = make_noise(about["objective"], translator.source, translator.about)
    found = read_passages(texts, translator.source, about["longest"])[:most]
    return restored(translator.model, fixed(found, noise), ends_of(translator.target, translator.about))


def restored(model: TranslationModel, pairs: Sequence[tuple[Ids, Ids]], ends: Ends) -> Restored:
    """Raises InputError for no pairs."""
    if not pairs:
        raise InputError("no text to put right", fix="give some text")
    return Restored(*target_nats(model, pairs, ends))


def score_denoiser(translator: Translator, options: TranslationScoring) -> Iterator[Scored]:
    """On plain text; with a pair of files, as a translator."""
    if options.source is not None or options.data is None:
        yield from score_translator(translator, options)
        return
    if options != TranslationScoring(data=options.data):
        what = "plain text is scored by its likelihood, for which --data is all that is used"
        raise InputError(what, fix="leave out the other options, or give --source FILE --target FILE")
    found = denoising_likelihood(translator, read_text(options.data))
    yield Scored(options.data, {"loss": found.loss, "perplexity": found.perplexity, "tokens": found.tokens})
