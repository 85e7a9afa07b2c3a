"""A trained denoiser: a translator from marked text, measured by the likelihood of the targets."""

from collections.abc import Iterable, Iterator, Sequence

from heedful.data.batches import Ends
from heedful.data.text.documents import read_text
from heedful.data.tokenizer import Ids
from heedful.errors import InputError
from heedful.metrics.nats import Nats
from heedful.models import TranslationModel
from heedful.run.task import Scored
from heedful.tasks.denoise.noise import fixed, make_noise, read_passages
from heedful.tasks.translate.options import TranslationScoring
from heedful.tasks.translate.scoring import score_translator
from heedful.tasks.translate.training.losses import ends_of, target_nats
from heedful.tasks.translate.use import Translator


def denoising_likelihood(translator: Translator, texts: Iterable[str], *, most: int | None = None) -> Nats:
    """The likelihood of the targets for the first `most` passages of texts, with the noise of the model's training, the
    same each time. Ends of targets count as tokens."""
    spec, source = translator.spec, translator.source
    assert spec.noise is not None
    noise = make_noise(spec.noise.objective, source, spec)
    found = read_passages(texts, source, spec.noise.longest)[:most]
    return restored(translator.model, fixed(found, noise), ends_of(translator.target, spec))


def restored(model: TranslationModel, pairs: Sequence[tuple[Ids, Ids]], ends: Ends) -> Nats:
    """The likelihood of the targets. Raises InputError where there are no pairs."""
    if not pairs:
        raise InputError("no text to put right", fix="give some text")
    return Nats(*target_nats(model, pairs, ends))


def score_denoiser(translator: Translator, options: TranslationScoring) -> Iterator[Scored]:
    """Scores the model on plain text; on pairs of source and target, like a translator."""
    if options.source is not None or options.data is None:
        yield from score_translator(translator, options)
        return
    if options != TranslationScoring(data=options.data):
        what = "plain text is scored by its likelihood, for which --data is all that is used"
        raise InputError(what, fix="leave out the other options, or give --source FILE --target FILE")
    found = denoising_likelihood(translator, read_text(options.data))
    yield Scored(options.data, {"loss": found.loss, "perplexity": found.perplexity, "tokens": found.tokens})
