"""The answers of a model that people are to put in order."""

import threading
from collections.abc import Callable
from typing import Any

from heedful.errors import InputError
from heedful.run.task import Served
from heedful.tasks.load import row_of_model
from heedful.verbs.use import ask

SPEAKS = {"chat": "content", "generate": "text"}  # verbs that answer a prompt, the first that a model has, and where


def answers_by(served: Served, count: int, settings: dict[str, Any]) -> Callable[[str], tuple[str, ...]]:
    """Different answers of a model to a prompt, of so many that it makes: the same each time. Raises InputError for a
    model that does not answer."""
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
