"""Generated texts, and likelihoods of texts, as plain records."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from heedful.data.text.documents import read_text
from heedful.data.text.solved import holds_solved, read_solved
from heedful.decode.settings import setting
from heedful.run.task import Ask, Scored
from heedful.tasks.generate.options import GenerateOptions, TextScoring
from heedful.tasks.generate.use import LanguageModel
from heedful.tasks.shared.terminal import expand_escapes


def continue_texts(model: LanguageModel, prompts: Sequence[str], options: GenerateOptions) -> Iterator[dict[str, Any]]:
    """The fields of `Generated`, for each sample of each prompt."""
    for own in continue_each(model, prompts, options):
        yield from own


def continue_each(
    model: LanguageModel, prompts: Sequence[str], options: GenerateOptions
) -> Iterator[list[dict[str, Any]]]:
    """The fields of `Generated`, as a list of samples for each prompt."""
    made = model.generate(
        prompts,
        tokens=options.tokens,
        stop=options.stop,
        samples=options.samples,
        batch=options.batch,
        beam=options.beam,
        best_of=options.best_of,
        length_penalty=options.length_penalty,
        **options.sampling,
    )
    yield from ([each._asdict() for each in own] for own in made)


class ScoredText(TypedDict, total=False):
    """An answer as a record: the likelihood of a text, or of each choice that may follow it."""

    text: str
    logprob: float
    tokens: int
    choices: list[dict[str, Any]]  # of `Choice`


@dataclass(frozen=True, kw_only=True)
class ScoreOptions:
    choices: tuple[str, ...] = setting((), "Texts that may follow, which are compared.")


def weigh_texts(model: LanguageModel, texts: Sequence[str], options: ScoreOptions) -> Iterator[ScoredText]:
    if options.choices:
        for text in texts:
            yield {"text": text, "choices": [each._asdict() for each in model.choose(text, options.choices)]}
        return
    for text, found in zip(texts, model.likelihood(texts), strict=True):
        yield {"text": text, "logprob": -found.nats, "tokens": found.tokens}


ASK_GENERATE = Ask(continue_texts, GenerateOptions, each=continue_each, gathers=lambda options: False)
ASK_SCORE = Ask(weigh_texts, ScoreOptions)


def score_language_model(model: LanguageModel, options: TextScoring) -> Iterator[Scored]:
    """The likelihood of a text, or, for a file of inputs with answers, the accuracy."""
    from heedful.tasks.generate.in_context import Asking, evaluate_in_context

    data, pool = options.path, options.shots_from
    if options.shots or pool or holds_solved(data):
        asking = Asking(
            shots=options.shots,
            by=options.by,
            seed=options.seed,
            delimiter=expand_escapes(options.delimiter),
            separator=expand_escapes(options.separator),
        )
        shown = None if pool is None else read_solved(pool)
        answers = evaluate_in_context(model, read_solved(data), asking, pool=shown)
        yield Scored(data, answers.facts(), str(answers), tuple(answers.notes))
        return
    found = model.measure(read_text(data))
    names = ("loss", "perplexity", "bits_per_byte", "word_perplexity", "tokens")
    yield Scored(data, {name: getattr(found, name) for name in names})
