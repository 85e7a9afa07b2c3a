"""How a chat model answers, step by step."""

from collections.abc import Iterator, Sequence

from heedful.run.task import Ask
from heedful.tasks.chat.use import ChatModel, messages_in
from heedful.tasks.generate.steps import steps_after
from heedful.tasks.shared.steps import Stepped, StepsOptions


def steps_answering(model: ChatModel, texts: Sequence[str], options: StepsOptions) -> Iterator[Stepped]:
    """Generates the answer to each text, and returns the steps. A text is a user's message, or a JSON list of messages.
    Raises InputError for one that does not fit the model's context."""
    options.check(model.tokenizer)
    for text in texts:
        asked = model.asked(messages_in(text), max(1, len(options.chosen) + 1))
        yield steps_after(model, asked.ids, options, where=f"{text[:40]}...")


ASK = Ask(steps_answering, StepsOptions)
