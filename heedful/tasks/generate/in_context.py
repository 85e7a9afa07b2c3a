"""In-context learning: solved examples in the prompt specify the task, and no weight changes (Brown et al. 2020,
section 2). The answer is the most likely of some choices, or what the model generates."""

import bisect
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from string import ascii_uppercase
from typing import Any

from heedful.core.seeds import counter_seed
from heedful.data.text.solved import Solved
from heedful.errors import InputError, are, counted
from heedful.tasks.generate.likelihood import Choice
from heedful.tasks.generate.use import LanguageModel

MOST_ANSWERS = 50  # the most distinct answers that are used as choices where the examples have none


@dataclass(frozen=True, kw_only=True)
class Asking:
    """How prompts are made: the number of solved examples in each, and the layout."""

    shots: int = 0
    delimiter: str = " "  # between an input and its answer
    separator: str = "\n"  # after each answer
    by: str = "likelihood"  # of the choices; or "match": the answer is generated, and must be equal
    seed: int = 0


@dataclass(frozen=True)
class Answers:
    """A model's answers, one per example, and its accuracy.

    By likelihood there is an accuracy for each of RULES, and `said` follows the first rule; by match there is one.
    `chance` is the accuracy of choosing at random; None where there are no choices.
    """

    said: list[str]
    accuracies: dict[str, float]
    chance: float | None
    asking: Asking
    notes: list[str]

    @property
    def accuracy(self) -> float:
        return next(iter(self.accuracies.values()))

    def facts(self) -> dict[str, Any]:
        return {
            "task": "in-context",
            "accuracy": self.accuracy,
            "chance": self.chance,
            "examples": len(self.said),
            "shots": self.asking.shots,
            "by": self.asking.by,
            "accuracies": self.accuracies,
            "seed": self.asking.seed,
            "notes": self.notes,
        }

    def __str__(self) -> str:
        shares = self.accuracies | ({} if self.chance is None else {"chance": self.chance})
        told = ", ".join(f"{name.replace('_', ' ')} {100 * share:.1f} %" for name, share in shares.items())
        return f"{counted(len(self.said), 'example')}, {counted(self.asking.shots, 'shot')}, right by {told}"


# Scores of a choice, from its log-probability after the prompt and after the delimiter alone. Brown et al. use
# "per_token", and for some tasks "unconditional" (section 2.4); "per_byte" does not depend on the tokenizer.
RULES: dict[str, Callable[[Choice, Choice], float]] = {
    "sum": lambda asked, alone: asked.logprob,
    "per_token": lambda asked, alone: asked.logprob / asked.tokens,
    "per_byte": lambda asked, alone: asked.logprob / len(asked.choice.encode()),
    "unconditional": lambda asked, alone: asked.logprob - alone.logprob,
}


def lay_out(input: str, shots: Sequence[Solved] = (), *, delimiter: str = " ", separator: str = "\n") -> str:
    """A prompt: `<input><delimiter><answer><separator>` for each solved example, then the input and the delimiter."""
    solved = [f"{shot.input}{delimiter}{shot.answer}{separator}" for shot in shots]
    return f"{''.join(solved)}{input}{delimiter}"


def exam(passage: str, questions: Sequence[tuple[str, Sequence[str]]]) -> str:
    """Lays out a passage and its questions, numbered, with lettered options, as an input whose answer has a letter per
    question: "ADABC" (the layout of RACE, Lai et al. 2017)."""
    lines = [passage]
    for number, (question, options) in enumerate(questions, 1):
        lines.append(f"{number}. {question}")
        lines += [f"{ascii_uppercase[i]}. {option}" for i, option in enumerate(options)]
    return "\n".join([*lines, "Answer:"])


def evaluate_in_context(
    model: LanguageModel, examples: Sequence[Solved], asking: Asking, *, pool: Sequence[Solved] | None = None
) -> Answers:
    """Asks the model for the answer to each example. The shots come from `pool`, by default from the other examples.

    Where a prompt leaves no room for the answer in the model's context, whole shots are left out, the oldest first; an
    example that is too long alone loses its beginning. Raises InputError.
    """
    if not examples:
        raise InputError("there is nothing to ask", fix="give at least one example")
    if asking.by not in ("likelihood", "match"):
        raise InputError(f"{asking.by!r} is no way to answer", fix="--by likelihood or --by match")
    shots = _draw(examples, examples if pool is None else pool, asking)
    if asking.by == "match":
        return _by_match(model, examples, shots, asking)
    return _by_likelihood(model, examples, shots, asking)


def _draw(examples: Sequence[Solved], pool: Sequence[Solved], asking: Asking) -> list[list[Solved]]:
    """The shots of each example, drawn with a seed of its own from all examples that do not reveal its answer. Raises
    InputError where there are too few."""
    count, drawn = Counter((one.input, one.answer) for one in pool), []
    for i, example in enumerate(examples):
        own = example.input, example.answer
        same = count[own]
        if asking.shots > len(pool) - same:
            left = len(pool) - same
            there = f"there {are(left)} {counted(left, 'example')} to take them from"
            what = f"{counted(asking.shots, 'shot')} asked for, and {there}"
            raise InputError(what, fix="ask for fewer, or give more: --shots-from FILE")
        draw = random.Random(counter_seed(asking.seed, "shots", i))
        chosen = draw.sample(range(len(pool)), asking.shots + same)
        others = [pool[i] for i in chosen if (pool[i].input, pool[i].answer) != own]
        drawn.append(others[: asking.shots])
    return drawn


