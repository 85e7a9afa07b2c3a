"""How a translation is said, step by step."""

from collections.abc import Iterator, Sequence

from heedful.errors import InputError
from heedful.run.task import Ask
from heedful.tasks.shared.steps import Stepped, StepsOptions, steps_of
from heedful.tasks.translate.look import watched
from heedful.tasks.translate.use import Translator


def steps_translating(translator: Translator, texts: Sequence[str], options: StepsOptions) -> Iterator[Stepped]:
    """Without `chosen` it is the translation that is searched for; with them, their greedy continuation. Raises
    InputError for an empty text, and TextError for one that is too long."""
    if translator.engine is not None:
        raise InputError("another library does not tell each step", fix="leave out the engine")
    options.check(translator.target)
    for text in texts:
        yield _steps(translator, text, options)


def _steps(translator: Translator, text: str, options: StepsOptions) -> Stepped:
    ((ids,), _) = translator.encode([text])
    if not ids:
        raise InputError("there is no text to translate", fix="give one")
    translator.refuse_too_long([text], [ids])
    if options.chosen:
        begun = [*options.chosen[len(translator.begin) :]]
        ((best, *_),) = translator.hypotheses([ids], translator.decoding(beam=1), [begun])
    else:
        ((best, *_),) = translator.hypotheses([ids], translator.decoding())
    said = [*best.tokens, *([translator.target.eos] if best.finished else [])]
    _, logits, _ = watched(translator, ids, [*best.tokens], ())
    steps = steps_of(logits[: len(said)], said, translator.target, options, forbidden=translator.forbidden)
    return {"text": translator.target.decode([*best.tokens]), "steps": steps}


ASK = Ask(steps_translating, StepsOptions)
