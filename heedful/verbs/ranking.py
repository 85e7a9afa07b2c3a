"""The answers of a model, for people to rank."""

import threading
from collections.abc import Callable
from typing import Any

from heedful.errors import InputError
from heedful.run.task import Served
from heedful.tasks.load import row_of_model
from heedful.verbs.use import ask

SPEAKS = {"chat": "content", "generate": "text"}  # verbs that answer a prompt, by preference, and the answer's key


def answers_by(served: Served, count: int, settings: dict[str, Any]) -> Callable[[str], tuple[str, ...]]:
    """A function that gives the different ones among `count` answers of a model to a prompt, and remembers them. Raises
    InputError for a model that does not answer prompts."""
    verb = next((verb for verb in SPEAKS if verb in row_of_model(served).asks), None)
    if verb is None:
        what = f"a model for {row_of_model(served).name!r} answers no prompts"
        raise InputError(what, fix="take a run of heed train generate, chat or prefer")
    made: dict[str, tuple[str, ...]] = {}
    lock = threading.Lock()

    def answers(prompt: str) -> tuple[str, ...]:
        with lock:
            if prompt not in made:
                records = ask(served, verb, [prompt] * count, settings)
                made[prompt] = tuple(dict.fromkeys(record[SPEAKS[verb]] for record in records))
            return made[prompt]

    return answers