def _by_likelihood(
    model: LanguageModel, examples: Sequence[Solved], shots: Sequence[Sequence[Solved]], asking: Asking
) -> Answers:
    choices = _choices(examples)
    prompts, notes = _prompts(model, examples, shots, asking, choices)
    found = model.weigh(prompts, choices)
    kinds = list(dict.fromkeys(choices))
    alone = dict(zip(kinds, model.weigh([asking.delimiter] * len(kinds), kinds), strict=True))
    said: dict[str, list[str]] = {}
    for name, rule in RULES.items():
        pairs = (list(zip(asked, alone[own], strict=True)) for asked, own in zip(found, choices, strict=True))
        said[name] = [max(each, key=lambda pair: rule(*pair))[0].choice for each in pairs]
    answers = [example.answer for example in examples]
    accuracies = {name: _accuracy(own, answers) for name, own in said.items()}
    return Answers(next(iter(said.values())), accuracies, fmean(1 / len(own) for own in choices), asking, notes)


def _choices(examples: Sequence[Solved]) -> list[tuple[str, ...]]:
    """The choices of each example; where it has none, the distinct answers of all examples. Raises InputError where
    these are too few or too many."""
    answers = tuple(dict.fromkeys(example.answer for example in examples))
    if not all(example.choices for example in examples) and not 2 <= len(answers) <= MOST_ANSWERS:
        what = f'no "choices", and {len(answers):,} different answers, expected 2 to {MOST_ANSWERS} to choose among'
        raise InputError(what, fix='give "choices" on each line, or --by match')
    return [example.choices or answers for example in examples]


def _by_match(
    model: LanguageModel, examples: Sequence[Solved], shots: Sequence[Sequence[Solved]], asking: Asking
) -> Answers:
    # A word's token includes the space before it, so the model generates the spaces at the end of a prompt.
    spaces = asking.delimiter[len(asking.delimiter.rstrip(" ")) :]
    endings = [f"{spaces}{example.answer.strip()}{asking.separator}" for example in examples]
    encode = model.tokenizer.encode_whole
    tokens, longest = max((len(ids), ending) for ids, ending in zip(encode(endings), endings, strict=True))
    prompts, notes = _prompts(model, examples, shots, asking, [(longest.removeprefix(spaces),)] * len(examples))
    prompts = [prompt.removesuffix(spaces) for prompt in prompts]
    separator = asking.separator
    stop = [separator] if separator.strip(" ") else []  # otherwise the spaces before an answer would end it
    made = model.generate(prompts, tokens=tokens, temperature=0.0, stop=stop)
    texts = [one.text.lstrip(" ") for (one,) in made]
    said = [(text.partition(separator)[0] if separator else text).strip() for text in texts]
    answers = [model.tokenizer.composed(example.answer.strip()) for example in examples]
    known = all(example.choices for example in examples)
    chance = fmean(1 / len(example.choices) for example in examples) if known else None
    return Answers(said, {"match": _accuracy(said, answers)}, chance, asking, notes)


def _accuracy(said: Sequence[str], answers: Sequence[str]) -> float:
    return fmean(one == answer for one, answer in zip(said, answers, strict=True))


def _prompts(
    model: LanguageModel,
    examples: Sequence[Solved],
    shots: Sequence[Sequence[Solved]],
    asking: Asking,
    endings: Sequence[Sequence[str]],
) -> tuple[list[str], list[str]]:
    """A prompt per example, with the newest of its shots that leave room for each of its endings; and notes."""
    made, dropped, cut = [], [], 0
    for example, own, ends in zip(examples, shots, endings, strict=True):
        prompt, kept, fits = _fitting_prompt(model, example, own, asking, ends)
        made.append(prompt)
        dropped.append(len(own) - kept)
        cut += not fits
    said = []
    if any(dropped):
        few, prompts = counted(sum(dropped), "shot"), counted(sum(map(bool, dropped)), "prompt")
        said.append(f"{few} of {prompts} {are(sum(dropped))} left out, the oldest first")
    if cut:
        said.append(f"{counted(cut, 'example')}, too long alone, without the beginning")
    return made, [f"the model's context holds {model.context} tokens: {'; '.join(said)}"] if said else []


def _fitting_prompt(
    model: LanguageModel, example: Solved, shots: Sequence[Solved], asking: Asking, endings: Sequence[str]
) -> tuple[str, int, bool]:
    """The prompt, the number of its shots, and whether it fits the model's context with every ending."""

    def prompt(kept: int) -> str:
        newest = shots[len(shots) - kept :]
        return lay_out(example.input, newest, delimiter=asking.delimiter, separator=asking.separator)

    def fits(kept: int) -> bool:
        begun = prompt(kept)
        return max(map(len, model.tokenizer.encode_whole([begun + end for end in endings]))) <= model.context

    some = len(shots)
    if not fits(some):  # one less than the first number of shots that does not fit, which may be 0
        some = bisect.bisect_left(range(some), True, key=lambda kept: not fits(kept)) - 1
    return prompt(max(0, some)), max(0, some), some >= 0
